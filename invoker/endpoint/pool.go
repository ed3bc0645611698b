package endpoint

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
)

// pool holds the HTTP/2 connections to one authority. The standard transport
// would fill a connection up to what the peer allows, which is often far more than
// one connection carries well, so the choice is made here.
type pool struct {
	client *Client
	addr   *Address
	ctx    context.Context // of dialling; ends at close
	cancel context.CancelFunc

	mu      sync.Mutex // guards the fields below
	conns   []*http.ClientConn
	dialing *dialing
	closed  bool
}

// dialing is a connection being made; done is closed when it has been, or has
// failed with err. Those who wait share it as long as it will have room for them.
type dialing struct {
	done    chan struct{}
	err     error
	waiting int
}

func newPool(c *Client, a *Address) *pool {
	p := &pool{client: c, addr: a}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

func (p *pool) roundTrip(r *http.Request) (*http.Response, error) {
	conn, err := p.reserve(r.Context())
	if err != nil {
		return nil, err
	}
	return conn.RoundTrip(r)
}

// reserve finds a connection with room, or makes one.
func (p *pool) reserve(ctx context.Context) (*http.ClientConn, error) {
	for {
		conn, d, err := p.find()
		if conn != nil || err != nil {
			return conn, err
		}
		select {
		case <-d.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if d.err != nil {
			return nil, d.err
		}
	}
}

// find takes the first connection with room, so that few are kept busy and the
// others can become idle and close. Without one it joins or starts a dial.
func (p *pool) find() (*http.ClientConn, *dialing, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, nil, ErrClosed
	}
	for i := 0; i < len(p.conns); i++ {
		conn := p.conns[i]
		if conn.InFlight() < p.client.cfg.MaxStreams && conn.Reserve() == nil {
			return conn, nil, nil
		}
		if conn.Err() != nil {
			p.conns = slices.Delete(p.conns, i, i+1)
			i--
		}
	}
	if d := p.dialing; d != nil && d.waiting < p.client.cfg.MaxStreams {
		d.waiting++
		return nil, d, nil
	}
	d := &dialing{done: make(chan struct{}), waiting: 1}
	p.dialing = d
	p.client.work.Go(func() { p.dial(d) })
	return nil, d, nil
}

func (p *pool) dial(d *dialing) {
	ctx, cancel := context.WithTimeout(p.ctx, p.client.cfg.ConnectTimeout)
	defer cancel()
	conn, err := p.client.http2.NewClientConn(ctx, p.addr.Scheme, p.addr.host)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err == nil && p.closed:
		conn.Close()
		err = ErrClosed
	case errors.Is(err, context.DeadlineExceeded):
		err = errConnectTimeout
	case err == nil:
		p.conns = append(p.conns, conn)
	}
	d.err = err
	if p.dialing == d {
		p.dialing = nil
	}
	close(d.done)
}

var errConnectTimeout = errors.New("the connection could not be made in time")

func (p *pool) close() {
	p.cancel()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, conn := range p.conns {
		conn.Close()
	}
}
