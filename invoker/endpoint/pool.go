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

// pool holds the HTTP/2 connections to one authority. The standard transport would fill a
// connection up to the peer's limit, which is often far more than one connection can carry
// well, so the pool assigns the streams.
type pool struct {
	client *Client
	addr   *Address
	ctx    context.Context //nolint:containedctx // of dials, which streams share; canceled by close
	cancel context.CancelFunc
	users  int // requests that are being sent; covered by the client's mutex

	mu      sync.Mutex // covers the fields below
	conns   []*http.ClientConn
	room    int // streams that the last new connection accepted, at most MaxStreams
	dialing *dialing
	retired map[*http.ClientConn]struct{} // carry streams, but accept no new ones
	idle    map[*http.ClientConn]struct{} // at the last sweep, and not used since
	closed  bool
}

// closeEmpty closes the pool if it has no connections and opens none.
func (p *pool) closeEmpty() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns = slices.DeleteFunc(p.conns, func(conn *http.ClientConn) bool { return conn.Err() != nil })
	if len(p.conns) > 0 || len(p.retired) > 0 || p.dialing != nil {
		return false
	}
	p.closed = true
	p.cancel()
	return true
}

// dialing is a connection that is being opened; done is closed when that has ended, with
// err. Streams share the result up to the expected number of streams of the connection.
type dialing struct {
	done    chan struct{}
	err     error
	waiting int
}

func newPool(c *Client, a *Address) *pool {
	p := &pool{client: c, addr: a, room: c.cfg.MaxStreams, retired: map[*http.ClientConn]struct{}{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

const (
	// maxTries bounds how often a request that no peer has processed is sent.
	maxTries = 5
	// sharedTries is the number of tries on shared connections. Some peers close each
	// connection after a few requests, so one request could fail on each of them.
	sharedTries = 2
	// maxSpare is the number of connections with capacity from which a connection that was opened for one
	// request is not kept after it. A peer that refuses requests on shared connections would otherwise get
	// another connection for each request.
	maxSpare = 16
)

// roundTrip sends a request. If the peer reports that it has not processed it, because it
// closes the connection or has too many streams, the request is sent again on another
// connection.
func (p *pool) roundTrip(r *http.Request, b *body) (*http.Response, error) {
	for try := 1; ; try++ {
		conn, err := p.take(r.Context(), try)
		if err != nil {
			return nil, err
		}
		if b != nil {
			if r.Body, err = b.try(); err != nil {
				conn.Release()
				p.share(conn, try, nil)
				return nil, err // aborted meanwhile
			}
		}
		resp, err := conn.RoundTrip(r)
		p.share(conn, try, err)
		if err == nil {
			resp.Body = &watched{ReadCloser: resp.Body, p: p, conn: conn}
			return resp, nil
		}
		if exhausted(err) {
			p.retire(conn)
		}
		// A peer that refuses the first stream of a connection would refuse that of the next one, too.
		if try >= maxTries || !unprocessed(err) || try > sharedTries && refusedStream(err) || r.Context().Err() != nil {
			return nil, err
		}
		r = r.WithContext(r.Context()) // the transport may still use the previous one
	}
}

// Errors for which the standard library exports no value. All but forceClosed mean that the peer has
// not processed the request. A test provokes those that a peer can cause.
const (
	goAway         = "http2: Transport received Server's graceful shutdown GOAWAY"
	unusable       = "http2: client conn not usable"
	notEstablished = "http2: client conn could not be established"
	connClosed     = "http2: client conn is closed"
	forceClosed    = "http2: client connection force closed via ClientConn.Close"
	maxReserves    = 20 // attempts to reserve a stream before giving up
)

// SendFailed reports whether a stream ended because writing to its connection failed. net/http then closes
// the connection, and the other streams get an error that reads as if the client had done so.
func SendFailed(err error) bool { return err.Error() == forceClosed }

// refusedStream reports whether the peer reset a stream without processing its request.
func refusedStream(err error) bool {
	reset, ok := errors.AsType[http2.StreamError](err)
	return ok && (reset.Code == http2.ErrCodeRefusedStream || reset.Code == http2.ErrCodeEnhanceYourCalm)
}

// unprocessed reports whether a request failed before the peer processed it.
func unprocessed(err error) bool {
	if refusedStream(err) {
		return true
	}
	switch err.Error() {
	case goAway, unusable, notEstablished, connClosed:
		return true
	}
	return false
}

// take returns a connection with a reserved stream.
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

// share adds a connection that was opened for one request to the pool, unless the peer has refused even that request, or
// other connections suffice.
func (p *pool) share(conn *http.ClientConn, try int, err error) {
	if try <= sharedTries {
		return // already in the pool
	}
	if err != nil && unprocessed(err) {
		conn.Close()
		return
	}
	if p.addSpare(conn) {
		return
	}
	conn.SetStateHook(p.closeIdle) // calls it, possibly now; it takes the pool's mutex
	p.closeIdle(conn)
}

// addSpare adds a connection to the pool. It returns false if it has been added to the retired ones instead.
func (p *pool) addSpare(conn *http.ClientConn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	spare := 0
	for _, c := range p.conns {
		if c.Available() > 0 && c.InFlight() < p.client.cfg.MaxStreams {
			spare++
		}
	}
	if !p.closed && spare < maxSpare {
		p.conns = append(p.conns, conn)
		return true
	}
	p.retired[conn] = struct{}{}
	return false
}

// reserve reserves a stream on a pooled connection, or opens one.
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

// find returns the first connection with capacity, so that few are busy and the others
// become idle and close. Without one it joins or starts a dial. Idle connections whose peer
// accepts no streams are closed, since nothing else bounds their number.
func (p *pool) find() (*http.ClientConn, *dialing, error) {
	var useless []*http.ClientConn
	defer func() {
		for _, conn := range useless {
			conn.Close()
		}
	}()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, nil, ErrClosed
	}
	for i := 0; i < len(p.conns); i++ {
		conn := p.conns[i]
		if conn.InFlight() < p.client.cfg.MaxStreams && conn.Reserve() == nil {
			delete(p.idle, conn)
			return conn, nil, nil
		}
		dead := conn.Err() != nil
		if !dead && conn.InFlight() == 0 && conn.Available() == 0 {
			useless = append(useless, conn)
			dead = true
		}
		if dead {
			delete(p.idle, conn)
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
	errConnectTimeout = errors.New("no HTTP/2 connection was established in time")
	errNoRoom         = errors.New("the endpoint takes no streams on its connections")
)

// close closes all connections, without holding the mutex: the state hooks of retired ones
// take it.
func (p *pool) close() {
	p.cancel()
	p.mu.Lock()
	p.closed = true
	conns := slices.AppendSeq(p.conns, maps.Keys(p.retired))
	p.conns = nil
	clear(p.retired)
	clear(p.idle)
	p.mu.Unlock()
	for _, conn := range conns {
		conn.Close()
	}
}
