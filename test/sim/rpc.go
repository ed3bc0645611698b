package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"platform/internal/nodelink"
)

// host is the server side of a node, in place of grpc.Server.
type host struct {
	net  *network
	node string

	ctx    context.Context // ends with the node
	cancel context.CancelFunc

	mu       sync.Mutex // covers the field below
	services map[string]service
}

type service struct {
	impl any
	desc *grpc.ServiceDesc
}

func newHost(n *network, node string) *host {
	h := &host{net: n, node: node, services: map[string]service{}}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h
}

// RegisterService implements grpc.ServiceRegistrar.
func (h *host) RegisterService(desc *grpc.ServiceDesc, impl any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.services[desc.ServiceName] = service{impl, desc}
}

func (h *host) stream(method string) (any, *grpc.StreamDesc) {
	name, rpc, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	h.mu.Lock()
	s := h.services[name]
	h.mu.Unlock()
	if s.desc == nil {
		return nil, nil
	}
	for i := range s.desc.Streams {
		if s.desc.Streams[i].StreamName == rpc {
			return s.impl, &s.desc.Streams[i]
		}
	}
	return nil, nil
}

// conn is a connection from a node to an address, in place of grpc.ClientConn.
type conn struct {
	from    *host
	address string
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc

	mu    sync.Mutex // covers state
	state connectivity.State
}

var _ nodelink.Conn = (*conn)(nil)

func (h *host) dial(address string) nodelink.Conn {
	c := &conn{from: h, address: address, state: connectivity.Idle}
	c.ctx, c.cancel = context.WithCancel(h.ctx)
	return c
}

// GetState implements nodelink.Conn.
func (c *conn) GetState() connectivity.State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

func (c *conn) setState(s connectivity.State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state = s
}

// Close implements nodelink.Conn.
func (c *conn) Close() error {
	c.cancel()
	c.setState(connectivity.Shutdown)
	return nil
}

// Invoke implements grpc.ClientConnInterface. Nothing here uses calls without streams.
func (c *conn) Invoke(context.Context, string, any, any, ...grpc.CallOption) error {
	return status.Error(codes.Unimplemented, "calls are not simulated")
}

const (
	connectTimeout = 2 * time.Second
	refusalDelay   = 300 * time.Microsecond
)

// connect waits until the other node can be reached, as a dial does.
func (c *conn) connect(ctx context.Context) (*host, error) {
	late := time.NewTimer(connectTimeout)
	defer late.Stop()
	there, back := link{c.from.node, nameOf(c.address)}, link{nameOf(c.address), c.from.node}
	for {
		out, changed := c.from.net.held(there)
		in, _ := c.from.net.held(back)
		if !out && !in {
			break
		}
		select {
		case <-changed:
		case <-late.C:
			return nil, status.Error(codes.Unavailable, "dial: i/o timeout")
		case <-ctx.Done():
			return nil, status.FromContextError(ctx.Err()).Err()
		case <-c.ctx.Done():
			return nil, status.Error(codes.Canceled, "connection is closing")
		}
	}
	h := c.from.net.host(c.address)
	if h == nil {
		select {
		case <-time.After(refusalDelay):
		case <-ctx.Done():
		}
		return nil, status.Error(codes.Unavailable, "dial: connection refused")
	}
	return h, nil
}

// NewStream implements grpc.ClientConnInterface.
func (c *conn) NewStream(ctx context.Context, _ *grpc.StreamDesc, method string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	if c.ctx.Err() != nil {
		return nil, status.Error(codes.Canceled, "connection is closing")
	}
	h, err := c.connect(ctx)
	if err != nil {
		c.setState(connectivity.TransientFailure)
		return nil, err
	}
	c.setState(connectivity.Ready)
	impl, desc := h.stream(method)
	if desc == nil {
		return nil, status.Error(codes.Unimplemented, method)
	}
	lossy := strings.HasSuffix(method, "RaftTransport/Exchange")
	there, back := link{c.from.node, h.node}, link{h.node, c.from.node}
	s := &clientStream{out: c.from.net.pipe(there, lossy), in: c.from.net.pipe(back, lossy)}
	s.ctx, s.cancel = context.WithCancel(ctx)
	closed := context.AfterFunc(c.ctx, s.cancel)
	server := &serverStream{in: s.out, out: s.in}
	server.ctx, server.cancel = context.WithCancel(h.ctx)
	context.AfterFunc(s.ctx, func() { // the other node learns of it when the message arrives
		closed()
		_ = s.out.send(nil, status.Error(codes.Canceled, "the client gave up"))
	})
	go server.serve(impl, desc)
	return s, nil
}

// message is what vtprotobuf generates.
type message interface {
	SizeVT() int
	MarshalToSizedBufferVT([]byte) (int, error)
	UnmarshalVTUnsafe([]byte) error
}

func encode(m any) ([]byte, error) {
	v, ok := m.(message)
	if !ok {
		return nil, fmt.Errorf("%T is no message", m)
	}
	b := make([]byte, v.SizeVT())
	_, err := v.MarshalToSizedBufferVT(b)
	return b, err
}

// clientStream is the client's end of a stream.
type clientStream struct {
	ctx     context.Context
	cancel  context.CancelFunc
	out, in *pipe
}

func (s *clientStream) Header() (metadata.MD, error) { return nil, nil }
func (s *clientStream) Trailer() metadata.MD         { return nil }
func (s *clientStream) Context() context.Context     { return s.ctx }
func (s *clientStream) CloseSend() error             { return s.out.send(nil, io.EOF) }

// SendMsg implements grpc.ClientStream. Only RecvMsg returns the cause of the failure.
func (s *clientStream) SendMsg(m any) error {
	b, err := encode(m)
	if err != nil {
		return err
	}
	if s.ctx.Err() != nil || s.out.send(b, nil) != nil {
		return io.EOF
	}
	return nil
}

// RecvMsg implements grpc.ClientStream.
func (s *clientStream) RecvMsg(m any) error {
	b, err := receive(s.in, s.ctx.Done())
	switch {
	case errors.Is(err, errDeadline):
		return status.FromContextError(s.ctx.Err()).Err()
	case err != nil:
		s.cancel()
		return err
	}
	return m.(message).UnmarshalVTUnsafe(b)
}

// serverStream is the server's end of a stream.
type serverStream struct {
	ctx     context.Context
	cancel  context.CancelFunc
	in, out *pipe
}

func (s *serverStream) SetHeader(metadata.MD) error  { return nil }
func (s *serverStream) SendHeader(metadata.MD) error { return nil }
func (s *serverStream) SetTrailer(metadata.MD)       {}
func (s *serverStream) Context() context.Context     { return s.ctx }

func (s *serverStream) serve(impl any, desc *grpc.StreamDesc) {
	err := desc.Handler(impl, s)
	s.cancel()
	if err == nil {
		err = io.EOF
	} else if _, ok := status.FromError(err); !ok {
		err = status.Error(codes.Unknown, err.Error())
	}
	_ = s.out.send(nil, err)
	s.in.fail(errReset)
}

// SendMsg implements grpc.ServerStream.
func (s *serverStream) SendMsg(m any) error {
	b, err := encode(m)
	if err == nil {
		err = s.out.send(b, nil)
	}
	return err
}

// RecvMsg implements grpc.ServerStream.
func (s *serverStream) RecvMsg(m any) error {
	b, err := receive(s.in, s.ctx.Done())
	switch {
	case errors.Is(err, errDeadline):
		return status.FromContextError(s.ctx.Err()).Err()
	case errors.Is(err, io.EOF):
		return io.EOF
	case err != nil:
		s.cancel()
		return err
	}
	return m.(message).UnmarshalVTUnsafe(b)
}
