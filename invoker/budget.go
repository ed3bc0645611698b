package invoker

import (
	"sync"
	"time"
)

// budget is the memory that the attempts of a node may hold: what they replay and
// has not been sent, and what endpoints sent and is not in the log yet. It counts
// payloads, not what is allocated around them.
//
// When it is used up, attempts wait: those that begin, and those that would read
// more. Waiting for memory that others hold, who wait as well, could go on for
// ever. Therefore one attempt at a time may overdraw the budget, until all it has
// received is in the log.
type budget struct {
	limit   int // bytes; 0: none
	ceiling int // bytes of one attempt; 0: none

	mu        sync.Mutex // guards the fields below and all accounts
	used      int
	reading   []*account // wait to read on, in order
	beginning []*account // wait to begin, in order
	overdrawn *account   // the one that reads although the budget is used up
	progress  time.Time  // when that last happened
	patience  *time.Timer
}

// overdraftTime is how long the attempt that may overdraw the budget may do nothing
// until the next one is allowed as well.
const overdraftTime = time.Second

// account is what one attempt holds of the budget.
type account struct {
	b *budget

	// Guarded by b.mu.
	in, out int           // bytes on their way to the endpoint and from it
	need    int           // bytes to begin with
	turn    chan struct{} // closed when the wait is over; nil: it does not wait
	closed  bool
}

// begin reserves what the attempt begins with. It returns what to wait for, nil if
// it may begin at once.
func (c *account) begin(need int) <-chan struct{} {
	b := c.b
	b.mu.Lock()
	defer b.mu.Unlock()
	c.need = need
	if c.closed || len(b.beginning) == 0 && b.fits(need) {
		c.add(&c.in, need)
		return nil
	}
	c.turn = make(chan struct{})
	b.beginning = append(b.beginning, c)
	return c.turn
}

// loaded corrects the reservation to what the attempt really begins with. If that
// does not fit, the reservation is given up: the attempt has to let go of what it
// has loaded, and begin again.
func (c *account) loaded(size int) bool {
	b := c.b
	b.mu.Lock()
	defer b.mu.Unlock()
	more := size - c.in
	if !c.closed && more > 0 && !b.fits(more) && b.used > c.in {
		c.add(&c.in, -c.in)
		b.admit()
		return false
	}
	c.add(&c.in, more)
	return true
}

// send counts bytes that wait to be sent; false if that were too many.
func (c *account) send(n int) bool {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	if c.exceeds(n) {
		return false
	}
	c.add(&c.in, n)
	return true
}

// sent counts bytes that do not wait any more.
func (c *account) sent(n int) {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	c.add(&c.in, -min(n, c.in))
	c.b.admit()
}

// received sets how many bytes of the endpoint are held. It returns false if that
// is too much for one attempt.
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

// read returns what to wait for before reading on, nil if that may be at once.
func (c *account) read() <-chan struct{} {
	b := c.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.closed || c.out == 0 || b.overdrawn == c || b.fits(0) && len(b.reading) == 0 {
		return nil
	}
	c.turn = make(chan struct{})
	b.reading = append(b.reading, c)
	turn := c.turn
	b.admit()
	return turn
}

// close gives everything back and ends a wait.
func (c *account) close() {
	b := c.b
	b.mu.Lock()
	defer b.mu.Unlock()
	c.add(&c.in, -c.in)
	c.add(&c.out, -c.out)
	c.closed = true
	c.wake()
	if b.overdrawn == c {
		b.overdrawn = nil
	}
	b.admit()
}

func (c *account) wake() {
	if c.turn != nil {
		close(c.turn)
		c.turn = nil
	}
}

func (c *account) add(to *int, n int) {
	if !c.closed {
		*to += n
		c.b.used += n
	}
}

func (c *account) exceeds(n int) bool {
	return c.b.ceiling > 0 && n > 0 && c.in+c.out+n > c.b.ceiling
}

// fits reports whether n bytes more are within the limit. One that wants more than
// there ever is gets it when nobody else has any.
func (b *budget) fits(n int) bool {
	return b.limit == 0 || b.used == 0 || b.used < b.limit && b.used+n <= b.limit
}

// admit lets those go on who can: first who reads, so that what they hold comes to
// an end. Each queue is in order of arrival.
func (b *budget) admit() {
	for len(b.reading) > 0 {
		c := b.reading[0]
		if !c.closed && !b.fits(0) {
			if b.overdrawn != nil {
				b.watch()
				return
			}
			b.overdrawn, b.progress = c, time.Now()
		}
		b.reading = b.reading[1:]
		c.wake()
	}
	for len(b.beginning) > 0 {
		c := b.beginning[0]
		if !c.closed && !b.fits(c.need) {
			return
		}
		b.beginning = b.beginning[1:]
		c.add(&c.in, c.need)
		c.wake()
	}
}

// watch looks whether the overdraft is used, as long as others wait for it.
func (b *budget) watch() {
	if b.patience == nil {
		b.patience = time.AfterFunc(overdraftTime, b.lose)
	}
}

// lose ends an overdraft that is not used.
func (b *budget) lose() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.patience = nil
	if b.overdrawn != nil && time.Since(b.progress) >= overdraftTime {
		b.overdrawn = nil
	}
	b.admit()
}
