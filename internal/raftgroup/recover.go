package raftgroup

import (
	"errors"
	"fmt"
	"os"

	"platform/internal/raftgroup/logstore"

	"github.com/hashicorp/raft"
)

// ErrEmpty means that a group has no data to continue from.
var ErrEmpty = errors.New("the group has no entries")

// ForceConfiguration durably makes servers the members of a closed group, as if a majority
// of its former members had agreed. All entries of the log count as committed afterwards,
// and whatever only other replicas had is lost. applied is the position of the replica's
// state. It returns the position of the new configuration.
//
// It is safe only if no former member ever responds again under its server ID: those in
// servers must be IDs that were never used.
func ForceConfiguration(s logstore.Storage, hard *HardState, applied Position, servers []raft.Server) (Position, error) {
	s = recordHardState(s, hard)
	rec, _, err := reconcile(s, hard, applied)
	if err != nil {
		return Position{}, fmt.Errorf("force configuration: %w", err)
	}
	at, err := forceConfiguration(s, rec, servers)
	if err != nil {
		return Position{}, fmt.Errorf("force configuration: %w", err)
	}
	return at, nil
}

// keyRecovered marks a replica that continues without data that others may know of.
var keyRecovered = []byte("Recovered")

// Recovered reports whether ForceConfiguration or AcceptLoss has been applied to this replica
// since the last EndRecovery: it may have lost entries whose effects others know of.
func (g *Group) Recovered() bool {
	mark, err := readMark(g.storage, keyRecovered)
	return err != nil || mark != ""
}

// EndRecovery durably resets Recovered.
func (g *Group) EndRecovery() error {
	if err := g.storage.Set(keyRecovered, nil); err != nil {
		return fmt.Errorf("end recovery of %s: %w", g.cfg.Name, err)
	}
	return nil
}

func forceConfiguration(s logstore.Storage, rec snapshotRecord, servers []raft.Server) (Position, error) {
	end, err := lastPosition(s, rec)
	if err != nil {
		return Position{}, err
	}
	if end.Index == 0 {
		return Position{}, ErrEmpty
	}
	term, err := number(s, keyCurrentTerm)
	if err != nil {
		return Position{}, err
	}
	if err := s.Set(keyRecovered, []byte{1}); err != nil {
		return Position{}, err
	}
	at := Position{Index: end.Index + 1, Term: max(term, end.Term) + 1}
	if err := s.SetUint64(keyCurrentTerm, at.Term); err != nil {
		return Position{}, err
	}
	return at, s.StoreLog(&raft.Log{
		Index: at.Index, Term: at.Term, Type: raft.LogConfiguration,
		Data: raft.EncodeConfiguration(raft.Configuration{Servers: servers}),
	})
}

// lastPosition returns the end of the log, or the snapshot if the log is empty.
func lastPosition(s logstore.Storage, rec snapshotRecord) (Position, error) {
	last, err := s.LastIndex()
	if err != nil || last <= rec.Index {
		return Position{Index: rec.Index, Term: rec.Term}, err
	}
	var log raft.Log
	err = s.GetLog(last, &log)
	return Position{Index: log.Index, Term: log.Term}, err
}

// LastPosition returns the end of the replica's log. Of the replicas of a group that has
// lost its majority, the one with the highest term, then the highest index, has everything
// that any of them has acknowledged.
func (g *Group) LastPosition() (Position, error) {
	rec, _, err := loadRecord(g.storage, keySnapshot)
	if err != nil {
		return Position{}, err
	}
	return lastPosition(g.storage, rec)
}

// Renumber durably assigns the replica the next number, and with it another Raft server ID.
// Its term, vote and log end stay on record.
func (g *HardState) Renumber() error {
	replica := g.Record().Replica + 1
	for range 2 { // both copies, so that neither can restore the former ID
		if err := g.update(true, func(r *hardStateRecord) { r.replica = replica }); err != nil {
			return err
		}
	}
	return nil
}

// RenameHardStates assigns a closed hard-state file to another incarnation.
func RenameHardStates(path, incarnation string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("open hard-state file: %w", err)
	}
	var head hardStateHead
	if head, err = readHardStateHead(file); err == nil {
		var page []byte
		head.incarnation = incarnation
		if page, err = head.encode(); err == nil {
			_, err = file.WriteAt(page, 0)
		}
	}
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("hard-state file %s: %w", path, err)
	}
	return nil
}
