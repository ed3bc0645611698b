package endpoint

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"time"
)

// probeTimeout bounds a probe for HTTP/1.1.
const probeTimeout = 2 * time.Second

// ProbeHTTP1 reports whether a peer that is addressed in cleartext HTTP/2 speaks HTTP/1.1
// instead. For other addresses, and for peers with an established HTTP/2 connection, it
// returns false without a probe. The probe is an OPTIONS request on a separate connection,
// to which every HTTP/1.1 server responds in some way.
func (c *Client) ProbeHTTP1(ctx context.Context, a *Address) bool {
	if a.Function != nil || a.HTTP11 || a.Scheme != "http" || ctx.Err() != nil || c.SpeaksHTTP2(a) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, min(probeTimeout, c.cfg.ConnectTimeout))
	defer cancel()
	conn, err := c.dialer.dial(ctx, a)
	if err != nil {
		return false
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if _, err := fmt.Fprintf(conn, "OPTIONS %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", a.Path("/discover"), a.Authority); err != nil {
		return false
	}
	begin, _ := bufio.NewReader(conn).Peek(len(http1Begin))
	return bytes.Equal(begin, http1Begin)
}

// SpeaksHTTP2 reports whether an HTTP/2 connection to the address is open.
func (c *Client) SpeaksHTTP2(a *Address) bool {
	c.mu.Lock()
	p := c.pools[a.key]
	c.mu.Unlock()
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns) > 0
}
