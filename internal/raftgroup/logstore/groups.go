package logstore

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/hashicorp/raft"
)

// Groups returns the numbers of the groups that have data in the database: with ErrCorrupt, those that were found.
func (l *DB) Groups() ([]uint32, error) {
	it, err := l.db.NewIter(nil)
	if err != nil {
		return nil, fmt.Errorf("list groups: %w", err)
	}
	found := map[uint32]bool{}
	var groups []uint32
	for ok := it.First(); ok; {
		key := it.Key()
		if len(key) < groupPrefixLen || key[0] != keyKindLog && key[0] != keyKindStable {
			ok = it.Next()
			continue
		}
		group := binary.BigEndian.Uint32(key[1:])
		if !found[group] {
			found[group] = true
			groups = append(groups, group)
		}
		_, next := groupBounds(key[0], group)
		ok = it.SeekGE(next)
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return groups, fmt.Errorf("list groups: %w", readError(err))
	}
	return groups, nil
}

// ReplaceByNoop durably replaces a command in the log by a no-op entry with the same index
// and term. The group must be closed. All replicas that have not applied the command must
// do the same, or they will diverge.
func (l *DB) ReplaceByNoop(group uint32, index uint64) error {
	s, err := l.Storage(group)
	if err != nil {
		return err
	}
	var log raft.Log
	err = s.GetLog(index, &log)
	switch {
	case errors.Is(err, raft.ErrLogNotFound):
		return fmt.Errorf("entry %d of group %d: %w", index, group, err)
	case err != nil:
		return fmt.Errorf("%w: its term is unknown, so it cannot be replaced; rebuild this replica from the others instead", err)
	case log.Type != raft.LogCommand:
		return fmt.Errorf("entry %d of group %d is a %s, not a command", index, group, log.Type)
	}
	b := l.db.NewBatch()
	defer b.Close()
	// Chunks of a large entry are removed with it.
	if err := b.DeleteRange(logKey(group, index), logKey(group, index+1), nil); err != nil {
		return fmt.Errorf("replace entry %d of group %d: %w", index, group, err)
	}
	if err := s.put(b, &raft.Log{Index: index, Term: log.Term, Type: raft.LogNoop, AppendedAt: log.AppendedAt}); err != nil {
		return fmt.Errorf("replace entry %d of group %d: %w", index, group, err)
	}
	if err := b.Commit(pebble.Sync); err != nil {
		return fmt.Errorf("replace entry %d of group %d: %w", index, group, err)
	}
	return nil
}
