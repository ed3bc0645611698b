package raftgroup

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/hashicorp/raft"
)

// GroupInfo is the stored state of a group's replica.
type GroupInfo struct {
	First, Last uint64 // indexes of the log, 0 if it is empty
	Term        uint64
	VoteTerm    uint64 // of the last vote given
	Vote        string // Raft server ID that received it
	Snapshot    *SnapshotInfo
	Pending     *SnapshotInfo // of an interrupted installation
	Quarantine  string        // why the replica is not opened; "" if it is
	Leaving     bool          // its data is being removed
}

// SnapshotInfo is a snapshot record: the state machine contains everything up to State.
type SnapshotInfo struct {
	Index, Term uint64
	State       Position
	ConfigIndex uint64
	Servers     []raft.Server
}

// Names under which Raft stores these values.
var (
	keyCurrentTerm = []byte("CurrentTerm")
	keyVoteTerm    = []byte("LastVoteTerm")
	keyVote        = []byte("LastVoteCand")
)

// Groups returns the numbers of the groups that have data in the database.
func (l *LogDB) Groups() ([]uint32, error) {
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
		return nil, fmt.Errorf("list groups: %w", err)
	}
	return groups, nil
}

// Inspect returns the stored state of a group. Values that cannot be read are reported in
// the error, the others are returned.
func Inspect(s Storage) (GroupInfo, error) {
	var g GroupInfo
	var errs []error
	number := func(key []byte) uint64 {
		v, err := s.GetUint64(key)
		if err != nil && !isNotFound(err) {
			errs = append(errs, err)
		}
		return v
	}
	text := func(key []byte) string {
		v, err := s.Get(key)
		if err != nil && !isNotFound(err) {
			errs = append(errs, err)
		}
		return string(v)
	}
	record := func(key []byte) *SnapshotInfo {
		rec, found, err := loadRecord(s, key)
		if err != nil {
			errs = append(errs, err)
		}
		if !found {
			return nil
		}
		return &SnapshotInfo{Index: rec.Index, Term: rec.Term, State: rec.State, ConfigIndex: rec.ConfigIndex, Servers: rec.Config.Servers}
	}
	var err error
	if g.First, g.Last, err = logBounds(s); err != nil {
		errs = append(errs, err)
	}
	g.Term, g.VoteTerm, g.Vote = number(keyCurrentTerm), number(keyVoteTerm), text(keyVote)
	g.Snapshot, g.Pending = record(keySnapshot), record(keyPending)
	g.Quarantine, g.Leaving = text(keyQuarantine), text(keyLeaving) != ""
	return g, errors.Join(errs...)
}

func isNotFound(err error) bool {
	return errors.Is(err, errKeyNotFound) || err.Error() == errKeyNotFound.Error()
}

// ReplaceByNoop durably replaces a command in the log by a no-op entry with the same index
// and term. The group must be closed. All replicas that have not applied the command must
// do the same, or they will diverge.
func (l *LogDB) ReplaceByNoop(group uint32, index uint64) error {
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
