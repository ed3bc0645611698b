package raftgroup

import "time"

// This file decides when the queued commands become an entry, and how many of them.

// readyLocked reports whether an entry should be proposed now, those of bulk aside.
func (p *Proposer[R]) readyLocked() bool {
	if len(p.queue) == 0 {
		return false
	}
	if p.inFlight > 0 && p.inBytes+min(p.bytes, p.cfg.MaxBatchBytes) > p.cfg.maxInFlightBytes {
		return false
	}
	if p.heldLocked() {
		return false
	}
	switch {
	case len(p.queue) >= p.cfg.MaxBatchCommands, p.bytes >= p.cfg.MaxBatchBytes:
		return p.inFlight < p.cfg.maxInFlight
	case p.deferred == len(p.queue) && !p.due && len(p.bulk.commands) == 0:
		return false
	case p.inFlight == 0:
		return true
	}
	return p.alone && !p.storing && p.inFlight < min(smallInFlight, p.cfg.maxInFlight)
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
	p.inFlight++
	p.newest++
	p.storing, p.open = true, nil
	n, bytes := p.fittingLocked(0, 0)
	p.bytes -= bytes
	p.inCommands += n
	p.inBytes += bytes
	if n == len(p.queue) { // the usual case: swap instead of copying
		p.deferred, p.due = 0, false
		batch := p.queue
		p.queue, p.spare = p.spare[:0], batch
		return batch
	}
	p.spare = append(p.spare[:0], p.queue[:n]...)
	p.dequeueLocked(n)
	return p.spare
}

// fittingLocked returns the number and the bytes of the first queued commands that fit into an
// entry with that many commands and bytes. One command fits into an empty entry in any case.
func (p *Proposer[R]) fittingLocked(commands, size int) (n, bytes int) {
	for n < len(p.queue) && commands+n < p.cfg.MaxBatchCommands {
		next := p.queue[n].size
		if commands+n > 0 && size+bytes+next > p.cfg.MaxBatchBytes {
			break
		}
		bytes += next
		n++
	}
	return n, bytes
}

// dequeueLocked removes the first n commands from the queue.
func (p *Proposer[R]) dequeueLocked(n int) {
	for i := range n {
		if p.queue[i].deferred {
			p.deferred--
		}
	}
	p.due = p.due && p.deferred > 0
	rest := copy(p.queue, p.queue[n:])
	clear(p.queue[rest:])
	p.queue = p.queue[:rest]
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
