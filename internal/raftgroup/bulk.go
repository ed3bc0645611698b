package raftgroup

import (
	"fmt"
	"slices"
	"sync"
)

// BulkGate bounds the bytes of the entries of SubmitBulk that the proposers of a node have in
// flight: they share one write-ahead log, and whatever is written behind a large entry waits
// for it. Proposers enter in the order in which they first tried, so that a large entry is not
// kept out by smaller ones.
type BulkGate struct {
	limit int

	mu      sync.Mutex // covers the fields below
	used    int
	entries int
	waiting []chan<- struct{} // wake channels of proposers, at most one of each
}

// NewBulkGate returns a gate that admits entries of up to bytes bytes in total, or a single
// larger one.
func NewBulkGate(bytes int) *BulkGate { return &BulkGate{limit: bytes} }

// enter reserves room for an entry. If there is none, it returns false, and wake is signaled
// when there may be some.
func (g *BulkGate) enter(size int, wake chan<- struct{}) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	fits := g.entries == 0 || g.used+size <= g.limit
	i := slices.Index(g.waiting, wake)
	if !fits || i > 0 || i < 0 && len(g.waiting) > 0 {
		if i < 0 {
			g.waiting = append(g.waiting, wake)
		}
		return false
	}
	g.used, g.entries = g.used+size, g.entries+1
	if i == 0 {
		g.removeLocked(0)
	}
	return true
}

// leave gives the place of an entry back.
func (g *BulkGate) leave(size int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.used, g.entries = g.used-size, g.entries-1
	g.wakeLocked()
}

// forget removes a proposer that no longer waits.
func (g *BulkGate) forget(wake chan<- struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.waiting, wake); i >= 0 {
		g.removeLocked(i)
	}
}

func (g *BulkGate) removeLocked(i int) {
	g.waiting = slices.Delete(g.waiting, i, i+1)
	g.wakeLocked() // there may be room for the next one, too
}

// wakeLocked has the proposer try that has waited longest.
func (g *BulkGate) wakeLocked() {
	if len(g.waiting) == 0 {
		return
	}
	select {
	case g.waiting[0] <- struct{}{}:
	default:
	}
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
	// ones. Of other bulk commands one may precede every fifth of them.
	Ordered bool
}

// pendingBulk is a bulk command that has not been proposed yet.
type pendingBulk[R any] struct {
	Bulk
	after position // of the queue of Submit, to be reached before it is proposed
	done  Completion[R]
}

// bulkQueue is what waits of SubmitBulk. It is covered by the proposer's mutex.
type bulkQueue[R any] struct {
	commands []pendingBulk[R]
	bytes    int
	inFlight bool
	held     int // size of the one in flight, as counted by the gate
	row      int // Ordered commands proposed since the last other one
}

// orderedInRow bounds how many Ordered commands are proposed while another command waits.
const orderedInRow = 4

// next returns the index of the command to propose next. The queue is not empty.
func (q *bulkQueue[R]) next() int {
	if q.row < orderedInRow {
		return 0
	}
	return max(slices.IndexFunc(q.commands, func(c pendingBulk[R]) bool { return !c.Ordered }), 0)
}

// take removes a command.
func (q *bulkQueue[R]) take(i int) pendingBulk[R] {
	c := q.commands[i]
	q.commands = slices.Delete(q.commands, i, i+1)
	if len(q.commands) == 0 {
		q.commands = nil
	}
	if q.bytes -= c.Size; c.Ordered {
		q.row++
	} else {
		q.row = 0
	}
	return c
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
	if n := len(q.commands); n >= p.cfg.maxQueueCommands || n > 0 && q.bytes+command.Size > p.cfg.maxQueueBytes {
		p.group.cfg.Metrics.refused(1, ErrOverloaded)
		return ErrOverloaded
	}
	c := pendingBulk[R]{Bulk: command, done: done}
	if command.Ordered {
		c.after = p.queue.end()
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
	if q.inFlight || len(q.commands) == 0 || p.heldLocked() {
		return c, false
	}
	i := q.next()
	if next := &q.commands[i]; !p.queue.reached(next.after) || !p.cfg.Bulk.enter(next.Size, p.wake) {
		return c, false
	}
	c = q.take(i)
	q.inFlight, q.held = true, c.Size
	p.open = nil // what is submitted later must not overtake an ordered command
	return c, true
}

// proposeBulk encodes and proposes one bulk command.
func (p *Proposer[R]) proposeBulk(c pendingBulk[R]) {
	batch := []pendingCommand[R]{{done: c.done}}
	data, err := c.Encode()
	if len(data) > p.cfg.maxCommandBytes {
		err = fmt.Errorf("%w: a command of %d bytes, at most %d", ErrTooLarge, len(data), p.cfg.maxCommandBytes)
	}
	if err == nil {
		batch[0].data, batch[0].size = data, len(data)
		if _, ok := p.propose(batch, bulkNumber); ok {
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
	p.resetOrderLocked()
	held, more := p.bulk.held, len(p.bulk.commands) > 0 || p.readyLocked()
	p.mu.Unlock()
	p.cfg.Bulk.leave(held)
	if more {
		p.wakeUp()
	}
}
