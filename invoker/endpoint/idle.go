package endpoint

import (
	"maps"
	"net/http"
	"slices"
	"time"
)

// The transport's own timeout of idle connections is not used: the last stream of a connection that has failed starts its
// timer again, which keeps the memory of the connection, about 12 KB, for the whole timeout.

// watchIdle starts the sweeps of idle connections, at the first connection.
func (c *Client) watchIdle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.idleSweep == nil && !c.closed && c.cfg.IdleTimeout > 0 {
		c.idleSweep = time.AfterFunc(c.cfg.IdleTimeout/2, c.sweepIdle)
	}
}

// sweepIdle closes the connections that were idle at the last sweep and have not been used since. They were idle for
// at least half of IdleTimeout, and at most all of it.
func (c *Client) sweepIdle() {
	c.mu.Lock()
	pools := slices.Collect(maps.Values(c.pools))
	c.mu.Unlock()
	for _, p := range pools {
		p.sweepIdle()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.idleSweep.Reset(c.cfg.IdleTimeout / 2)
	}
}

func (p *pool) sweepIdle() {
	for _, conn := range p.takeUnused() {
		conn.Close() // may call the state hook, which takes the mutex
	}
}

// takeUnused removes the connections that have not been used since the last sweep, and marks those that are idle now.
func (p *pool) takeUnused() (unused []*http.ClientConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.idle
	p.idle = map[*http.ClientConn]struct{}{}
	p.conns = slices.DeleteFunc(p.conns, func(conn *http.ClientConn) bool {
		if conn.Err() != nil {
			return true
		}
		if conn.InFlight() > 0 {
			return false
		}
		if _, idle := before[conn]; idle {
			unused = append(unused, conn)
			return true
		}
		p.idle[conn] = struct{}{}
		return false
	})
	return unused
}
