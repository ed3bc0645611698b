package endpoint

import (
	"errors"
	"net"
	"runtime"
	"sync"
)

// ErrHTTP1 says that the peer answered in HTTP/1 where HTTP/2 was spoken to it.
var ErrHTTP1 = errors.New("the endpoint answered in HTTP/1.1 on a connection that speaks HTTP/2 with prior knowledge")

// maxUnsent is how much a connection takes in before Write blocks.
const maxUnsent = 256 << 10

// conn is a cleartext connection as the HTTP/2 transport sees it.
//
// The transport flushes each frame by itself: three system calls for an attempt,
// of which many run at a time. Here one goroutine sends whatever has come together
// since its last call. DESIGN.md has the figures.
//
// It also looks at how the peer begins, see greeting.
type conn struct {
	net.Conn
	greeting greeting // of the transport's reading goroutine

	mu     sync.Mutex // guards the fields below
	change sync.Cond
	unsent []byte
	err    error // of sending; ends it
}

func newConn(c net.Conn) *conn {
	out := &conn{Conn: c}
	out.change.L = &out.mu
	return out
}

// Read passes on what arrives, once it has had a look at the peer's first bytes.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && !c.greeting.over() {
		if c.greeting.isHTTP1(p[:n]) {
			return 0, ErrHTTP1
		}
		c.greeting.lowerFrameSize(p[:n])
	}
	return n, err
}

// Write takes p in; it is sent soon. It blocks while too much is unsent.
func (c *conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.unsent) >= maxUnsent && c.err == nil {
		c.change.Wait()
	}
	if c.err != nil {
		return 0, c.err
	}
	if len(c.unsent) == 0 {
		c.change.Broadcast()
	}
	c.unsent = append(c.unsent, p...)
	return len(p), nil
}

// send is the sending goroutine; it ends with the connection.
func (c *conn) send() {
	var spare []byte
	for {
		c.mu.Lock()
		for len(c.unsent) == 0 && c.err == nil {
			c.change.Wait()
		}
		c.mu.Unlock()
		runtime.Gosched() // whoever else has something to send adds it now
		c.mu.Lock()
		p, err := c.unsent, c.err
		c.unsent = spare[:0]
		c.change.Broadcast()
		c.mu.Unlock()
		if err != nil {
			return
		}
		if _, err := c.Conn.Write(p); err != nil {
			c.stop(err)
			return
		}
		spare = p
		if cap(spare) > 2*maxUnsent {
			spare = nil // a rare burst does not keep its memory
		}
	}
}

func (c *conn) stop(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
	c.change.Broadcast()
}

// Close closes the connection at once and ends the sending goroutine.
func (c *conn) Close() error {
	c.stop(net.ErrClosed)
	return c.Conn.Close()
}
