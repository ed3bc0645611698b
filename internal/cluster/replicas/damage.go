package replicas

import (
	"context"

	"github.com/hashicorp/raft"

	"platform/internal/pebbledb"
	"platform/metadata"
	"platform/partition"
)

// watchDamage quarantines replicas with rows or entries that cannot be read, as soon as that is found: also by a
// compaction, which cannot succeed until their data is removed.
func (m *Manager) watchDamage(ctx context.Context) {
	partitions, groups := make([]uint32, m.Router.Count()), make([]uint32, m.Router.Count())
	for id := range m.Router.Count() {
		partitions[id], groups[id] = id, partition.GroupID(id)
	}
	for {
		select {
		case file := <-m.Logs.DamagedFiles():
			affected, err := m.Logs.Affected(file, groups)
			for i := range affected {
				affected[i] -= partition.GroupID(0)
			}
			m.damaged(file, affected, err)
		case file := <-m.Tables.DamagedFiles():
			affected, err := m.Tables.Affected(file, partitions)
			m.damaged(file, affected, err)
		case <-ctx.Done():
			return
		}
	}
}

// damaged quarantines replicas with data in a damaged file, if the others can serve the partition and be copied from. A
// replica that is needed continues for as long as it does not need the damaged data. Damage is reported again when it is
// read again, so that it is rebuilt later.
func (m *Manager) damaged(file pebbledb.DamagedFile, affected []uint32, err error) {
	if err != nil {
		m.Log.Warn("damaged file not examined", "path", file.Path, "err", err)
		return
	}
	for _, id := range affected {
		p := m.Router.Replica(id)
		switch {
		case p == nil:
		case dispensable(p.Voters(), m.AvailableNodes):
			p.Quarantine(file)
		case len(p.Voters()) < minDispensable:
			m.Log.Error("data of a partition is damaged, and it has too few replicas to copy it from another one: add replicas, or restore the data directory from a backup, before it is needed",
				"partition_id", id, "path", file.Path, "err", file.Reason)
		default:
			m.Log.Error("data of a partition is damaged, and the replica continues until the other ones have a majority: start their nodes",
				"partition_id", id, "path", file.Path, "err", file.Reason)
		}
	}
}

// minDispensable is the number of voters from which the others can have a majority.
const minDispensable = 3

// dispensable reports whether the voters on available nodes are a majority. available returns the other nodes that can be
// relied on.
func dispensable(voters []string, available func() map[raft.ServerID]bool) bool {
	if len(voters) < minDispensable {
		return false
	}
	others, nodes := 0, available()
	for _, id := range voters {
		if node, _ := metadata.ReplicaNode(raft.ServerID(id)); nodes[node] {
			others++
		}
	}
	return others > len(voters)/2
}
