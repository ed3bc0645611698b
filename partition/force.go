package partition

import (
	"fmt"

	"github.com/hashicorp/raft"

	"platform/internal/raftgroup"
	"platform/metadata"
	"platform/partition/store"
)

// ForceOnlyMember makes the closed replica of a partition on node self the only one. What
// only other replicas had is lost.
func ForceOnlyMember(logs *raftgroup.LogDB, tables *store.DB, hard *raftgroup.HardStates, id uint32, self raft.Server) error {
	s, err := logs.Storage(GroupID(id))
	if err != nil {
		return err
	}
	record, err := hard.Group(GroupID(id))
	if err != nil {
		return err
	}
	rows, err := tables.Partition(id)
	if err != nil {
		return err
	}
	index, term := rows.Applied()
	self.ID = metadata.ReplicaID(self.ID, record.Record().Replica)
	if _, err := raftgroup.ForceConfiguration(s, record, raftgroup.Position{Index: index, Term: term}, []raft.Server{self}); err != nil {
		return fmt.Errorf("partition %d: %w", id, err)
	}
	return nil
}
