package peers

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"platform/internal/nodelink"
	"platform/proto/node"
)

// outgoingFrames bounds the frames that wait to be written to a stream.
const outgoingFrames = 64

// callStream is one outgoing Exchange stream: requests are sent, responses arrive in any
// order. A broken stream stays broken; the peer opens another.
type callStream struct {
	p       *Peer
	out     chan *node.RaftFrame
	calls   *nodelink.Calls[node.RaftFrame]
	greeted atomic.Bool // the peer has identified itself
}

func newCallStream(p *Peer) *callStream {
	return &callStream{p: p, out: make(chan *node.RaftFrame, outgoingFrames), calls: nodelink.NewCalls[node.RaftFrame]()}
}

// working reports whether the peer has responded on this stream.
func (s *callStream) working() bool { return s.greeted.Load() && !s.calls.Broken() }

// call sends f and waits for its response until timeout or the end of ctx.
func (s *callStream) call(ctx context.Context, timeout <-chan time.Time, f *node.RaftFrame) (*node.RaftFrame, error) {
	sequence, response := s.calls.Begin()
	defer s.calls.Forget(sequence)
	f.Sequence = sequence

	select {
	case s.out <- f:
	case <-s.calls.Ended():
		return nil, fmt.Errorf("%w: %w", errNotSent, s.failure())
	case <-ctx.Done():
		return nil, fmt.Errorf("%s: %w", s.p.addr, errHungUp)
	case <-timeout:
		return nil, fmt.Errorf("%s: %w", s.p.addr, ErrTimeout)
	}
	select {
	case r := <-response:
		if r.Error != "" {
			return nil, fmt.Errorf("%s: %s", s.p.addr, r.Error)
		}
		return r, nil
	case <-s.calls.Ended():
		if !s.greeted.Load() { // most probably the peer never received the request
			return nil, fmt.Errorf("%w: %w", errNotSent, s.failure())
		}
		return nil, s.failure()
	case <-ctx.Done():
		return nil, fmt.Errorf("%s: %w", s.p.addr, errHungUp)
	case <-timeout:
		return nil, fmt.Errorf("%s: %w", s.p.addr, ErrTimeout)
	}
}

func (s *callStream) failure() error {
	return fmt.Errorf("connection to %s: %w", s.p.addr, s.calls.Err())
}

// run opens the stream and serves it until it breaks.
func (s *callStream) run() {
	open := func(ctx context.Context) (nodelink.Stream[node.RaftFrame], error) {
		return node.NewRaftTransportClient(s.p.fast.Conn()).Exchange(ctx)
	}
	pool := s.p.pool
	s.calls.End(nodelink.Open(pool.ctx, open, &node.RaftFrame{Hello: pool.cfg.Hello()}, nodelink.Queued(s.out), s.receive))
}

func (s *callStream) receive(stream nodelink.Stream[node.RaftFrame]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	if err := s.p.pool.cfg.Verify(stream.Context(), first.Hello); err != nil {
		s.p.pool.cfg.Refused(s.p.addr, err)
		return err
	}
	s.greeted.Store(true)
	s.p.streamWorks(s)
	for {
		f, err := stream.Recv()
		if err != nil {
			return err
		}
		s.calls.Respond(f.Sequence, f)
	}
}
