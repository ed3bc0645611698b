package hardstate

import (
	"fmt"
	"hash/fnv"

	"platform/internal/raftgroup/logstore"
)

// Record returns the current record.
func (g *State) Record() Record {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.rec.export()
}

// Record is the record of a group in the hard-state file.
type Record struct {
	// Replica is the number of the replica: how many predecessors of it the node has had. It
	// is part of its Raft server ID, so that no predecessor is ever mistaken for it.
	Replica uint32
	// Removing means that the data of the previous replica has not been removed yet.
	Removing bool
	Term     uint64
	VoteTerm uint64            // of the last vote given
	Last     logstore.Position // last synced entry of the log; Term 0: unknown
	Snapshot uint64            // index of the snapshot record
	// Missing means that there should be a record, but it is missing or damaged.
	Missing bool

	candidate uint64 // that received the last vote: hash
}

// update changes the record, also in the file, which it syncs if durable is set.
func (g *State) update(durable bool, change func(*stored)) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	next := g.rec
	change(&next)
	next.seq++
	if err := g.write(&next); err != nil {
		return fmt.Errorf("write hard state of group %d: %w", g.group, err)
	}
	g.rec = next
	if durable {
		return g.owner.Sync()
	}
	return nil
}

func (g *State) write(r *stored) error {
	var slot [slotSize]byte
	r.encode(slot[:], g.group)
	_, err := g.owner.file.WriteAt(slot[:], offsetOf(g.group, r.seq))
	g.owner.dirty.Store(true)
	return err
}

// stored records that the log is synced up to an entry.
func (g *State) stored(last logstore.Position) error {
	return g.update(false, func(r *stored) { r.last, r.lastTerm = last.Index, last.Term })
}

// cut durably records that the log is about to be truncated after an entry.
func (g *State) cut(last uint64) error {
	return g.update(true, func(r *stored) { r.last, r.lastTerm = last, 0 })
}

// snapshot records the index of the snapshot record.
func (g *State) snapshot(index uint64) error {
	return g.update(false, func(r *stored) { r.snapshot = index })
}

// setTerm records the current term.
func (g *State) setTerm(term uint64) error {
	return g.update(false, func(r *stored) { r.term = term })
}

// setVote durably records the vote in a term.
func (g *State) setVote(term uint64, candidate []byte) error {
	return g.update(true, func(r *stored) { r.voteTerm, r.candidate = term, candidateHash(candidate) })
}

// candidateHash distinguishes candidates; 0 is none.
func candidateHash(candidate []byte) uint64 {
	if len(candidate) == 0 {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write(candidate) // never fails
	return h.Sum64()
}
