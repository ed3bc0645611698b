package hardstate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/raft"

	"platform/internal/raftgroup/logstore"
)

// unrecorded is more than the number of entries that may follow the recorded end of a log.
const unrecorded = 1 << 20

// ErrNoLoss means that no data that the replica is known to have had is missing.
var ErrNoLoss = errors.New("nothing is missing that the replica is known to have had")

// Loss describes what a damaged replica has left, and what Accept keeps of it.
type Loss struct {
	// Kept is the last entry whose effect is kept, in the tables or in the log; First to
	// Last are the lost entries. First is greater than Last if no entries are known to be
	// lost.
	Kept, First, Last uint64
	// VoteLost means that the term or the vote cannot be read, or is not the recorded one.
	VoteLost bool
	// Members are the servers in the configuration, Replaced those that Accept replaces
	// by them.
	Members, Replaced []raft.Server

	term        uint64            // term in which to continue
	base        logstore.Position // of the tables
	config      []byte            // encoded configuration at base, if rebased
	configIndex uint64            // its entry
	rebase      bool              // the log starts after base
	force       []raft.Server     // new members; nil: keep the existing ones
	cutFrom     uint64            // entries from here on are removed; 0: none
	logFirst    uint64            // bounds of the existing log
	logLast     uint64
	dropPending bool // the record of an interrupted installation cannot be read
	record      Record
}

// AssessLoss determines what a replica has left, given its hard-state record and the
// applied position of its tables. fallback is the configuration if none is left, nil if
// there may be other members. It changes nothing.
func AssessLoss(s logstore.Storage, rec Record, tables logstore.Position, fallback []raft.Server) (Loss, error) {
	l := Loss{base: tables, record: rec}
	var err error
	if l.logFirst, l.logLast, err = logstore.Bounds(s); err != nil {
		return l, err
	}
	if l.logFirst > tables.Index+1 {
		return l, fmt.Errorf("the tables are at entry %d and the log begins at entry %d: the entries in between are lost, so the replica cannot continue; restore the data directory from a backup",
			tables.Index, l.logFirst)
	}
	log := readUsable(s, tables, l.logFirst, l.logLast)
	l.Kept = max(tables.Index, log.last)
	if l.Kept < l.logLast {
		l.cutFrom = l.Kept + 1
	}
	snap, have, snapErr := CurrentSnapshot.Load(s)
	l.rebase = log.rebase || snapErr != nil || have && snap.State.Index > tables.Index || max(l.logLast, snap.Index) < tables.Index
	if l.logFirst > 0 && l.logFirst > snap.Index+1 { // the record of what was compacted is lost
		l.rebase = true
	}
	if l.rebase && tables.Index == 0 {
		l.rebase = have || snapErr != nil
	}
	var known *SnapshotRecord
	if snapErr == nil && have {
		known = &snap
	}
	if err := l.findMembers(&log, known, fallback); err != nil {
		return l, err
	}
	l.assessVote(s, log.term)
	_, _, pendingErr := PendingSnapshot.Load(s)
	l.dropPending = pendingErr != nil
	l.First, l.Last = l.Kept+1, max(l.logLast, rec.Last.Index, rec.Snapshot)
	if l.First <= l.Last || l.VoteLost || l.rebase || l.cutFrom > 0 || l.dropPending || rec.Missing {
		return l, nil
	}
	held, err := holdings(s)
	if err == nil {
		err = held.lacks(s, rec)
	}
	if err == nil {
		return l, ErrNoLoss
	}
	return l, nil // something that the next start would reject
}

// AssessDamage is AssessLoss for a replica with a record, the ends of whose log cannot be read. What can be is found entry by entry,
// from the snapshot on: there may be a gap before it, and many indexes.
func AssessDamage(logs *logstore.DB, group uint32, rec Record, tables logstore.Position, fallback []raft.Server) (Loss, error) {
	first := max(min(rec.Snapshot, tables.Index), 1)
	l, err := AssessLoss(logs.Damaged(group, first, max(rec.Last.Index, tables.Index)), rec, tables, fallback)
	l.logFirst = min(l.logFirst, 1) // unknown
	if errors.Is(err, ErrNoLoss) {  // what cannot be read is not on record
		err = nil
	}
	return l, err
}

// findMembers determines the members of the group: from the log, its snapshot (nil: none), or else the
// fallback.
func (l *Loss) findMembers(log *usable, snap *SnapshotRecord, fallback []raft.Server) error {
	var members raft.Configuration
	switch {
	case log.config != nil:
		members, l.configIndex = raft.DecodeConfiguration(log.config), log.configIndex
	case snap != nil && snap.ConfigIndex <= l.Kept:
		members, l.configIndex = snap.Config, snap.ConfigIndex
	case fallback != nil:
		members, l.configIndex = raft.Configuration{Servers: fallback}, l.base.Index
	default:
		return errors.New("the log has lost the members of the group, and there may be others: start the node, which copies the partition from them")
	}
	l.Members = members.Servers
	l.configIndex = min(l.configIndex, l.base.Index)
	l.config = raft.EncodeConfiguration(members)
	if log.config == nil && l.base.Index == 0 { // there is no other source of the members
		l.force = fallback
	}
	return nil
}

// assessVote determines the term in which to continue, and whether a term or a vote is lost.
// logTerm is the highest term in the log.
func (l *Loss) assessVote(s logstore.Storage, logTerm uint64) {
	rec := &l.record
	term, termErr := number(s, keyCurrentTerm)
	voteTerm, voteTermErr := number(s, keyVoteTerm)
	vote, voteErr := s.Get(keyVote)
	l.term = max(term, rec.Term, voteTerm, rec.VoteTerm, l.base.Term, logTerm)
	l.VoteLost = termErr != nil || voteTermErr != nil || voteErr != nil && !errors.Is(voteErr, logstore.ErrKeyNotFound) ||
		term < rec.Term || voteTerm < rec.VoteTerm || voteTerm == rec.VoteTerm && candidateHash(vote) != rec.candidate
}

// usable is the usable part of a log.
type usable struct {
	last, term  uint64 // last entry, and the highest term
	rebase      bool   // entries at or below the tables cannot be read
	config      []byte // the newest one, nil if there is none
	configIndex uint64
}

// readUsable reads a log from first to last, up to the first gap or damaged entry after the
// applied position of the tables.
func readUsable(s logstore.Storage, tables logstore.Position, first, last uint64) (r usable) {
	for i := first; i > 0 && i <= last; i++ {
		var log raft.Log
		if err := s.GetLog(i, &log); err != nil || log.Term < r.term {
			if i > tables.Index {
				return r
			}
			r = usable{rebase: true}
			continue
		}
		if i == tables.Index && log.Term != tables.Term { // the tables belong to another log
			return usable{rebase: true}
		}
		r.last, r.term = i, log.Term
		if log.Type == raft.LogConfiguration && validConfiguration(log.Data) {
			r.config, r.configIndex = log.Data, i
		}
	}
	return r
}

// validConfiguration reports whether a configuration can be decoded; on damage Raft panics.
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

// Force makes Accept replace the members, as ForceConfiguration does and under the same
// condition: the IDs were never used.
func (l *Loss) Force(servers []raft.Server) {
	l.Members, l.Replaced, l.force = servers, l.Members, servers
}

// Accept makes the log of a closed group continue from what is left, and ends its
// quarantine. It is for a replica that is the only voter: others may have what is lost
// here. It can be repeated after a crash.
func (l *Loss) Accept(logs *logstore.DB, group uint32, hard *File) error {
	s, err := logs.Storage(group)
	if errors.Is(err, logstore.ErrCorrupt) {
		l.cutFrom = l.Kept + 1 // also what was not found entry by entry
		if err = hard.dropDamaged(logs, group, l.logLast); err == nil {
			s, err = logs.Storage(group)
		}
	}
	if err != nil {
		return err
	}
	if err := l.apply(s); err != nil {
		return fmt.Errorf("accept the loss of group %d: %w", group, err)
	}
	if err := logs.Release(group); err != nil { // synced, including earlier removals
		return err
	}
	// Until here the record, or its absence, prevents the group from being opened.
	if l.record.Missing {
		return hard.AcceptUnknown(group, l.record.Replica)
	}
	record, err := hard.Group(group)
	if err != nil {
		return err
	}
	return record.Accept()
}

// dropDamaged removes what cannot be read from the log database, whose groups keep the rest. Entries of the group up to last may
// exist although they are not on record.
func (h *File) dropDamaged(logs *logstore.DB, group uint32, last uint64) error {
	extents := map[uint32]logstore.Extent{}
	for other, rec := range h.content().Groups {
		e := logstore.Extent{First: rec.Snapshot + 1, Last: rec.Last.Index}
		if other == group {
			e.Last = max(e.Last, last)
		}
		if e.Last > 0 || rec.Removing { // otherwise it is unknown which entries it has
			extents[other] = e
		}
	}
	return logs.DropDamaged(context.Background(), extents)
}

func (l *Loss) apply(s *logstore.PebbleStorage) error {
	if err := s.Set(keyRecovered, []byte{1}); err != nil {
		return err
	}
	if err := s.SetUint64(keyCurrentTerm, l.term); err != nil {
		return err
	}
	if l.VoteLost { // a vote without a candidate: the replica must not vote again in this term
		if err := errors.Join(s.Set(keyVote, nil), s.SetUint64(keyVoteTerm, l.term)); err != nil {
			return err
		}
	}
	if l.dropPending {
		if err := PendingSnapshot.Drop(s); err != nil {
			return err
		}
	}
	if l.cutFrom > 0 {
		if err := s.DeleteRange(l.cutFrom, max(l.cutFrom, l.logLast)+unrecorded); err != nil {
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

// applyRebase makes the log start after the tables.
func (l *Loss) applyRebase(s *logstore.PebbleStorage) error {
	if l.base.Index == 0 {
		return CurrentSnapshot.Drop(s)
	}
	rec := SnapshotRecord{
		Index: l.base.Index, Term: l.base.Term, State: l.base, ConfigIndex: l.configIndex, Config: raft.DecodeConfiguration(l.config),
	}
	if err := errors.Join(CurrentSnapshot.Save(s, rec), PendingSnapshot.Drop(s)); err != nil {
		return err
	}
	if l.logFirst == 0 || l.logFirst > l.base.Index {
		return nil
	}
	return s.DeleteRange(l.logFirst, l.base.Index)
}
