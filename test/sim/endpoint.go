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

// services is the name of the services in the network.
const services = "svc"

// exchange is a request to a service: what endpoint.Stream is elsewhere. Its bytes take
// the ways of the network, so that a node that is held is also held off its services.
type exchange struct {
	n    *node
	life *life
	recv endpoint.Receiver
	ctx  context.Context // ends with Reset and with the node
	stop context.CancelFunc
	out  *pipe // to the service
	in   *pipe // from it

	mu    sync.Mutex // covers the fields below
	deaf  bool       // after Finish and Reset
	ended bool       // CloseWrite
}

var _ invoker.Stream = (*exchange)(nil)

// open is the way to services of a node in one of its lives.
func (n *node) open(l *life, recv endpoint.Receiver) invoker.Stream {
	x := &exchange{n: n, life: l, recv: recv}
	x.ctx, x.stop = context.WithCancel(l.ctx)
	x.out = n.sim.net.pipe(way{n.name, services}, false)
	x.in = n.sim.net.pipe(way{services, n.name}, false)
	go x.run()
	return x
}

func (x *exchange) listens() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return !x.deaf
}

func (x *exchange) run() {
	defer x.stop()
	req := x.recv.Begin()
	if req == nil {
		x.hangUp()
		return
	}
	go x.n.sim.serve(x, req.Path)
	if x.listens() {
		x.recv.Response(endpoint.Head{Status: http.StatusOK, Header: http.Header{"Content-Type": {protocol.V5.ContentType()}}})
	}
	for {
		b, err := receive(x.in, x.ctx.Done())
		if !x.listens() {
			return
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			} else {
				x.hangUp()
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
	_ = x.out.send(all, nil) // the receiver learns
	if s, ok := x.recv.(endpoint.Sender); ok {
		go s.Sent(len(all))
	}
}

// CloseWrite implements invoker.Stream.
func (x *exchange) CloseWrite() {
	x.mu.Lock()
	was := x.ended
	x.ended = true
	x.mu.Unlock()
	if !was {
		_ = x.out.send(nil, io.EOF)
	}
}

// Finish implements invoker.Stream.
func (x *exchange) Finish() {
	x.mu.Lock()
	x.deaf = true
	x.mu.Unlock()
	x.CloseWrite()
}

// Reset implements invoker.Stream.
func (x *exchange) Reset() {
	x.mu.Lock()
	x.deaf = true
	x.mu.Unlock()
	x.hangUp()
	x.stop()
}

func (x *exchange) hangUp() { _ = x.out.send(nil, errCut) }

// body is what a service reads of a request.
type body struct {
	x     *exchange
	rest  []byte
	until <-chan time.Time // when reading ends with errGivenUp; nil: never
}

func (b *body) Read(p []byte) (int, error) {
	for len(b.rest) == 0 {
		next, err := receive(b.x.out, b.until)
		if err != nil {
			return 0, err
		}
		b.rest = next
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

// response is where a service writes.
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
	x.out.fail(errCut)
}
