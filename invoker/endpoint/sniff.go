package endpoint

import (
	"bytes"
	"errors"
	"net"
)

// ErrHTTP1 says that the peer answered in HTTP/1 where HTTP/2 was spoken to it.
var ErrHTTP1 = errors.New("the endpoint answered in HTTP/1.1 on a connection that speaks HTTP/2 with prior knowledge")

// sniffer tells apart a peer that speaks HTTP/1 from one that breaks the rules of
// HTTP/2: the transport would report either as a frame that is too large.
type sniffer struct {
	net.Conn
	seen bool // by the transport's reading goroutine
}

func (s *sniffer) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	if !s.seen && n > 0 {
		s.seen = true
		if bytes.HasPrefix(p[:n], []byte("HTTP/1")) {
			return 0, ErrHTTP1
		}
	}
	return n, err
}
