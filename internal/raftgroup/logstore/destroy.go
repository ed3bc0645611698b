package logstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// KeyLeaving marks a group whose data is being removed.
var KeyLeaving = []byte("Leaving")

// BeginDestroy durably records that the data of a group, log and state, is about to be
// removed: until Destroy has finished, raftgroup.Open rejects the group with ErrLeaving. So a crash
// in between leaves nothing that could be mistaken for a replica. The group must be closed,
// and the replica must have left the configuration: if it lost its log and votes while it
// counts for the quorum, data would be lost.
func (l *DB) BeginDestroy(group uint32) error {
	if err := l.values(group).Set(KeyLeaving, []byte{1}); err != nil {
		return fmt.Errorf("mark group %d for removal: %w", group, err)
	}
	return nil
}

// Destroy durably removes everything that the database contains of a group, marks included. The group must be closed.
// After pebbledb.ErrSharedBlock the group still has its marks, and Destroy must be called again.
func (l *DB) Destroy(group uint32) error {
	// Only the log: if the marks were removed together with those of another group, the group could be opened meanwhile.
	if err := l.remover.Remove(context.Background(), logSpan(group)); err != nil {
		return fmt.Errorf("remove the log of group %d: %w", group, err)
	}
	b := l.db.NewBatch()
	for _, kind := range []byte{keyKindLog, keyKindStable} {
		from, to := groupBounds(kind, group)
		l.files.countRemoved(from, to)
		if err := b.DeleteRange(from, to, nil); err != nil {
			return errors.Join(err, b.Close())
		}
	}
	if err := b.Commit(pebble.Sync); err != nil {
		return fmt.Errorf("remove group %d: %w", group, err)
	}
	if err := l.files.flushRemoved(); err != nil {
		return fmt.Errorf("flush the removal of group %d: %w", group, err)
	}
	return nil
}
