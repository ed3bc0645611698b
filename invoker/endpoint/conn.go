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

// ErrHTTP1 means that the peer responded in HTTP/1 on an HTTP/2 connection.
var ErrHTTP1 = errors.New("the endpoint responded in HTTP/1.1 on a connection that speaks HTTP/2 with prior knowledge")

// ErrSilent means that the peer sent nothing on a new connection until the connect timeout.
var ErrSilent = errors.New("the endpoint accepted a connection, but sent nothing: it hangs, or does not speak HTTP/2")

var errNoGreeting = errors.New("the endpoint did not respond in HTTP/2")

// maxUnsent is the number of buffered bytes from which Write blocks.
const maxUnsent = 256 << 10

// conn is a connection as seen by the HTTP/2 transport: without TLS, which is below it.
//
// The transport flushes each frame separately, which costs three system calls per attempt.
// Here one goroutine sends what has accumulated since its last call, for all streams.
// See DESIGN.md.
//
// conn also inspects how the peer begins, how many frames it sends, whether it still responds, and how streams end, see
// greeting, frameBudget, pings and resetFilter.
type conn struct {
	net.Conn
	maySend  func() error  // nil: no check
	greeting greeting      // used by the transport's reading goroutine
	frames   frameBudget   // likewise
	isReady  bool          // likewise; ready is closed
	ready    chan struct{} // closed when the peer's settings are in effect, or reading has failed
	readErr  error         // error before ready
	pings    pings

	mu     sync.Mutex // covers the fields below
	change sync.Cond
	unsent []byte
	filter resetFilter
	err    error // of sending; no more is sent
}

func newConn(c net.Conn, maySend func() error) *conn {
	now := time.Now()
	out := &conn{Conn: c, maySend: maySend, frames: newFrameBudget(now), ready: make(chan struct{})}
	out.pings.start = now
	out.change.L = &out.mu
	return out
}

// Read returns what arrives, after inspecting the peer's first bytes.
func (c *conn) Read(p []byte) (int, error) {
	if !c.isReady && c.greeting.over() {
		// The transport reads again, so it has processed the greeting.
		c.setReady(nil)
	}
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.pings.heard()
	}
	if n > 0 && !c.greeting.over() {
		if c.greeting.isHTTP1(p[:n]) {
			c.setReady(ErrHTTP1)
			return 0, ErrHTTP1
		}
		c.greeting.lowerFrameSize(p[:n])
		if c.greeting.foreign() {
			c.setReady(errNoGreeting) // the transport gives up and does not read again
			return 0, errNoGreeting
		}
	}
	if !c.frames.add(p[:n]) && !c.refill() {
		n, err = 0, errFrameFlood
	}
	if err != nil {
		err = c.lost(err)
		c.setReady(err)
	}
	return n, err
}

// refill returns false if the peer has sent too many frames.
func (c *conn) refill() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.frames.refill(&c.filter.earned, time.Now())
}

// setReady ends the wait for the greeting.
func (c *conn) setReady(err error) {
	if !c.isReady {
		c.isReady, c.readErr = true, err
		close(c.ready)
	}
}

// greeted waits until the peer's settings are in effect. They include the maximum number of
// streams: streams beyond it would be refused, or wait for others to end, which may wait
// for them in turn.
func (c *conn) greeted(ctx context.Context) error {
	select {
	case <-c.ready:
		if errors.Is(c.readErr, io.EOF) {
			return errNoGreeting
		}
		return c.readErr
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return ErrSilent
		}
		return ctx.Err()
	}
}

// Write buffers p, which is sent soon. It blocks while too much is unsent.
func (c *conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.unsent) >= maxUnsent && c.err == nil {
		c.change.Wait()
	}
	if c.err != nil {
		return 0, c.err
	}
	c.appendLocked(p)
	return len(p), nil
}

// appendLocked adds p to what is sent, and a ping that is due after its last frame.
func (c *conn) appendLocked(p []byte) {
	if len(c.unsent) == 0 {
		c.change.Broadcast()
	}
	c.unsent = c.filter.pass(c.unsent, p)
	if c.pings.due && c.filter.betweenFrames() {
		c.pings.due = false
		c.unsent = append(c.unsent, 0, 0, pingLen, framePing, 0, 0, 0, 0, 0)
		c.unsent = append(c.unsent, make([]byte, pingLen)...)
	}
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
		runtime.Gosched() // lets other goroutines add what they have to send
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
				_ = c.Conn.Close() // handlers at the endpoint must not continue
				return
			}
		}
		if _, err := c.Conn.Write(p); err != nil {
			c.stop(err)
			return
		}
		spare = p
		if cap(spare) > 2*maxUnsent {
			spare = nil // does not keep the memory of a rare burst
		}
	}
}

func (c *conn) stop(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopLocked(err)
}

func (c *conn) stopLocked(err error) {
	if c.err == nil {
		c.err = err
	}
	if c.pings.timer != nil {
		c.pings.timer.Stop()
	}
	c.change.Broadcast()
}

// closeTimeout bounds sending the end of a TLS connection to a peer that does not read.
const closeTimeout = 250 * time.Millisecond

// Close closes the connection and ends the sending goroutine.
func (c *conn) Close() error {
	c.stop(net.ErrClosed)
	if secure, ok := c.Conn.(*tls.Conn); ok {
		defer time.AfterFunc(closeTimeout, func() { secure.NetConn().Close() }).Stop()
	}
	return c.Conn.Close()
}
