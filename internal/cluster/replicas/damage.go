package replicas

import (
	"context"

	"github.com/hashicorp/raft"

	"platform/internal/cluster"
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
			m.damaged(ctx, file, affected, err)
		case file := <-m.Tables.DamagedFiles():
			affected, err := m.Tables.Affected(file, partitions)
			m.damaged(ctx, file, affected, err)
		case <-ctx.Done():
			return
		}
	}
}

// damaged quarantines replicas with data in a damaged file, if the others can serve the partition and be copied from. A
// replica that is needed continues for as long as it does not need the damaged data. Damage is reported again when it is
// read again, so that it is rebuilt later.
func (m *Manager) damaged(ctx context.Context, file pebbledb.DamagedFile, affected []uint32, err error) {
	if err != nil {
		m.Log.Warn("damaged file not examined", "path", file.Path, "err", err)
		return
	}
	open := map[uint32]replica{}
	for _, id := range affected {
		if p := m.Router.Replica(id); p != nil {
			open[id] = p
		}
	}
	m.quarantineDispensable(ctx, file, open)
}

// replica is what quarantineDispensable needs of an open replica.
type replica interface {
	Voters() []string
	Quarantine(reason error)
}

// quarantineDispensable quarantines those of the damaged replicas without which the others have a majority. If two nodes find damage at
// the same time, each must take the other one's replica into account. So they announce what they intend before they
// request each other's status, and at least one of them learns of the other. Both may then continue, until the damage is
// reported again.
func (m *Manager) quarantineDispensable(ctx context.Context, file pebbledb.DamagedFile, damaged map[uint32]replica) {
	for id, p := range damaged {
		if len(p.Voters()) < minDispensable {
			m.Log.Error("data of a partition is damaged, and it has too few replicas to copy it from another one: add replicas, or restore the data directory from a backup, before it is needed",
				"partition_id", id, "path", file.Path, "err", file.Reason)
			delete(damaged, id)
			continue
		}
		m.quarantine.announce(id, file.Error())
	}
	if len(damaged) == 0 {
		return
	}
	statuses := m.Nodes.Statuses(ctx, false)
	for id, p := range damaged {
		if m.dispensable(p.Voters(), serving(statuses, id)) {
			p.Quarantine(file) // still announced: it counts as unusable until it is rebuilt
			continue
		}
		m.quarantine.withdraw(id)
		m.Log.Error("data of a partition is damaged, and the replica continues until the other ones have a majority: start their nodes, and wait until no other replica is in quarantine",
			"partition_id", id, "path", file.Path, "err", file.Reason)
	}
}

// minDispensable is the number of voters from which the others can have a majority.
const minDispensable = 3

// serving returns the IDs of a partition's replicas that are in use, on nodes that respond and are not about to stop.
func serving(statuses cluster.Statuses, id uint32) map[string]bool {
	replicas := map[string]bool{}
	for _, st := range statuses {
		for _, r := range st.Replicas {
			if r.Partition == id && r.Quarantine == "" && !st.Draining {
				replicas[r.ReplicaId] = true
			}
		}
	}
	return replicas
}

// dispensable reports whether the voters on other nodes that are serving are a majority.
func (m *Manager) dispensable(voters []string, serving map[string]bool) bool {
	others := 0
	for _, id := range voters {
		if node, _ := metadata.ReplicaNode(raft.ServerID(id)); node != m.Node.ID && serving[id] {
			others++
		}
	}
	return others > len(voters)/2
}
