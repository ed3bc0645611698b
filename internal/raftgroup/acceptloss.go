package raftgroup

import (
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/raft"
)

// ErrNoLoss says that a replica has everything that it is known to have had.
var ErrNoLoss = errors.New("nothing is missing that the replica is known to have had")

// Loss is what a damaged replica has left, and what of that AcceptLoss keeps.
type Loss struct {
	// Kept is the last entry whose effect is kept, in the tables or in the log; First to
	// Last are those that are gone. First is beyond Last if no entries are known to be.
	Kept, First, Last uint64
	// VoteLost says that the term or the vote is older than on record.
	VoteLost bool
	// Members are the servers that the configuration has, Replaced those that AcceptLoss
	// replaces by them.
	Members, Replaced []raft.Server

	term        uint64        // to continue in
	base        Position      // of the tables
	config      []byte        // encoded configuration at base, if rebased
	configIndex uint64        // its entry
	rebase      bool          // the log begins after base
	force       []raft.Server // new members, nil: those that it has
	cutFrom     uint64        // entries from here on are removed, 0: none
	logFirst    uint64        // bounds of the log as it is
	logLast     uint64
}

// AssessLoss finds out what a replica has left, given its hard-state record and how far
// its tables are. fallback is the configuration if none is left, nil if there may be
// other members. It changes nothing.
func AssessLoss(s Storage, rec HardStateRecord, tables Position, fallback []raft.Server) (Loss, error) {
	l := Loss{base: tables}
	var err error
	if l.logFirst, l.logLast, err = logBounds(s); err != nil {
		return l, err
	}
	if l.logFirst > tables.Index+1 {
		return l, fmt.Errorf("the tables are at entry %d and the log begins at entry %d: what is between is gone, so nothing can go on from here; restore the data directory from a backup",
			tables.Index, l.logFirst)
	}
	log := readUsable(s, tables, l.logFirst, l.logLast)
	l.Kept = max(tables.Index, log.last)
	if l.Kept < l.logLast {
		l.cutFrom = l.Kept + 1
	}
	snap, have, snapErr := loadRecord(s, keySnapshot)
	l.rebase = log.rebase || snapErr != nil || have && snap.State.Index > tables.Index || max(l.logLast, snap.Index) < tables.Index
	if l.rebase && tables.Index == 0 {
		l.rebase = have || snapErr != nil
	}
	var members raft.Configuration
	switch {
	case log.config != nil:
		members, l.configIndex = raft.DecodeConfiguration(log.config), log.configIndex
	case snapErr == nil && have && snap.ConfigIndex <= l.Kept:
		members, l.configIndex = snap.Config, snap.ConfigIndex
	case fallback != nil:
		members, l.configIndex = raft.Configuration{Servers: fallback}, tables.Index
	default:
		return l, errors.New("the log has lost the members of the group, and there may be others: start the node, which copies the partition from them")
	}
	l.Members = members.Servers
	l.configIndex = min(l.configIndex, tables.Index)
	l.config = raft.EncodeConfiguration(members)
	if log.config == nil && tables.Index == 0 { // nothing else says who the members are
		l.force = fallback
	}

	term, termErr := number(s, keyCurrentTerm)
	voteTerm, voteErr := number(s, keyVoteTerm)
	l.term = max(term, rec.Term, tables.Term, log.term)
	l.VoteLost = termErr != nil || voteErr != nil || term < rec.Term || voteTerm < rec.VoteTerm
	l.First, l.Last = l.Kept+1, max(l.logLast, rec.Last.Index, rec.Snapshot)
	if l.First > l.Last && !l.VoteLost && !l.rebase && l.cutFrom == 0 {
		return l, ErrNoLoss
	}
	return l, nil
}

// usable is the part of a log that can be used.
type usable struct {
	last, term  uint64 // last entry, and the highest term
	rebase      bool   // entries at or below the tables cannot be read
	config      []byte // the newest one, nil if there is none
	configIndex uint64
}

// readUsable reads a log from first to last, as far as its entries follow on the tables
// without a gap or a damaged one.
func readUsable(s Storage, tables Position, first, last uint64) (r usable) {
	for i := first; i > 0 && i <= last; i++ {
		var log raft.Log
		if err := s.GetLog(i, &log); err != nil || log.Term < r.term {
			if i > tables.Index {
				return r
			}
			r = usable{rebase: true}
			continue
		}
		if i == tables.Index && log.Term != tables.Term { // the tables are of another log
			return usable{rebase: true}
		}
		r.last, r.term = i, log.Term
		if log.Type == raft.LogConfiguration && validConfiguration(log.Data) {
			r.config, r.configIndex = log.Data, i
		}
	}
	return r
}

// validConfiguration reports whether a configuration can be decoded, which Raft does
// with a panic on damage.
func validConfiguration(data []byte) (valid bool) {
	defer func() { valid = recover() == nil }()
	raft.DecodeConfiguration(data)
	return true
}

// Sole reports whether id is the only voter of the group.
func (l *Loss) Sole(id raft.ServerID) bool {
	return slices.ContainsFunc(l.Members, func(s raft.Server) bool { return s.ID == id && s.Suffrage == raft.Voter }) &&
		!slices.ContainsFunc(l.Members, func(s raft.Server) bool { return s.ID != id && s.Suffrage == raft.Voter })
}

// Has reports whether id is one of the members.
func (l *Loss) Has(id raft.ServerID) bool {
	return slices.ContainsFunc(l.Members, func(s raft.Server) bool { return s.ID == id })
}

// Force makes AcceptLoss replace the members, as ForceConfiguration does and under the
// same condition: the ids were never used.
func (l *Loss) Force(servers []raft.Server) {
	l.Members, l.Replaced, l.force = servers, l.Members, servers
}

// AcceptLoss makes the log of a group that is not open continue from what is left, and
// ends its quarantine. It is for a replica that is the only voter: others may have what
// is lost here. It may be repeated after a crash.
func (l *LogDB) AcceptLoss(group uint32, loss Loss, hard *HardState) error {
	s, err := l.Storage(group)
	if err != nil {
		return err
	}
	if err := loss.apply(s); err != nil {
		return fmt.Errorf("accept the loss of group %d: %w", group, err)
	}
	if err := l.Release(group); err != nil { // synced, and with it what was removed before
		return err
	}
	// Until now the record keeps the group from being opened.
	return hard.Accept()
}

func (l *Loss) apply(s *LogStore) error {
	if err := s.SetUint64(keyCurrentTerm, l.term); err != nil {
		return err
	}
	if l.cutFrom > 0 {
		if err := s.DeleteRange(l.cutFrom, l.logLast); err != nil {
			return err
		}
	}
	if l.rebase {
		if err := l.applyRebase(s); err != nil {
			return err
		}
	}
	if l.force == nil {
		return nil
	}
	if err := s.SetUint64(keyCurrentTerm, l.term+1); err != nil {
		return err
	}
	return s.StoreLog(&raft.Log{
		Index: l.Kept + 1, Term: l.term + 1, Type: raft.LogConfiguration,
		Data: raft.EncodeConfiguration(raft.Configuration{Servers: l.force}),
	})
}

// applyRebase makes the log begin behind the tables.
func (l *Loss) applyRebase(s *LogStore) error {
	if l.base.Index == 0 {
		return dropRecord(s, keySnapshot)
	}
	rec := snapshotRecord{
		Index: l.base.Index, Term: l.base.Term, State: l.base, ConfigIndex: l.configIndex, Config: raft.DecodeConfiguration(l.config),
	}
	if err := errors.Join(saveRecord(s, keySnapshot, rec), dropRecord(s, keyPending)); err != nil {
		return err
	}
	if l.logFirst == 0 || l.logFirst > l.base.Index {
		return nil
	}
	return s.DeleteRange(l.logFirst, l.base.Index)
}
