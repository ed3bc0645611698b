package hardstate

import (
	"errors"
	"fmt"

	"github.com/hashicorp/raft"

	"platform/internal/raftgroup/logstore"
)

// errEmpty means that a group has no data to continue from.
var errEmpty = errors.New("the group has no entries")

// ForceConfiguration durably makes servers the members of a closed group, as if a majority
// of its former members had agreed. All entries of the log count as committed afterwards,
// and whatever only other replicas had is lost. applied is the position of the replica's
// state. It returns the position of the new configuration.
//
// It is safe only if no former member ever responds again under its server ID: those in
// servers must be IDs that were never used.
func ForceConfiguration(s logstore.Storage, hard *State, applied logstore.Position, servers []raft.Server) (logstore.Position, error) {
	s = WrapStorage(s, hard)
	rec, _, err := Reconcile(s, hard, applied)
	if err != nil {
		return logstore.Position{}, fmt.Errorf("force configuration: %w", err)
	}
	at, err := forceConfiguration(s, rec, servers)
	if err != nil {
		return logstore.Position{}, fmt.Errorf("force configuration: %w", err)
	}
	return at, nil
}

func forceConfiguration(s logstore.Storage, rec SnapshotRecord, servers []raft.Server) (logstore.Position, error) {
	end, err := lastPosition(s, rec)
	if err != nil {
		return logstore.Position{}, err
	}
	if end.Index == 0 {
		return logstore.Position{}, errEmpty
	}
	term, err := number(s, keyCurrentTerm)
	if err != nil {
		return logstore.Position{}, err
	}
	if err := s.Set(keyRecovered, []byte{1}); err != nil {
		return logstore.Position{}, err
	}
	at := logstore.Position{Index: end.Index + 1, Term: max(term, end.Term) + 1}
	if err := s.SetUint64(keyCurrentTerm, at.Term); err != nil {
		return logstore.Position{}, err
	}
	return at, s.StoreLog(&raft.Log{
		Index: at.Index, Term: at.Term, Type: raft.LogConfiguration,
		Data: raft.EncodeConfiguration(raft.Configuration{Servers: servers}),
	})
}

// lastPosition returns the end of the log, or the snapshot if the log is empty.
func lastPosition(s logstore.Storage, rec SnapshotRecord) (logstore.Position, error) {
	last, err := s.LastIndex()
	if err != nil || last <= rec.Index {
		return logstore.Position{Index: rec.Index, Term: rec.Term}, err
	}
	var log raft.Log
	err = s.GetLog(last, &log)
	return logstore.Position{Index: log.Index, Term: log.Term}, err
}

// LastPosition returns the end of a replica's log, or its snapshot if the log is empty.
func LastPosition(s logstore.Storage) (logstore.Position, error) {
	rec, _, err := CurrentSnapshot.Load(s)
	if err != nil {
		return logstore.Position{}, err
	}
	return lastPosition(s, rec)
}

// keyRecovered marks a replica that continues without data that others may know of.
var keyRecovered = []byte("Recovered")

// Recovered reports whether ForceConfiguration or Loss.Accept has been applied to the replica
// since the last EndRecovery: it may have lost entries whose effects others know of.
func Recovered(s logstore.Storage) bool {
	mark, err := readMark(s, keyRecovered)
	return err != nil || mark != ""
}

// EndRecovery durably resets Recovered.
func EndRecovery(s logstore.Storage) error { return s.Set(keyRecovered, nil) }
