// Package broadcast notifies any number of goroutines that something has changed.
package broadcast

import "sync"

// Channel notifies waiting goroutines. The zero value is ready to use.
type Channel struct {
	mu   sync.Mutex    // covers next
	next chan struct{} // nil if no goroutine waits
}

// Next returns a channel that the next Send closes. Call it before checking the condition, so that no
// change is missed.
func (c *Channel) Next() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next == nil {
		c.next = make(chan struct{})
	}
	return c.next
}

// Send notifies all that wait.
func (c *Channel) Send() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next != nil {
		close(c.next)
		c.next = nil
	}
}
