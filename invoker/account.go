package invoker

import "time"

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
