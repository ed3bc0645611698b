package raftgroup

import "time"

// This file decides when the queued commands become an entry, and which of them.

// commandQueue has the commands that wait for an entry. An entry takes the prompt ones first, then yielding ones, each
// in the order in which they were submitted. A yielding command also follows the prompt ones submitted before it.
type commandQueue[R any] struct {
	prompt, yielding fifo[R]
	// passed means that the first yielding command could have been in the last entry, which had no room for it.
	// The next entry begins with some, so that prompt ones cannot keep them waiting. If those exceed their share, the one
	// after it does not.
	passed bool
}

// leadingShare is the part of an entry, a quarter, for the yielding commands that it begins with. The first one may be larger.
const leadingShare = 4

// fifo has commands in the order of their submission.
type fifo[R any] struct {
	commands  []pendingCommand[R]
	bytes     int
	submitted uint64 // commands that were ever in it
}

// position is a point in the sequence of submissions: the number of commands of each kind so far.
type position struct{ prompt, yielding uint64 }

// selection is what an entry takes from the queue: the first commands of each kind.
type selection struct {
	prompt, yielding int
	bytes            int
	leading          int  // yielding commands that precede the prompt ones
	excess           bool // the first of these exceeds their share
}

func (f *fifo[R]) add(c pendingCommand[R]) {
	f.commands = append(f.commands, c)
	f.bytes += c.size
	f.submitted++
}

// taken returns how many commands have left it.
func (f *fifo[R]) taken() uint64 { return f.submitted - uint64(len(f.commands)) }

// drop removes the first n commands.
func (f *fifo[R]) drop(n int) {
	for i := range n {
		f.bytes -= f.commands[i].size
	}
	rest := copy(f.commands, f.commands[n:])
	clear(f.commands[rest:])
	f.commands = f.commands[:rest]
}

func (q *commandQueue[R]) len() int { return len(q.prompt.commands) + len(q.yielding.commands) }

func (q *commandQueue[R]) bytes() int { return q.prompt.bytes + q.yielding.bytes }

// end returns the position behind all commands so far.
func (q *commandQueue[R]) end() position {
	return position{prompt: q.prompt.submitted, yielding: q.yielding.submitted}
}

// reached reports whether no command before a position is in the queue.
func (q *commandQueue[R]) reached(at position) bool {
	return q.prompt.taken() >= at.prompt && q.yielding.taken() >= at.yielding
}

// add appends a command to those of its kind.
func (q *commandQueue[R]) add(c pendingCommand[R]) {
	if !c.yielding {
		q.prompt.add(c)
		return
	}
	c.after = q.prompt.submitted
	q.yielding.add(c)
}

// fitting selects commands for an entry that has commands of size bytes already. One command fits into an
// empty entry in any case.
func (q *commandQueue[R]) fitting(commands, size, maxCommands, maxBytes int) (s selection) {
	fits := func(next int) bool {
		n := commands + s.prompt + s.yielding
		return n < maxCommands && (n == 0 || size+s.bytes+next <= maxBytes)
	}
	takeYielding := func(mostCommands, mostBytes int) {
		for s.yielding < min(len(q.yielding.commands), mostCommands) {
			next := &q.yielding.commands[s.yielding]
			if next.after > q.prompt.taken()+uint64(s.prompt) || !fits(next.size) || s.yielding > 0 && s.bytes+next.size > mostBytes {
				return
			}
			s.bytes += next.size
			s.yielding++
		}
	}
	if commands == 0 && q.passed {
		share := maxBytes / leadingShare
		takeYielding(max(1, maxCommands/leadingShare), share)
		s.leading, s.excess = s.yielding, s.bytes > share
	}
	for s.prompt < len(q.prompt.commands) && fits(q.prompt.commands[s.prompt].size) {
		s.bytes += q.prompt.commands[s.prompt].size
		s.prompt++
	}
	takeYielding(maxCommands, maxBytes)
	return s
}

// appendTo appends the selected commands to a batch, in the order of their entry.
func (q *commandQueue[R]) appendTo(batch []pendingCommand[R], s selection) []pendingCommand[R] {
	batch = append(batch, q.yielding.commands[:s.leading]...)
	batch = append(batch, q.prompt.commands[:s.prompt]...)
	return append(batch, q.yielding.commands[s.leading:s.yielding]...)
}

// drop removes the selected commands.
func (q *commandQueue[R]) drop(s selection) {
	q.prompt.drop(s.prompt)
	q.yielding.drop(s.yielding)
	q.passed = !s.excess && len(q.yielding.commands) > 0 && q.yielding.commands[0].after <= q.prompt.taken()
}

// takeAll removes all commands, of which none is yielding. The queue reuses spare.
func (q *commandQueue[R]) takeAll(spare []pendingCommand[R]) []pendingCommand[R] {
	batch := q.prompt.commands
	q.prompt.commands, q.prompt.bytes = spare[:0], 0
	return batch
}

// readyLocked reports whether an entry should be proposed now, those of bulk aside.
func (p *Proposer[R]) readyLocked() bool {
	q := &p.queue
	n := q.len()
	if n == 0 {
		return false
	}
	if p.inFlight > 0 && p.inBytes+min(q.bytes(), p.cfg.MaxBatchBytes) > p.cfg.maxInFlightBytes {
		return false
	}
	if p.heldLocked() {
		return false
	}
	switch {
	case len(q.prompt.commands) >= p.cfg.MaxBatchCommands, q.prompt.bytes >= p.cfg.MaxBatchBytes:
		return p.inFlight < p.cfg.maxInFlight
	case n >= p.cfg.MaxBatchCommands, q.bytes() >= p.cfg.MaxBatchBytes:
		most := yieldingInFlight
		if p.alone {
			most = aloneInFlight
		}
		return p.inFlight < min(most, p.cfg.maxInFlight)
	case p.deferred == n && !p.due && len(p.bulk.commands) == 0:
		return false
	case p.inFlight == 0:
		return true
	}
	return p.alone && !p.storing && p.inFlight < min(aloneInFlight, p.cfg.maxInFlight)
}

// heldLocked reports whether nothing may be proposed, because Raft may refuse it, or may have refused an entry that
// has no outcome yet: what follows a refused command must not be stored.
func (p *Proposer[R]) heldLocked() bool {
	begun, running := p.group.transfers.state()
	if running || begun != p.transfers && (p.inFlight > 0 || p.bulk.inFlight) {
		return true
	}
	p.transfers = begun
	return false
}

// take removes one batch from the queue, nil if none should be proposed now; the result is
// valid until the next call.
func (p *Proposer[R]) take() []pendingCommand[R] {
	alone := p.group.fsm.alone()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.alone = alone
	if !p.readyLocked() {
		return nil
	}
	s := p.queue.fitting(0, 0, p.cfg.MaxBatchCommands, p.cfg.MaxBatchBytes)
	p.inFlight++
	p.newest++
	p.storing, p.open = true, nil
	p.inCommands += s.prompt + s.yielding
	p.inBytes += s.bytes
	if s.prompt == p.queue.len() { // the usual case: swap instead of copying
		p.spare = p.queue.takeAll(p.spare)
		p.deferred, p.due = 0, false
		return p.spare
	}
	p.spare = p.queue.appendTo(p.spare[:0], s)
	p.dequeueLocked(s)
	return p.spare
}

// dequeueLocked removes selected commands from the queue.
func (p *Proposer[R]) dequeueLocked(s selection) {
	for i := range s.prompt {
		if p.queue.prompt.commands[i].deferred {
			p.deferred--
		}
	}
	p.due = p.due && p.deferred > 0
	p.queue.drop(s)
}

// deferLocked counts the last command of the queue as deferred.
func (p *Proposer[R]) deferLocked() {
	p.deferred++
	if p.deferred > 1 {
		return // the timer of the first one is running
	}
	if p.deferral == nil {
		p.deferral = time.AfterFunc(p.cfg.maxDeferral, p.endDeferral)
		return
	}
	p.deferral.Reset(p.cfg.maxDeferral)
}

// endDeferral has the deferred commands proposed that have not met another one.
func (p *Proposer[R]) endDeferral() {
	p.mu.Lock()
	p.due = p.deferred > 0
	ready := p.readyLocked()
	p.mu.Unlock()
	if ready {
		p.wakeUp()
	}
}
