package hardstate

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/hashicorp/raft"

	"platform/internal/raftgroup/logstore"
)

// recordedStorage is a storage whose term, vote and log end are also recorded in the hard-state
// file, always after they are durable in the storage, so that the record is never ahead.
// Raft changes a group's log and values from one goroutine at a time.
type recordedStorage struct {
	logstore.Storage
	hard *State
}

// WrapStorage returns a storage that also records in hard what is stored in s; s itself if hard
// is nil.
func WrapStorage(s logstore.Storage, hard *State) logstore.Storage {
	if hard == nil {
		return s
	}
	return &recordedStorage{s, hard}
}

// StoreLog stores one entry durably.
func (w *recordedStorage) StoreLog(log *raft.Log) error { return w.StoreLogs([]*raft.Log{log}) }

// StoreLogs stores entries durably and atomically.
func (w *recordedStorage) StoreLogs(logs []*raft.Log) error {
	if err := w.Storage.StoreLogs(logs); err != nil || len(logs) == 0 {
		return err
	}
	last := logs[len(logs)-1]
	return w.hard.stored(logstore.Position{Index: last.Index, Term: last.Term})
}

// DeleteRange removes entries. A suffix is removed from the record first.
func (w *recordedStorage) DeleteRange(lo, hi uint64) error {
	last, err := w.LastIndex()
	if err != nil {
		return err
	}
	if hi >= last && lo <= last {
		if err := w.hard.cut(lo - 1); err != nil {
			return err
		}
	}
	return w.Storage.DeleteRange(lo, hi)
}

// Get reads a value. Raft stores the term of a vote before the candidate, in two writes. After
// only the first one the stored candidate is that of an earlier vote, and Raft would vote for it
// again without comparing logs. Then the result is an empty candidate, which gets no vote.
func (w *recordedStorage) Get(key []byte) ([]byte, error) {
	if !bytes.Equal(key, keyVote) {
		return w.Storage.Get(key)
	}
	term, err := number(w.Storage, keyVoteTerm)
	if err == nil && term > w.hard.Record().VoteTerm {
		return []byte{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read term of the vote: %w", err)
	}
	return w.Storage.Get(key)
}

// Set stores a value durably.
func (w *recordedStorage) Set(key, value []byte) error {
	if err := w.Storage.Set(key, value); err != nil {
		return err
	}
	switch {
	case bytes.Equal(key, keyVote):
		term, err := w.GetUint64(keyVoteTerm)
		if err != nil {
			return fmt.Errorf("read term of the vote: %w", err)
		}
		return w.hard.setVote(term, value)
	case string(key) == string(CurrentSnapshot):
		rec, err := decodeSnapshotRecord(value)
		if err != nil {
			return err
		}
		return w.hard.snapshot(rec.Index)
	}
	return nil
}

// SetUint64 stores a number durably, except for the term of a vote, which Raft stores right before the candidate. The
// record of the current term is synced with that of the vote, if there is one.
func (w *recordedStorage) SetUint64(key []byte, v uint64) error {
	if bytes.Equal(key, keyVoteTerm) {
		return w.Storage.SetUint64Later(key, v)
	}
	if err := w.Storage.SetUint64(key, v); err != nil {
		return err
	}
	if bytes.Equal(key, keyCurrentTerm) && w.hard.Record().Term != v {
		return w.hard.setTerm(v)
	}
	return nil
}

// removing reports whether the data of a previous replica has not been removed yet.
func (g *State) removing() bool { return g != nil && g.Record().Removing }

// ErrUnrecorded means that the hard-state file has lost the record of a replica. It comes with
// ErrQuarantined or logstore.ErrCorrupt.
var ErrUnrecorded = errors.New("record lost")

// check compares the content of a storage with the record. A storage that has lost anything
// must not vote or acknowledge: ErrQuarantined. Otherwise the record is updated with what
// it lacks.
func (g *State) check(s logstore.Storage) error {
	if g == nil {
		return nil
	}
	held, err := holdings(s)
	if err != nil {
		return fmt.Errorf("%w: read log, term and vote: %w", ErrQuarantined, err)
	}
	recorded, err := readMark(s, keyRecorded)
	if err != nil {
		return err
	}
	g.mu.Lock()
	rec := g.rec
	g.mu.Unlock()
	if recorded != "" && rec.seq == 0 {
		return fmt.Errorf("%w: %w", ErrUnrecorded, lost("the hard-state file has no record of the replica"))
	}
	if err := held.lacks(s, rec.export()); err != nil {
		return err
	}
	if held.voteTerm > rec.voteTerm { // possibly only the term, see recordedStorage.Get
		if err := s.Set(keyVote, nil); err != nil {
			return err
		}
		held.candidate = 0
	}
	held.seq, held.replica = rec.seq, rec.replica
	if held.stored != rec || rec.seq == 0 {
		if err := g.update(false, func(r *stored) { *r = held.stored }); err != nil {
			return err
		}
	}
	if recorded != "" {
		return nil
	}
	if err := g.owner.Sync(); err != nil {
		return err
	}
	return s.Set(keyRecorded, []byte{1})
}

// keyRecorded marks a storage whose replica is recorded in the hard-state file. Without the mark,
// a storage without a record is that of an older server.
var keyRecorded = []byte("Recorded")

// held is the content of a storage, in the form of a record.
type held struct {
	stored
	first uint64
}

// lacks returns what of a record is missing in the storage s, whose content h is.
func (h held) lacks(s logstore.Storage, rec Record) error {
	switch end := max(h.last, h.snapshot); {
	case h.term < rec.Term:
		return lost("the log database is in term %d, the replica was in term %d", h.term, rec.Term)
	case h.voteTerm < rec.VoteTerm, h.voteTerm == rec.VoteTerm && h.candidate != rec.candidate:
		return lost("the log database has lost the vote of term %d", rec.VoteTerm)
	case h.snapshot < rec.Snapshot:
		return lost("the log database has the snapshot record of entry %d, the replica had that of entry %d", h.snapshot, rec.Snapshot)
	case end < rec.Last.Index:
		return lost("the log ends at entry %d, the replica had stored up to entry %d", end, rec.Last.Index)
	}
	if rec.Last.Term == 0 || rec.Last.Index < h.first || rec.Last.Index > h.last {
		return nil
	}
	var log raft.Log
	if err := s.GetLog(rec.Last.Index, &log); err != nil {
		return fmt.Errorf("%w: last entry on record: %w", ErrQuarantined, err)
	}
	if log.Term != rec.Last.Term {
		return lost("entry %d has term %d, the replica had stored one of term %d", rec.Last.Index, log.Term, rec.Last.Term)
	}
	return nil
}

func holdings(s logstore.Storage) (h held, err error) {
	var errs [6]error
	h.first, h.last, errs[0] = logstore.Bounds(s)
	h.term, errs[1] = number(s, keyCurrentTerm)
	h.voteTerm, errs[2] = number(s, keyVoteTerm)
	candidate, err := s.Get(keyVote)
	if !errors.Is(err, logstore.ErrKeyNotFound) {
		errs[3] = err
	}
	h.candidate = candidateHash(candidate)
	snapshot, _, err := CurrentSnapshot.Load(s)
	h.snapshot, errs[4] = snapshot.Index, err
	if h.last > 0 {
		var log raft.Log
		errs[5] = s.GetLog(h.last, &log)
		h.lastTerm = log.Term
	}
	return h, errors.Join(errs[:]...)
}

func lost(format string, args ...any) error {
	return fmt.Errorf("%w: "+format+": synced entries or votes are missing, because of damage or because an older copy was restored", append([]any{ErrQuarantined}, args...)...)
}

// CurrentTerm returns the term of a replica, 0 if it has none.
func CurrentTerm(s raft.StableStore) (uint64, error) { return number(s, keyCurrentTerm) }

// number reads a number, 0 if it was never stored.
func number(s raft.StableStore, key []byte) (uint64, error) {
	v, err := s.GetUint64(key)
	if errors.Is(err, logstore.ErrKeyNotFound) {
		return 0, nil
	}
	return v, err
}
