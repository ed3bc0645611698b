package endpoint

import (
	"errors"
	"os"
	"sync/atomic"
	"time"
)

// errLost means that a peer has sent nothing for a while, and has not responded to a ping either.
var errLost = errors.New("the endpoint does not respond to pings: it hangs, or cannot be reached any longer")

const (
	framePing = 0x6
	pingLen   = 8
)

// maxPingDelay is how much later than planned the timeout of a response may be noticed. If it is more, the process did
// not run, and the response may have arrived without having been read.
const maxPingDelay = time.Second

// pings detects that a peer no longer responds, also while no data is sent to it. The transport's own pings are not used:
// their timer keeps the memory of a connection that has failed, about 12 KB, until it fires.
type pings struct {
	interval time.Duration // silence before a ping
	timeout  time.Duration // of the response, which may be any frame
	start    time.Time
	received atomic.Int64 // when the peer last sent something, since start

	// The fields below are covered by the connection's mutex.
	timer *time.Timer
	sent  time.Duration // when a ping was last sent, since start; 0: never
	due   bool          // a ping follows the frame that is being written
}

// watchPeer starts sending pings after interval without data from the peer, and closes the connection if there is no
// response within timeout. It does nothing if one of them is 0.
func (c *conn) watchPeer(interval, timeout time.Duration) {
	if interval <= 0 || timeout <= 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pings.interval, c.pings.timeout = interval, timeout
	if c.err == nil {
		c.pings.timer = time.AfterFunc(interval, c.checkPeer)
	}
}

// heard notes that the peer has sent something.
func (p *pings) heard() { p.received.Store(int64(time.Since(p.start))) }

// checkPeer sends a ping, or closes the connection, if the peer is silent.
func (c *conn) checkPeer() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	p := &c.pings
	now, received := time.Since(p.start), time.Duration(p.received.Load())
	switch {
	case p.sent > received && now-p.sent < p.timeout+maxPingDelay:
		c.stopLocked(errLost)
		_ = c.Conn.SetDeadline(time.Unix(1, 0)) // the transport reads the error and closes the connection
	case now-received < p.interval:
		p.timer.Reset(p.interval - (now - received))
	default:
		p.sent, p.due = now, true
		c.appendLocked(nil)
		p.timer.Reset(p.timeout)
	}
}

// lost returns the error of reading from a connection that checkPeer has closed.
func (c *conn) lost(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if errors.Is(c.err, errLost) {
			return errLost
		}
	}
	return err
}
