package partition

import (
	"fmt"

	"github.com/hashicorp/raft"

	"platform/internal/raftgroup"
	"platform/internal/raftgroup/hardstate"
	"platform/internal/raftgroup/logstore"
	"platform/metadata"
	"platform/partition/store"
)

// ForceOnlyMember makes the closed replica of a partition on node self the only one. What
// only other replicas had is lost. tables is nil if they are lost; the log then has to
// contain everything.
func ForceOnlyMember(logs *logstore.DB, tables *store.DB, hard *hardstate.File, id uint32, self raft.Server) error {
	s, err := logs.Storage(GroupID(id))
	if err != nil {
		return err
	}
	record, err := hard.Group(GroupID(id))
	if err != nil {
		return err
	}
	var applied raftgroup.Position
	if tables != nil {
		rows, err := tables.Partition(id)
		if err != nil {
			return err
		}
		applied.Index, applied.Term = rows.Applied()
	}
	self.ID = metadata.ReplicaID(self.ID, record.Record().Replica)
	if _, err := hardstate.ForceConfiguration(s, record, applied, []raft.Server{self}); err != nil {
		return fmt.Errorf("partition %d: %w", id, err)
	}
	return nil
}
