package invoker

import "time"

// account is the part of the budget that one attempt holds.
type account struct {
	b *budget

	// Covered by b.mu.
	in, out int           // bytes in transit to the endpoint and from it
	need    int           // bytes to start with, or to hold
	granted chan struct{} // closed when the wait is over; nil: not waiting
	reserve bool          // it uses the reserve
	closed  bool
}

// begin reserves the memory that the attempt starts with. It returns a channel to wait for,
// nil if the attempt may start immediately.
func (c *account) begin(need int) <-chan struct{} {
	b := c.b
	b.mu.Lock()
	defer b.mu.Unlock()
	c.need = need
	free := b.smallStarts.len() == 0 && b.fitsLocked(need)
	overtakes := free && need <= smallTransit
	if c.closed || free && b.startWaiters.len() == 0 || c.reservedLocked(need) || overtakes && b.overtakesLocked() {
		c.addLocked(&c.in, need)
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

// loaded adjusts the reservation to the actual size. If that does not fit, the reservation
// is released: the attempt has to release what it has loaded, and begin again.
func (c *account) loaded(size int) bool {
	b := c.b
	b.mu.Lock()
	defer b.mu.Unlock()
	more := size - c.in
	if !c.closed && more > 0 && !b.fitsLocked(more) && b.countedLocked() > c.in-c.inReserveLocked() && !c.reservedLocked(size) {
		c.addLocked(&c.in, -c.in)
		b.admitLocked()
		return false
	}
	c.addLocked(&c.in, more)
	b.admitLocked()
	return true
}

// unload releases the memory that the attempt began with: it needs more.
func (c *account) unload() {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	c.addLocked(&c.in, -c.in)
	c.b.admitLocked()
}

// send counts bytes that wait to be sent; false if the attempt would hold too many.
func (c *account) send(n int) bool {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	if c.exceedsLocked(n) {
		return false
	}
	c.addLocked(&c.in, n)
	return true
}

// sent removes bytes that no longer wait.
func (c *account) sent(n int) {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	c.addLocked(&c.in, -min(n, c.in))
	c.b.admitLocked()
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
	if c.exceedsLocked(out - c.out) {
		return false
	}
	c.addLocked(&c.out, out-c.out)
	if b.overdrawn == c {
		if b.progress = time.Now(); out == 0 {
			b.overdrawn = nil
		}
	}
	b.admitLocked()
	return true
}

// read returns a channel to wait for before reading more, nil if the attempt may read
// immediately.
func (c *account) read() <-chan struct{} {
	b := c.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.closed || c.out == 0 || b.overdrawn == c || b.fitsLocked(0) && b.readWaiters.len() == 0 || c.reservedLocked(c.out) {
		return nil
	}
	c.granted = make(chan struct{})
	b.readWaiters.push(c)
	grant := c.granted
	b.admitLocked()
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
	if c.exceedsLocked(n) {
		return nil, false
	}
	if c.closed || b.overdrawn == c || b.fitsLocked(n) && b.readWaiters.len() == 0 && b.holdWaiters.len() == 0 || c.reservedLocked(c.out+n) {
		if c.addLocked(&c.out, n); b.overdrawn == c {
			b.progress = time.Now()
		}
		return nil, true
	}
	c.need, c.granted = n, make(chan struct{})
	b.holdWaiters.push(c)
	grant = c.granted
	b.admitLocked()
	return grant, true
}

// close releases everything and ends a wait.
func (c *account) close() {
	b := c.b
	b.mu.Lock()
	defer b.mu.Unlock()
	c.addLocked(&c.in, -c.in)
	c.addLocked(&c.out, -c.out)
	c.closed = true
	if c.reserve {
		b.reserveUsed -= c.inReserveLocked()
		c.reserve = false
		b.reserved--
	}
	c.wakeLocked()
	if b.overdrawn == c {
		b.overdrawn = nil
	}
	b.admitLocked()
}

func (c *account) wakeLocked() {
	if c.granted != nil {
		close(c.granted)
		c.granted = nil
	}
}

func (c *account) addLocked(to *int, n int) {
	if !c.closed {
		before := c.inReserveLocked()
		*to += n
		c.b.used += n
		c.b.reserveUsed += c.inReserveLocked() - before
	}
}

func (c *account) exceedsLocked(n int) bool {
	return c.b.ceiling > 0 && n > 0 && c.in+c.out+n > c.b.ceiling
}

// reservedLocked reports whether the attempt may hold n bytes although the budget is used up: few
// bytes, in a reserve for such attempts.
func (c *account) reservedLocked(n int) bool {
	if n > smallTransit {
		return false
	}
	if !c.reserve && (c.b.reserved+1)*smallTransit <= c.b.limit/reserveShare {
		c.reserve = true
		c.b.reserved++
		c.b.reserveUsed += c.inReserveLocked()
		c.b.admitLocked()
	}
	return c.reserve
}

// inReserveLocked is how many bytes of the attempt count against the reserve.
func (c *account) inReserveLocked() int {
	if !c.reserve {
		return 0
	}
	return min(c.in+c.out, smallTransit)
}
