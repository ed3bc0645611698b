package endpoint

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"runtime"
	"sync"
	"time"
)

// ErrHTTP1 says that the peer answered in HTTP/1 where HTTP/2 was spoken to it.
var ErrHTTP1 = errors.New("the endpoint answered in HTTP/1.1 on a connection that speaks HTTP/2 with prior knowledge")

var errNoGreeting = errors.New("the endpoint did not answer in HTTP/2")

// maxUnsent is how much a connection takes in before Write blocks.
const maxUnsent = 256 << 10

// conn is a connection as the HTTP/2 transport sees it: without TLS, which is below.
//
// The transport flushes each frame by itself: three system calls for an attempt,
// of which many run at a time. Here one goroutine sends whatever has come together
// since its last call. DESIGN.md has the figures.
//
// It also looks at how the peer begins and how streams end, see greeting and farewell.
type conn struct {
	net.Conn
	maySend  func() error  // nil: nobody is asked
	greeting greeting      // of the transport's reading goroutine
	told     bool          // of the same: ready is closed
	ready    chan struct{} // closed when the peer's settings are in force, or never will be
	failure  error         // of reading, before ready

	mu     sync.Mutex // guards the fields below
	change sync.Cond
	unsent []byte
	ends   farewell
	err    error // of sending; ends it
}

func newConn(c net.Conn, maySend func() error) *conn {
	out := &conn{Conn: c, maySend: maySend, ready: make(chan struct{})}
	out.change.L = &out.mu
	return out
}

// Read passes on what arrives, once it has had a look at the peer's first bytes.
func (c *conn) Read(p []byte) (int, error) {
	if !c.told && c.greeting.over() {
		// The transport asks for more, so it is done with the greeting.
		c.tell(nil)
	}
	n, err := c.Conn.Read(p)
	if n > 0 && !c.greeting.over() {
		if c.greeting.isHTTP1(p[:n]) {
			c.tell(ErrHTTP1)
			return 0, ErrHTTP1
		}
		c.greeting.lowerFrameSize(p[:n])
		if c.greeting.foreign() {
			c.tell(errNoGreeting) // the transport gives up and does not read again
			return 0, errNoGreeting
		}
	}
	if err != nil {
		c.tell(err)
	}
	return n, err
}

// tell ends the wait for the greeting.
func (c *conn) tell(err error) {
	if !c.told {
		c.told, c.failure = true, err
		close(c.ready)
	}
}

// greeted waits until the peer's settings are in force. How many streams it takes
// is among them: who opens more before it knows has some of them refused, or held
// up until others end, which may in turn wait for them.
func (c *conn) greeted(ctx context.Context) error {
	select {
	case <-c.ready:
		if errors.Is(c.failure, io.EOF) {
			return errNoGreeting
		}
		return c.failure
	case <-ctx.Done():
		return ctx.Err()
	}
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
	c.unsent = c.ends.pass(c.unsent, p)
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
		if c.maySend != nil {
			if err := c.maySend(); err != nil {
				c.stop(err)
				_ = c.Conn.Close() // handlers at the other end are not to go on
				return
			}
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

// patience is how long a peer may take to read that a TLS connection ends.
const patience = 250 * time.Millisecond

// Close closes the connection at once and ends the sending goroutine.
func (c *conn) Close() error {
	c.stop(net.ErrClosed)
	if secure, ok := c.Conn.(*tls.Conn); ok {
		defer time.AfterFunc(patience, func() { secure.NetConn().Close() }).Stop()
	}
	return c.Conn.Close()
}
