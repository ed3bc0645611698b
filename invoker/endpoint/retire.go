package endpoint

import (
	"errors"
	"io"
	"net/http"
	"slices"

	"golang.org/x/net/http2"
)

// exhausted reports whether a peer reset a stream because its connection as a whole is
// out of some resource. Node's HTTP/2 server does so once responses that were not read to
// their end fill the memory of the session, and from then on it does so with each stream
// of the connection, whoever needs it.
func exhausted(err error) bool {
	reset, ok := errors.AsType[http2.StreamError](err)
	return ok && reset.Code == http2.ErrCodeEnhanceYourCalm
}

// retire lets a connection take no new streams. Those that it carries go on, and it is
// closed after the last of them.
func (p *pool) retire(conn *http.ClientConn) {
	if !p.withdraw(conn) {
		return
	}
	conn.SetStateHook(p.bury) // may call bury, which takes the pool's mutex
	p.bury(conn)              // it may carry no stream already
}

// withdraw makes a connection one of those that take no new streams. It returns false if
// the connection is not in use.
func (p *pool) withdraw(conn *http.ClientConn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.conns, conn)
	if i < 0 || p.closed {
		return false
	}
	p.conns = slices.Delete(p.conns, i, i+1)
	if p.retired == nil {
		p.retired = map[*http.ClientConn]struct{}{}
	}
	p.retired[conn] = struct{}{}
	return true
}

// bury closes a retired connection that carries no stream.
func (p *pool) bury(conn *http.ClientConn) {
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

// watched is a response body that retires its connection if the peer may be left with a
// part of it: if the connection is exhausted, or if reading ends while more is waiting. A
// Node server counts what it has not sent of a response against the memory of its session,
// also after the stream was reset.
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
