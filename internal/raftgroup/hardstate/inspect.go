package hardstate

import (
	"errors"

	"github.com/hashicorp/raft"

	"platform/internal/raftgroup/logstore"
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
	State       logstore.Position
	ConfigIndex uint64
	Servers     []raft.Server
}

// Names under which Raft stores these values.
var (
	keyCurrentTerm = []byte("CurrentTerm")
	keyVoteTerm    = []byte("LastVoteTerm")
	keyVote        = []byte("LastVoteCand")
)

// Inspect returns the stored state of a group. Values that cannot be read are reported in
// the error, the others are returned.
func Inspect(s logstore.Storage) (GroupInfo, error) {
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
	record := func(key SnapshotKey) *SnapshotInfo {
		rec, found, err := key.Load(s)
		if err != nil {
			errs = append(errs, err)
		}
		if !found {
			return nil
		}
		return &SnapshotInfo{Index: rec.Index, Term: rec.Term, State: rec.State, ConfigIndex: rec.ConfigIndex, Servers: rec.Config.Servers}
	}
	var err error
	if g.First, g.Last, err = logstore.Bounds(s); err != nil {
		errs = append(errs, err)
	}
	g.Term, g.VoteTerm, g.Vote = number(keyCurrentTerm), number(keyVoteTerm), text(keyVote)
	g.Snapshot, g.Pending = record(CurrentSnapshot), record(PendingSnapshot)
	g.Quarantine, g.Leaving = text(logstore.KeyQuarantine), text(logstore.KeyLeaving) != ""
	return g, errors.Join(errs...)
}

func isNotFound(err error) bool {
	return errors.Is(err, logstore.ErrKeyNotFound) || err.Error() == logstore.ErrKeyNotFound.Error()
}
