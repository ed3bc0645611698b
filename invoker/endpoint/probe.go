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

// ProbeHTTP1 reports whether a peer that was to speak HTTP/2 without TLS speaks HTTP/1.1
// instead. It is false without a probe for other addresses and for peers that have
// established a connection in HTTP/2. The probe is an OPTIONS request on a connection of
// its own, which every server answers in some way.
func (c *Client) ProbeHTTP1(ctx context.Context, a *Address) bool {
	if a.Function != nil || a.HTTP11 || a.Scheme != "http" || ctx.Err() != nil || c.speaksHTTP2(a) {
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

// speaksHTTP2 reports whether a connection in HTTP/2 to the address is open.
func (c *Client) speaksHTTP2(a *Address) bool {
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
