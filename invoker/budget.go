package invoker

import (
	"sync"
	"time"
)

// budget is the memory that the attempts of a node may hold: data to replay that has not
// been sent, and data from endpoints that is not in the log yet. It counts payloads, not
// allocation overhead.
//
// When it is used up, attempts wait: starting ones, those that would read more, and those
// whose function has responded. If all memory were held by waiting attempts, they would deadlock. Therefore one attempt at a
// time may overdraw the budget, until everything that it has received is in the log.
//
// Attempts with little data do not wait behind those with much: see reserved.
type budget struct {
	limit   int // bytes; 0: none
	ceiling int // bytes of one attempt; 0: none

	mu             sync.Mutex // guards the fields below and all accounts
	used           int
	reserved       int            // attempts that use the reserve
	reserveUsed    int            // bytes of used that count against the reserve instead of the limit
	readWaiters    fifo[*account] // waiting to continue reading
	holdWaiters    fifo[*account] // waiting to receive the response of a function
	startWaiters   fifo[*account] // waiting to start, with more than smallTransit
	smallStarts    fifo[*account] // waiting to start, with less
	overtaken      int            // how many small ones have started since the first large one is the first
	overdrawn      *account       // reads although the budget is used up
	progress       time.Time      // of the overdrawn account
	overdraftTimer *time.Timer
}

// overdraftTime is how long the attempt that may overdraw the budget may make no progress
// before another one may as well.
const overdraftTime = time.Second

// Memory returns the bytes of payloads that attempts hold, and their limit; 0: none.
func (iv *Invoker) Memory() (used, limit int) {
	iv.memory.mu.Lock()
	defer iv.memory.mu.Unlock()
	return iv.memory.used, iv.memory.limit
}

// account is the part of the budget that one attempt holds.
type account struct {
	b *budget

	// Guarded by b.mu.
	in, out int           // bytes in transit to the endpoint and from it
	need    int           // bytes to start with, or to hold
	granted chan struct{} // closed when the wait is over; nil: not waiting
	reserve bool          // it uses the reserve
	closed  bool
}

const (
	// smallTransit is how many bytes an attempt that uses the reserve may hold in each
	// direction.
	smallTransit = 64 << 10
	// reserveShare bounds the reserve to one part in reserveShare of the limit, in addition
	// to it.
	reserveShare = 4
)

// reserved reports whether the attempt may hold n bytes although the budget is used up: few
// bytes, in a reserve for such attempts. b.mu is held.
func (c *account) reserved(n int) bool {
	if n > smallTransit {
		return false
	}
	if !c.reserve && (c.b.reserved+1)*smallTransit <= c.b.limit/reserveShare {
		c.reserve = true
		c.b.reserved++
		c.b.reserveUsed += c.inReserve()
		c.b.admit()
	}
	return c.reserve
}

// inReserve is how many bytes of the attempt count against the reserve.
func (c *account) inReserve() int {
	if !c.reserve {
		return 0
	}
	return min(c.in+c.out, smallTransit)
}

// begin reserves the memory that the attempt starts with. It returns a channel to wait for,
// nil if the attempt may start immediately.
func (c *account) begin(need int) <-chan struct{} {
	b := c.b
	b.mu.Lock()
	defer b.mu.Unlock()
	c.need = need
	free := b.smallStarts.len() == 0 && b.fits(need)
	overtakes := free && need <= smallTransit
	if c.closed || free && b.startWaiters.len() == 0 || c.reserved(need) || overtakes && b.overtakes() {
		c.add(&c.in, need)
		return nil
	}
	c.granted = make(chan struct{})
	if need > smallTransit {
		b.startWaiters.push(c)
	} else {
		b.smallStarts.push(c)
	}
	return c.granted
}

// overtakes counts a small attempt that starts before the large ones that wait. It returns false if as many
// have overtaken the first of these as fit into the reserve: those that follow wait behind it, so that it starts as soon
// as they have ended.
func (b *budget) overtakes() bool {
	if b.overtaken >= b.limit/reserveShare/smallTransit {
		return false
	}
	b.overtaken++
	return true
}

// loaded adjusts the reservation to the actual size. If that does not fit, the reservation
// is released: the attempt has to release what it has loaded, and begin again.
func (c *account) loaded(size int) bool {
	b := c.b
	b.mu.Lock()
	defer b.mu.Unlock()
	more := size - c.in
	if !c.closed && more > 0 && !b.fits(more) && b.counted() > c.in-c.inReserve() && !c.reserved(size) {
		c.add(&c.in, -c.in)
		b.admit()
		return false
	}
	c.add(&c.in, more)
	b.admit()
	return true
}

// unload releases the memory that the attempt began with: it needs more.
func (c *account) unload() {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	c.add(&c.in, -c.in)
	c.b.admit()
}

// send counts bytes that wait to be sent; false if the attempt would hold too many.
func (c *account) send(n int) bool {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	if c.exceeds(n) {
		return false
	}
	c.add(&c.in, n)
	return true
}

// sent removes bytes that no longer wait.
func (c *account) sent(n int) {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	c.add(&c.in, -min(n, c.in))
	c.b.admit()
}

// received sets how many bytes of the endpoint are held. It returns false if that is too
// much for one attempt.
func (c *account) received(out int) bool {
	b := c.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if out == c.out {
		return true
	}
	if c.exceeds(out - c.out) {
		return false
	}
	c.add(&c.out, out-c.out)
	if b.overdrawn == c {
		if b.progress = time.Now(); out == 0 {
			b.overdrawn = nil
		}
	}
	b.admit()
	return true
}

// read returns a channel to wait for before reading more, nil if the attempt may read
// immediately.
func (c *account) read() <-chan struct{} {
	b := c.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.closed || c.out == 0 || b.overdrawn == c || b.fits(0) && b.readWaiters.len() == 0 || c.reserved(c.out) {
		return nil
	}
	c.granted = make(chan struct{})
	b.readWaiters.push(c)
	grant := c.granted
	b.admit()
	return grant
}

// hold adds n bytes of a response that must be received as a whole. It returns a channel to wait
// for before receiving them, nil if the attempt may receive them immediately; ok is false if that
// is too much for one attempt. Unlike what read counts, they are not in memory yet, so they count
// from the grant on.
func (c *account) hold(n int) (grant <-chan struct{}, ok bool) {
	b := c.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.exceeds(n) {
		return nil, false
	}
	if c.closed || b.overdrawn == c || b.fits(n) && b.readWaiters.len() == 0 && b.holdWaiters.len() == 0 || c.reserved(c.out+n) {
		if c.add(&c.out, n); b.overdrawn == c {
			b.progress = time.Now()
		}
		return nil, true
	}
	c.need, c.granted = n, make(chan struct{})
	b.holdWaiters.push(c)
	grant = c.granted
	b.admit()
	return grant, true
}

// close releases everything and ends a wait.
func (c *account) close() {
	b := c.b
	b.mu.Lock()
	defer b.mu.Unlock()
	c.add(&c.in, -c.in)
	c.add(&c.out, -c.out)
	c.closed = true
	if c.reserve {
		b.reserveUsed -= c.inReserve()
		c.reserve = false
		b.reserved--
	}
	c.wake()
	if b.overdrawn == c {
		b.overdrawn = nil
	}
	b.admit()
}

func (c *account) wake() {
	if c.granted != nil {
		close(c.granted)
		c.granted = nil
	}
}

func (c *account) add(to *int, n int) {
	if !c.closed {
		before := c.inReserve()
		*to += n
		c.b.used += n
		c.b.reserveUsed += c.inReserve() - before
	}
}

func (c *account) exceeds(n int) bool {
	return c.b.ceiling > 0 && n > 0 && c.in+c.out+n > c.b.ceiling
}

// fits reports whether n more bytes are within the limit. A request above the limit fits
// when nothing else is in use.
func (b *budget) fits(n int) bool {
	used := b.counted()
	return b.limit == 0 || used == 0 || used < b.limit && used+n <= b.limit
}

// counted is what counts against the limit: attempts in the reserve must not keep a large one
// waiting.
func (b *budget) counted() int { return b.used - b.reserveUsed }

// admit resumes waiting attempts that fit: first those that read, so that the memory they
// hold is released, then those whose function has ended. Each queue is FIFO.
func (b *budget) admit() {
	for b.readWaiters.len() > 0 {
		c := b.readWaiters.first()
		if !b.mayReceive(c, 0) {
			return
		}
		b.readWaiters.pop()
		c.wake()
	}
	for b.holdWaiters.len() > 0 {
		c := b.holdWaiters.first()
		if !b.mayReceive(c, c.need) {
			return
		}
		b.holdWaiters.pop()
		c.add(&c.out, c.need)
		c.wake()
	}
	for b.admitStart() {
	}
}

// admitStart resumes the next attempt that waits to start: the first small one, unless too many of them have
// overtaken the first large one.
func (b *budget) admitStart() bool {
	queue := &b.startWaiters
	if b.smallStarts.len() > 0 {
		c := b.smallStarts.first()
		if c.closed || b.fits(c.need) && (b.startWaiters.len() == 0 || b.overtakes()) {
			queue = &b.smallStarts
		}
	}
	if queue.len() == 0 {
		return false
	}
	c := queue.first()
	if !c.closed && !b.fits(c.need) {
		return false
	}
	if queue.pop(); queue == &b.startWaiters {
		b.overtaken = 0
	}
	c.add(&c.in, c.need)
	c.wake()
	return true
}

// mayReceive reports whether the first of the waiting attempts may receive n more bytes: because they
// fit, or because it is the one that may overdraw.
func (b *budget) mayReceive(c *account, n int) bool {
	if c.closed || b.fits(n) {
		return true
	}
	if b.overdrawn != nil {
		b.watchOverdraft()
		return false
	}
	b.overdrawn, b.progress = c, time.Now()
	return true
}

// watchOverdraft checks periodically whether the overdraft makes progress, while others
// wait for it.
func (b *budget) watchOverdraft() {
	if b.overdraftTimer == nil {
		b.overdraftTimer = time.AfterFunc(overdraftTime, b.endOverdraft)
	}
}

// endOverdraft ends an overdraft without progress.
func (b *budget) endOverdraft() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.overdraftTimer = nil
	if b.overdrawn != nil && time.Since(b.progress) >= overdraftTime {
		b.overdrawn = nil
	}
	b.admit()
}
