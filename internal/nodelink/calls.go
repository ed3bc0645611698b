package nodelink

import "sync"

// Calls are the requests of one stream that wait for a response. Responses have the sequence
// numbers of their requests and arrive in any order.
type Calls[R any] struct {
	ended chan struct{} // closed by End

	mu      sync.Mutex // covers the fields below
	last    uint64     // sequence number
	pending map[uint64]chan *R
	err     error
}

// NewCalls returns the calls of a new stream.
func NewCalls[R any]() *Calls[R] {
	return &Calls[R]{ended: make(chan struct{}), pending: make(map[uint64]chan *R)}
}

// Begin registers a request, which gets one response at most.
func (c *Calls[R]) Begin() (sequence uint64, response <-chan *R) {
	ch := make(chan *R, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	if c.pending != nil {
		c.pending[c.last] = ch
	}
	return c.last, ch
}

// Forget ends the wait for a response.
func (c *Calls[R]) Forget(sequence uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pending, sequence)
}

// Respond passes on a response, which is dropped if the request was forgotten.
func (c *Calls[R]) Respond(sequence uint64, r *R) {
	c.mu.Lock()
	ch := c.pending[sequence]
	delete(c.pending, sequence)
	c.mu.Unlock()
	if ch != nil {
		ch <- r
	}
}

// Pending reports whether a request waits for a response.
func (c *Calls[R]) Pending() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.pending) > 0
}

// End records that the stream has ended with err; no more responses will arrive.
func (c *Calls[R]) End(err error) {
	c.mu.Lock()
	c.err, c.pending = err, nil
	c.mu.Unlock()
	close(c.ended)
}

// Ended is closed when the stream has ended.
func (c *Calls[R]) Ended() <-chan struct{} { return c.ended }

// Broken reports whether the stream has ended.
func (c *Calls[R]) Broken() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// Err returns why the stream has ended.
func (c *Calls[R]) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}
