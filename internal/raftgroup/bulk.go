package raftgroup

import (
	"fmt"
	"sync"
)

// BulkGate bounds the entries of SubmitBulk that the proposers of a node have in flight:
// they share one write-ahead log, and whatever is written behind a large entry waits for it.
type BulkGate struct {
	mu      sync.Mutex // guards the fields below
	free    int
	waiting []chan<- struct{} // wake channels of proposers, at most one of each
}

// NewBulkGate returns a gate that lets n entries be in flight.
func NewBulkGate(n int) *BulkGate { return &BulkGate{free: n} }

// enter takes a place. If there is none, it returns false, and wake is signaled when a
// place may be free.
func (g *BulkGate) enter(wake chan<- struct{}) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.free > 0 {
		g.free--
		return true
	}
	for _, w := range g.waiting {
		if w == wake {
			return false
		}
	}
	g.waiting = append(g.waiting, wake)
	return false
}

// leave gives a place back.
func (g *BulkGate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.free++
	for _, wake := range g.waiting {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
	g.waiting = g.waiting[:0]
}

// bulkQueue is what waits of SubmitBulk. It is guarded by the proposer's mutex.
type bulkQueue[R any] struct {
	commands []pendingCommand[R]
	bytes    int
	inFlight bool
}

// SubmitBulk is Submit of a large command whose order relative to others does not matter:
// commands of Submit overtake it while it waits, and it has a log entry to itself. The
// bounds of the queue apply to bulk commands separately.
func (p *Proposer[R]) SubmitBulk(command []byte, done Completion[R]) error {
	if len(command) > p.cfg.MaxCommandBytes {
		p.group.cfg.Metrics.refused(1, ErrTooLarge)
		return fmt.Errorf("%w: a command of %d bytes, at most %d", ErrTooLarge, len(command), p.cfg.MaxCommandBytes)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return ErrStopped
	}
	q := &p.bulk
	if n := len(q.commands); n >= p.cfg.MaxQueueCommands || n > 0 && q.bytes+len(command) > p.cfg.MaxQueueBytes {
		p.group.cfg.Metrics.refused(1, ErrOverloaded)
		return ErrOverloaded
	}
	q.commands = append(q.commands, pendingCommand[R]{data: command, size: len(command), done: done})
	q.bytes += len(command)
	if !q.inFlight {
		p.wakeUp()
	}
	return nil
}

// takeBulk removes one bulk command from the queue, nil if none should be proposed now.
func (p *Proposer[R]) takeBulk() []pendingCommand[R] {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := &p.bulk
	if q.inFlight || len(q.commands) == 0 || !p.cfg.Bulk.enter(p.wake) {
		return nil
	}
	q.inFlight = true
	batch := []pendingCommand[R]{q.commands[0]}
	q.bytes -= batch[0].size
	q.commands[0] = pendingCommand[R]{}
	if q.commands = q.commands[1:]; len(q.commands) == 0 {
		q.commands = nil
	}
	return batch
}

// bulkLanded counts a bulk entry that is no longer under way.
func (p *Proposer[R]) bulkLanded() {
	p.mu.Lock()
	p.bulk.inFlight = false
	more := len(p.bulk.commands) > 0
	p.mu.Unlock()
	p.cfg.Bulk.leave()
	if more {
		p.wakeUp()
	}
}
