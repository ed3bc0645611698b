package replicas

import (
	"context"

	"platform/internal/pebbledb"
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

// damaged quarantines replicas with data in a damaged file, if there are other nodes to copy them from. A single node
// continues for as long as it does not need the damaged data.
func (m *Manager) damaged(file pebbledb.DamagedFile, affected []uint32, err error) {
	if err != nil {
		m.Log.Warn("damaged file not examined", "path", file.Path, "err", err)
		return
	}
	for _, id := range affected {
		if len(m.Store.Nodes()) < 2 {
			m.Log.Error("data of a partition is damaged, and there is no other node to copy it from: restore the data directory from a backup before it is needed",
				"partition_id", id, "path", file.Path, "err", file.Reason)
			continue
		}
		if p := m.Router.Replica(id); p != nil {
			p.Quarantine(file)
		}
	}
}
