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
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.conns, conn)
	if i < 0 || p.closed {
		return
	}
	p.conns = slices.Delete(p.conns, i, i+1)
	if p.retired == nil {
		p.retired = map[*http.ClientConn]struct{}{}
	}
	p.retired[conn] = struct{}{}
	conn.SetStateHook(p.bury)
	p.client.work.Go(func() { p.bury(conn) }) // it may carry none already
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
		p.client.work.Go(func() { conn.Close() }) // the hook may be called with the transport's locks held
	}
}

// watched is a response body that retires its connection if it ends for lack of
// resources.
type watched struct {
	io.ReadCloser
	p    *pool
	conn *http.ClientConn
}

func (w *watched) Read(b []byte) (int, error) {
	n, err := w.ReadCloser.Read(b)
	if err != nil && exhausted(err) {
		w.p.retire(w.conn)
	}
	return n, err
}
