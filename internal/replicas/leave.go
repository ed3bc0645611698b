package replicas

import (
	"context"
	"slices"

	nodepb "platform/proto/node"

	"github.com/hashicorp/raft"

	"platform/partition"
)

// leave removes the replica once the leader of the partition says that it is no
// member any more. Until then it still has a vote that the others may need.
func (m *Manager) leave(ctx context.Context, p *partition.Partition) error {
	// A leader does not speak to whom it removed, so it may not be known here.
	for _, st := range m.Nodes.Statuses(ctx, false) {
		for _, r := range st.Replicas {
			if removed(p.Status(), r, p.LocalID()) {
				return m.removeReplica(ctx, p)
			}
		}
	}
	return nil
}

// removed reports whether what another node says about its replica proves that the own
// one is no member of the partition any more. A node may believe that it leads and be
// wrong, so it must know of no older term, and of a committed configuration that is
// newer than the last one that the own replica was a member of.
func removed(own partition.Status, said *nodepb.ReplicaStatus, self raft.ServerID) bool {
	if said.Partition != own.ID || !said.Leading || said.Term < own.Term {
		return false
	}
	if slices.ContainsFunc(said.Members, func(m *nodepb.ReplicaMember) bool { return raft.ServerID(m.Id) == self }) {
		return false
	}
	if _, member := own.Members.Find(self); member {
		return said.MembersIndex > own.Members.Index
	}
	return said.MembersIndex >= own.Members.Index
}

func (m *Manager) removeReplica(ctx context.Context, p *partition.Partition) error {
	m.Log.Info("removing the replica, the partition has moved", "partition_id", p.ID())
	if err := m.closeReplica(ctx, p, p.Stop); err != nil {
		return err
	}
	return m.destroy(ctx, p.ID()) // the next start finishes what is cut off here
}

// destroy removes all that this node has of a partition.
func (m *Manager) destroy(ctx context.Context, id uint32) error {
	hard, err := m.Hard.Group(partition.GroupID(id))
	if err != nil {
		return err
	}
	return partition.Destroy(ctx, m.Logs, m.Tables, hard, id)
}
