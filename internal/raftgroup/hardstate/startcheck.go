package hardstate

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/raft"

	"platform/internal/raftgroup/logstore"
)

// Reconcile checks that log, snapshot record, state and hard-state record are consistent
// before Raft uses them, and cleans up after a crash during the installation of a snapshot.
// It returns the current snapshot, if there is one.
func Reconcile(s logstore.Storage, hard *State, applied logstore.Position) (SnapshotRecord, bool, error) {
	if hard.removing() {
		return SnapshotRecord{}, false, ErrLeaving
	}
	if mark, err := readMark(s, logstore.KeyLeaving); err != nil || mark != "" {
		return SnapshotRecord{}, false, cmp.Or(err, ErrLeaving)
	}
	if why, err := readMark(s, logstore.KeyQuarantine); err != nil || why != "" {
		return SnapshotRecord{}, false, cmp.Or(err, quarantinedEarlier(why))
	}
	if err := hard.check(s); err != nil { // before anything is changed
		return SnapshotRecord{}, false, err
	}
	rec, have, err := settleRecords(s, applied)
	if err != nil {
		return rec, have, err
	}
	if have {
		if err := dropStaleLog(s, rec); err != nil {
			return rec, have, err
		}
	}
	return rec, have, checkState(s, applied, rec)
}

// readMark reads the mark of a group that must not be opened, "" if there is none. A mark that
// is damaged quarantines the group: it may be set.
func readMark(s raft.StableStore, key []byte) (string, error) {
	mark, err := s.Get(key)
	if err != nil && !errors.Is(err, logstore.ErrKeyNotFound) {
		return "", fmt.Errorf("%w: %w", ErrQuarantined, err)
	}
	return string(mark), nil
}

// quarantinedEarlier returns the error of a group that has the mark.
func quarantinedEarlier(reason string) error {
	return fmt.Errorf("%w: %s", ErrQuarantined, strings.TrimPrefix(reason, ErrQuarantined.Error()+": "))
}

// settleRecords completes or drops an installation that a crash interrupted: if the state
// machine switched, the pending record describes it.
func settleRecords(s logstore.Storage, applied logstore.Position) (SnapshotRecord, bool, error) {
	rec, have, err := CurrentSnapshot.Load(s)
	if errors.Is(err, logstore.ErrCorrupt) {
		err = fmt.Errorf("%w: %w", ErrQuarantined, err)
	}
	if err != nil {
		return rec, false, err
	}
	pending, interrupted, err := PendingSnapshot.Load(s)
	if errors.Is(err, logstore.ErrCorrupt) {
		err = fmt.Errorf("%w: installation of a snapshot: %w", ErrQuarantined, err)
	}
	if err != nil || !interrupted {
		return rec, have, err
	}
	if applied.Index >= pending.State.Index && pending.Index > rec.Index {
		if err := CurrentSnapshot.Save(s, pending); err != nil {
			return rec, have, err
		}
		rec, have = pending, true
	}
	return rec, have, PendingSnapshot.Drop(s)
}

// dropStaleLog removes a log that an installed snapshot replaced: one that ends before the
// snapshot, or has another entry at its index.
func dropStaleLog(s logstore.Storage, rec SnapshotRecord) error {
	first, last, err := logstore.Bounds(s)
	if err != nil || last == 0 {
		return err
	}
	stale := last < rec.Index
	if !stale && first <= rec.Index {
		var log raft.Log
		if err := s.GetLog(rec.Index, &log); err != nil {
			return fmt.Errorf("%w: entry at the snapshot index: %w", ErrQuarantined, err)
		}
		stale = log.Term != rec.Term
	}
	if !stale {
		return nil
	}
	if err := s.DeleteRange(first, last); err != nil {
		return fmt.Errorf("drop log older than the snapshot: %w", err)
	}
	return nil
}

// checkState verifies snapshot ≤ applied ≤ end of the log.
func checkState(s logstore.Storage, applied logstore.Position, rec SnapshotRecord) error {
	first, last, err := logstore.Bounds(s)
	if err != nil {
		return err
	}
	switch {
	case last > 0 && first > rec.Index+1:
		return fmt.Errorf("%w: log starts at %d, snapshot ends at %d", ErrQuarantined, first, rec.Index)
	case applied.Index < rec.State.Index:
		return fmt.Errorf("%w: state at %d, snapshot needs %d", ErrStateBehindSnapshot, applied.Index, rec.State.Index)
	case applied.Index > max(last, rec.Index):
		return fmt.Errorf("%w: state at %d is beyond the log, which ends at %d", ErrQuarantined, applied.Index, max(last, rec.Index))
	}
	if applied.Index < first || applied.Index > last || applied.Index == 0 {
		return nil
	}
	var log raft.Log
	if err := s.GetLog(applied.Index, &log); err != nil {
		return fmt.Errorf("%w: last applied entry: %w", ErrQuarantined, err)
	}
	if log.Term != applied.Term {
		return fmt.Errorf("%w: entry %d has term %d, the state was made by one of term %d",
			ErrQuarantined, applied.Index, log.Term, applied.Term)
	}
	return nil
}

// HoldsReplica reports whether a storage contains a replica, or may do so. After the installation
// of a snapshot the log of a replica is empty.
func HoldsReplica(s logstore.Storage) bool {
	_, last, err := logstore.Bounds(s)
	_, snapshot, snapshotErr := CurrentSnapshot.Load(s)
	return last > 0 || snapshot || err != nil || snapshotErr != nil
}
