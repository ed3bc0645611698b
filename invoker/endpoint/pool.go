package endpoint

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"

	"golang.org/x/net/http2"
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
	room    int // streams that the last new connection took, or as many as we open
	dialing *dialing
	retired map[*http.ClientConn]struct{} // carry streams, but take no new ones
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
	p := &pool{client: c, addr: a, room: c.cfg.MaxStreams}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

const (
	// maxTries bounds how often a request is sent that no peer has taken.
	maxTries = 5
	// sharedTries are those on connections that others use as well. Some peers close
	// each connection after a request or few, so that the same one may lose every time.
	sharedTries = 2
)

// roundTrip sends a request. If the peer lets it be known that it has not even
// looked at it, because it closes the connection or has too many, the request is
// sent again on another connection: nothing has failed then.
func (p *pool) roundTrip(r *http.Request, b *body) (*http.Response, error) {
	for try := 1; ; try++ {
		conn, err := p.take(r.Context(), try)
		if err != nil {
			return nil, err
		}
		if b != nil {
			if r.Body, err = b.try(); err != nil {
				conn.Release()
				p.keep(conn, try)
				return nil, err // given up meanwhile
			}
		}
		resp, err := conn.RoundTrip(r)
		p.keep(conn, try)
		if err == nil {
			resp.Body = &watched{ReadCloser: resp.Body, p: p, conn: conn}
			return resp, nil
		}
		if exhausted(err) {
			p.retire(conn)
		}
		if try >= maxTries || !untouched(err) || r.Context().Err() != nil {
			return nil, err
		}
		r = r.WithContext(r.Context()) // the transport may still hold the last one
	}
}

// Errors of the standard library that it keeps to itself. All say that the peer has
// not taken the request. A test provokes those that a peer can cause.
const (
	goAway      = "http2: Transport received Server's graceful shutdown GOAWAY"
	unusable    = "http2: client conn not usable"
	stillborn   = "http2: client conn could not be established"
	connClosed  = "http2: client conn is closed"
	maxReserves = 20 // connections that a request may find taken by others
)

// untouched reports whether a request failed without having been looked at.
func untouched(err error) bool {
	if reset, ok := errors.AsType[http2.StreamError](err); ok {
		return reset.Code == http2.ErrCodeRefusedStream || reset.Code == http2.ErrCodeEnhanceYourCalm
	}
	switch err.Error() {
	case goAway, unusable, stillborn, connClosed:
		return true
	}
	return false
}

// take returns a connection on which a stream is reserved.
func (p *pool) take(ctx context.Context, try int) (*http.ClientConn, error) {
	if try <= sharedTries {
		return p.reserve(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, p.client.cfg.ConnectTimeout)
	defer cancel()
	conn, err := p.client.newConn(ctx, p.addr)
	if err != nil {
		return nil, err
	}
	if err := conn.Reserve(); err != nil {
		conn.Close()
		return nil, errNoRoom
	}
	return conn, nil
}

// keep lets others use the connection of a try too.
func (p *pool) keep(conn *http.ClientConn, try int) {
	if try <= sharedTries {
		return // they do
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		conn.Close()
		return
	}
	p.conns = append(p.conns, conn)
}

// reserve finds a connection with room, or makes one.
func (p *pool) reserve(ctx context.Context) (*http.ClientConn, error) {
	for range maxReserves {
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
	return nil, errNoRoom
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
	if d := p.dialing; d != nil && d.waiting < p.room {
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
	conn, err := p.client.newConn(ctx, p.addr)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err == nil && p.closed:
		conn.Close()
		err = ErrClosed
	case errors.Is(err, context.DeadlineExceeded):
		err = errConnectTimeout
	case err == nil && conn.Available() == 0:
		conn.Close()
		err = errNoRoom
	case err == nil:
		p.room = min(conn.Available(), p.client.cfg.MaxStreams)
		p.conns = append(p.conns, conn)
	}
	d.err = err
	if p.dialing == d {
		p.dialing = nil
	}
	close(d.done)
}

var (
	errConnectTimeout = errors.New("the connection could not be made in time")
	errNoRoom         = errors.New("the endpoint takes no streams on its connections")
)

// close closes all connections. The state hooks of retired ones take the pool's mutex.
func (p *pool) close() {
	p.cancel()
	p.mu.Lock()
	p.closed = true
	conns := slices.AppendSeq(p.conns, maps.Keys(p.retired))
	p.conns, p.retired = nil, nil
	p.mu.Unlock()
	for _, conn := range conns {
		conn.Close()
	}
}
