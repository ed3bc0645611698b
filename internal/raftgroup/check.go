package raftgroup

import "platform/internal/raftgroup/wire"

// EntryChecker is implemented by state machines that can tell before an entry is stored that
// they could not apply it. Entries of proposers are valid, so only a faulty or hostile leader
// sends others; a committed one would end the process at each start.
type EntryChecker interface {
	// CheckEntry returns an error for an entry that no release applies. It may be called
	// concurrently.
	CheckEntry(data []byte) error
}

// check rejects requests of other nodes that no member would send.
func (p *port) check(request any) error {
	var r wire.Receiver
	if checker, ok := p.group.fsm.sm.(EntryChecker); ok {
		r.CheckEntry = checker.CheckEntry
	}
	if running := p.outgoing.Load().raft.Load(); running != nil {
		r.MaxTerm = running.CurrentTerm() + wire.MaxTermStep
	}
	return r.Check(request)
}
