package enroll

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"platform/internal/access"
	"platform/internal/logsample"
	"platform/internal/nodetls"
	nodepb "platform/proto/node"
)

// Bounds of what nodes without a certificate can cause.
const (
	maxRequest     = 16 << 10
	maxConcurrent  = 32 // requests
	readTimeout    = 2 * time.Second
	requestTimeout = 10 * time.Second

	// Connections per second, of all addresses and of each.
	allRate, allBurst         = 20, 40
	addressRate, addressBurst = 1, 10
	maxAddresses              = 1024

	maxEvents     = 64
	eventInterval = 10 * time.Second
)

// textRefused reveals nothing about the cluster.
const textRefused = "refused; the log of that node has the reason"

// Server serves nodes that have no certificate yet: one request per connection, and nothing else.
type Server struct {
	issuer   *Issuer
	security *nodetls.Security
	log      *slog.Logger
	events   *logsample.Sampler[string]
	slots    chan struct{} // semaphore of requests

	mu        sync.Mutex // covers the fields below
	all       *rate.Limiter
	addresses map[string]*rate.Limiter
}

// NewServer returns a server for the nodes that security admits.
func NewServer(issuer *Issuer, security *nodetls.Security, log *slog.Logger) *Server {
	return &Server{
		issuer: issuer, security: security, log: log, events: logsample.New[string](1, eventInterval, maxEvents),
		slots: make(chan struct{}, maxConcurrent), all: rate.NewLimiter(allRate, allBurst), addresses: map[string]*rate.Limiter{},
	}
}

// admit reports whether a node without a certificate may connect: there must be a join token, and
// few connections of its address.
func (s *Server) admit(from net.Addr) bool {
	return s.issuer.awaitsNodes(time.Now()) && s.allow(access.NetworkOf(from.String()))
}

func (s *Server) allow(network string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	limiter := s.addresses[network]
	if limiter == nil {
		if len(s.addresses) >= maxAddresses {
			clear(s.addresses) // the limit of all addresses holds
		}
		limiter = rate.NewLimiter(addressRate, addressBurst)
		s.addresses[network] = limiter
	}
	return limiter.Allow() && s.all.Allow()
}

func hostOf(from net.Addr) string {
	if tcp, ok := from.(*net.TCPAddr); ok {
		return tcp.IP.String()
	}
	return ""
}

// Serve serves the connections of a listener until ctx ends.
func (s *Server) Serve(ctx context.Context, connections net.Listener) error {
	s.security.AdmitEnrolling(s.admit)
	defer s.security.AdmitEnrolling(func(net.Addr) bool { return false })
	defer context.AfterFunc(ctx, func() { _ = connections.Close() })()
	var serving sync.WaitGroup
	defer serving.Wait()
	for {
		conn, err := connections.Accept()
		if err != nil {
			return nil //nolint:nilerr // the node port was closed
		}
		select {
		case s.slots <- struct{}{}:
			serving.Go(func() {
				defer func() { <-s.slots }()
				s.serve(ctx, conn)
			})
		default:
			_ = conn.Close()
		}
	}
}

// serve serves the only request of a connection.
func (s *Server) serve(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	_ = conn.SetReadDeadline(time.Now().Add(readTimeout)) // one address cannot hold all slots
	raw, err := readMessage(conn, maxRequest)
	var req nodepb.EnrollRequest
	if err == nil {
		err = req.UnmarshalVT(raw)
	}
	if err != nil {
		s.event(conn.RemoteAddr(), "a node without a certificate sent no valid request", "", err)
		return
	}
	raw, err = s.respond(ctx, conn.RemoteAddr(), &req).MarshalVT()
	if err == nil {
		_ = writeMessage(conn, raw) // the node retries
	}
}

func (s *Server) respond(ctx context.Context, from net.Addr, req *nodepb.EnrollRequest) *nodepb.EnrollResponse {
	certificate, err := s.issuer.enroll(ctx, from, req.Token, req.Secret, req.Name, req.SigningRequest)
	if err != nil {
		s.event(from, "node did not get a certificate", req.Name, err)
		if _, refused := errors.AsType[*refusedError](err); refused {
			return &nodepb.EnrollResponse{Error: textRefused, Refused: true}
		}
		return &nodepb.EnrollResponse{Error: errUnable.Error() + "; its log has the reason"}
	}
	packets, err := s.security.PacketKeys()
	if err != nil {
		s.event(from, "node did not get a certificate", req.Name, err)
		return &nodepb.EnrollResponse{Error: errUnable.Error() + "; its log has the reason"}
	}
	s.log.Info("certificate issued to a new node", "node", req.Name, "token", req.Token, "address", hostOf(from))
	return &nodepb.EnrollResponse{Certificate: certificate, Authorities: s.security.Store().Current().AuthoritiesPEM(), PacketKeys: packets}
}

// event logs a request of a node without a certificate, at a limited rate. The name is the one that
// the request claims.
func (s *Server) event(from net.Addr, message, node string, err error) {
	if len(node) > 128 {
		node = node[:128]
	}
	if skipped, due := s.events.Admit(hostOf(from), time.Now()); due {
		s.log.Warn(message, "address", hostOf(from), "node", node, "err", err, "repeated", skipped) //nolint:sloglint // a constant of the caller
	}
}

// readMessage reads a message, which its size precedes.
func readMessage(conn io.Reader, limit uint32) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > limit {
		return nil, fmt.Errorf("a message of %d bytes", n)
	}
	message := make([]byte, n)
	_, err := io.ReadFull(conn, message)
	return message, err
}

func writeMessage(conn io.Writer, message []byte) error {
	_, err := conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(message))), message...))
	return err
}
