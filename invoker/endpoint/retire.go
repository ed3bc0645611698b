package endpoint

import (
	"errors"
	"io"
	"net/http"
	"slices"

	"golang.org/x/net/http2"
)

// exhausted reports whether a peer reset a stream because its connection has run out of a
// resource. Node's HTTP/2 server does so once responses that were not read to their end
// fill the session's memory; from then on it resets every new stream of the connection.
func exhausted(err error) bool {
	reset, ok := errors.AsType[http2.StreamError](err)
	return ok && reset.Code == http2.ErrCodeEnhanceYourCalm
}

// retire stops using a connection for new streams. It is closed after its last stream.
func (p *pool) retire(conn *http.ClientConn) {
	if !p.withdraw(conn) {
		return
	}
	conn.SetStateHook(p.closeIdle) // calls it, possibly now; it takes the pool's mutex
	p.closeIdle(conn)              // it may have no streams
}

// withdraw moves a connection to the retired ones. It returns false if the connection is
// not in the pool.
func (p *pool) withdraw(conn *http.ClientConn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.conns, conn)
	if i < 0 || p.closed {
		return false
	}
	p.conns = slices.Delete(p.conns, i, i+1)
	delete(p.idle, conn)
	p.retired[conn] = struct{}{}
	return true
}

// closeIdle closes a retired connection without streams.
func (p *pool) closeIdle(conn *http.ClientConn) {
	if conn.InFlight() > 0 {
		return
	}
	p.mu.Lock()
	_, known := p.retired[conn]
	delete(p.retired, conn)
	p.mu.Unlock()
	if known {
		conn.Close()
	}
}

// watched is a response body that retires its connection if the peer may be left with
// unsent data: if the connection is exhausted, or if reading ends while more data is
// waiting. A Node server counts the unsent part of a response against the session's memory,
// even after the stream was reset.
type watched struct {
	io.ReadCloser
	p    *pool
	conn *http.ClientConn
	more bool // the last read filled its buffer
}

func (w *watched) Read(b []byte) (int, error) {
	n, err := w.ReadCloser.Read(b)
	switch {
	case err == nil:
		w.more = n == len(b)
	case exhausted(err), w.more && !errors.Is(err, io.EOF):
		w.p.retire(w.conn)
	}
	return n, err
}
