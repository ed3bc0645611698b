package sim

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"platform/invoker"
	"platform/invoker/endpoint"
	"platform/invoker/protocol"
)

// services is the name of the services on the network.
const services = "svc"

// exchange is a request to a service, in place of endpoint.Stream. It uses links of the
// network, so that faults also disconnect a node from its services.
type exchange struct {
	n           *node
	incarnation *incarnation
	recv        endpoint.Receiver
	ctx         context.Context // ends with Reset and with the node
	stop        context.CancelFunc
	out         *pipe // to the service
	in          *pipe // from it

	mu          sync.Mutex // covers the fields below
	closed      bool       // after Finish and Reset
	writeClosed bool       // CloseWrite
}

var _ invoker.Stream = (*exchange)(nil)

// open starts a request from an incarnation of a node to the services.
func (n *node) open(l *incarnation, recv endpoint.Receiver) invoker.Stream {
	x := &exchange{n: n, incarnation: l, recv: recv}
	x.ctx, x.stop = context.WithCancel(l.ctx)
	x.out = n.sim.net.pipe(link{n.name, services}, false)
	x.in = n.sim.net.pipe(link{services, n.name}, false)
	go x.run()
	return x
}

func (x *exchange) open() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return !x.closed
}

func (x *exchange) run() {
	defer x.stop()
	req := x.recv.Begin()
	if req == nil {
		x.abort()
		return
	}
	go x.n.sim.serve(x, req.Path)
	if x.open() {
		x.recv.Response(endpoint.Head{Status: http.StatusOK, Header: http.Header{"Content-Type": {protocol.V5.ContentType()}}})
	}
	for {
		b, err := receive(x.in, x.ctx.Done())
		if !x.open() {
			return
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			} else {
				x.abort()
			}
			x.recv.End(err)
			return
		}
		x.recv.Data(b)
	}
}

// Write implements invoker.Stream.
func (x *exchange) Write(chunks ...[]byte) {
	var all []byte
	for _, c := range chunks {
		all = append(all, c...)
	}
	_ = x.out.send(all, nil) // the receiver gets the error
	if s, ok := x.recv.(endpoint.Sender); ok {
		go s.Sent(len(all))
	}
}

// CloseWrite implements invoker.Stream.
func (x *exchange) CloseWrite() {
	x.mu.Lock()
	already := x.writeClosed
	x.writeClosed = true
	x.mu.Unlock()
	if !already {
		_ = x.out.send(nil, io.EOF)
	}
}

// Finish implements invoker.Stream.
func (x *exchange) Finish() {
	x.mu.Lock()
	x.closed = true
	x.mu.Unlock()
	x.CloseWrite()
}

// Reset implements invoker.Stream.
func (x *exchange) Reset() {
	x.mu.Lock()
	x.closed = true
	x.mu.Unlock()
	x.abort()
	x.stop()
}

func (x *exchange) abort() { _ = x.out.send(nil, errAborted) }

// body is the request body that a service reads.
type body struct {
	x        *exchange
	buffered []byte
	deadline <-chan time.Time // reading then fails with errDeadline; nil: never
}

func (b *body) Read(p []byte) (int, error) {
	for len(b.buffered) == 0 {
		next, err := receive(b.x.out, b.deadline)
		if err != nil {
			return 0, err
		}
		b.buffered = next
	}
	n := copy(p, b.buffered)
	b.buffered = b.buffered[n:]
	return n, nil
}

// response is the response body that a service writes.
type response struct{ x *exchange }

func (r response) Write(p []byte) (int, error) {
	b := append([]byte(nil), p...)
	if err := r.x.in.send(b, nil); err != nil {
		return 0, err
	}
	return len(p), nil
}

// serve runs the handler of a path.
func (s *Sim) serve(x *exchange, path string) {
	h := s.handlers[strings.TrimPrefix(path, "/invoke/")]
	c := &call{sim: s, in: &body{x: x}, out: response{x}}
	err := c.serve(h)
	if err == nil {
		err = io.EOF
	}
	_ = x.in.send(nil, err)
	x.out.fail(errAborted)
}
