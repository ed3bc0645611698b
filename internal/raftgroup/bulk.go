package raftgroup

import (
	"fmt"
	"slices"
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

// Bulk is a command for SubmitBulk.
type Bulk struct {
	// Size counts in the bounds of the queue; the encoded command is about as large.
	Size int
	// Encode encodes the command when it is proposed: until then it takes no memory in
	// addition to what it is encoded from. An error completes the command, which was then not
	// proposed. It is called at most once.
	Encode func() ([]byte, error)
	// Ordered commands follow all that were submitted before them by Submit or as Ordered
	// ones, and precede other bulk commands.
	Ordered bool
}

// pendingBulk is a bulk command that has not been proposed yet.
type pendingBulk[R any] struct {
	Bulk
	after uint64 // number of commands of Submit to propose before it
	done  Completion[R]
}

// bulkQueue is what waits of SubmitBulk. It is guarded by the proposer's mutex.
type bulkQueue[R any] struct {
	commands []pendingBulk[R]
	bytes    int
	inFlight bool
}

// add puts a command behind those of its kind.
func (q *bulkQueue[R]) add(c pendingBulk[R]) {
	i := len(q.commands)
	for c.Ordered && i > 0 && !q.commands[i-1].Ordered {
		i--
	}
	q.commands = slices.Insert(q.commands, i, c)
}

// SubmitBulk is Submit of a large command that commands of Submit may overtake while it
// waits. It has a log entry to itself. The bounds of the queue apply to bulk commands
// separately.
func (p *Proposer[R]) SubmitBulk(command Bulk, done Completion[R]) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return ErrStopped
	}
	q := &p.bulk
	if n := len(q.commands); n >= p.cfg.MaxQueueCommands || n > 0 && q.bytes+command.Size > p.cfg.MaxQueueBytes {
		p.group.cfg.Metrics.refused(1, ErrOverloaded)
		return ErrOverloaded
	}
	c := pendingBulk[R]{Bulk: command, done: done}
	if command.Ordered {
		c.after = p.submitted
	}
	q.add(c)
	q.bytes += command.Size
	if !q.inFlight {
		p.wakeUp()
	}
	return nil
}

// takeBulk removes one bulk command from the queue; false if none should be proposed now.
func (p *Proposer[R]) takeBulk() (c pendingBulk[R], ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := &p.bulk
	if q.inFlight || len(q.commands) == 0 || q.commands[0].after > p.submitted-uint64(len(p.queue)) || !p.cfg.Bulk.enter(p.wake) {
		return c, false
	}
	q.inFlight = true
	c, q.commands[0] = q.commands[0], c
	q.bytes -= c.Size
	if q.commands = q.commands[1:]; len(q.commands) == 0 {
		q.commands = nil
	}
	return c, true
}

// proposeBulk encodes and proposes one bulk command.
func (p *Proposer[R]) proposeBulk(c pendingBulk[R]) {
	batch := []pendingCommand[R]{{done: c.done}}
	data, err := c.Encode()
	if len(data) > p.cfg.MaxCommandBytes {
		err = fmt.Errorf("%w: a command of %d bytes, at most %d", ErrTooLarge, len(data), p.cfg.MaxCommandBytes)
	}
	if err == nil {
		batch[0].data, batch[0].size = data, len(data)
		if _, ok := p.propose(batch, true); ok {
			return
		}
	} else {
		p.fail(batch, err)
	}
	p.bulkLanded()
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
