package raftgroup

import (
	"context"
	"fmt"
	"sync"
	"time"

	"platform/proto/node"
)

// outgoingFrames bounds the frames that wait to be written to a stream.
const outgoingFrames = 64

// callStream is one outgoing Exchange stream: requests are sent, responses arrive in any
// order. A broken stream stays broken; the peer opens another.
type callStream struct {
	p    *peer
	out  chan *node.RaftFrame
	done chan struct{} // closed when broken; err is set before

	// mu covers the fields below.
	mu      sync.Mutex
	next    uint64
	waiting map[uint64]chan *node.RaftFrame
	greeted bool
	err     error
}

func newCallStream(p *peer) *callStream {
	return &callStream{
		p:       p,
		out:     make(chan *node.RaftFrame, outgoingFrames),
		done:    make(chan struct{}),
		waiting: make(map[uint64]chan *node.RaftFrame),
	}
}

func (s *callStream) broken() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// working reports whether the peer has responded on this stream.
func (s *callStream) working() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.greeted && s.err == nil
}

// everGreeted reports whether the peer has ever responded. If not, it most probably never
// received a request.
func (s *callStream) everGreeted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.greeted
}

// call sends f and waits for its response until timeout or the end of ctx.
func (s *callStream) call(ctx context.Context, timeout <-chan time.Time, f *node.RaftFrame) (*node.RaftFrame, error) {
	answer := make(chan *node.RaftFrame, 1)
	s.mu.Lock()
	s.next++
	f.Sequence = s.next
	s.waiting[f.Sequence] = answer
	s.mu.Unlock()
	defer s.forget(f.Sequence)

	select {
	case s.out <- f:
	case <-s.done:
		return nil, fmt.Errorf("%w: %w", errNotSent, s.failure())
	case <-ctx.Done():
		return nil, fmt.Errorf("%s: %w", s.p.addr, errHungUp)
	case <-timeout:
		return nil, fmt.Errorf("%s: %w", s.p.addr, errPeerTimeout)
	}
	select {
	case r := <-answer:
		if r.Error != "" {
			return nil, fmt.Errorf("%s: %s", s.p.addr, r.Error)
		}
		return r, nil
	case <-s.done:
		if !s.everGreeted() {
			return nil, fmt.Errorf("%w: %w", errNotSent, s.failure())
		}
		return nil, s.failure()
	case <-ctx.Done():
		return nil, fmt.Errorf("%s: %w", s.p.addr, errHungUp)
	case <-timeout:
		return nil, fmt.Errorf("%s: %w", s.p.addr, errPeerTimeout)
	}
}

func (s *callStream) forget(sequence uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting, sequence)
}

func (s *callStream) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Errorf("connection to %s: %w", s.p.addr, s.err)
}

// run opens the stream and serves it until it breaks.
func (s *callStream) run() {
	ctx, cancel := context.WithCancel(s.p.t.ctx)
	defer cancel()
	err := s.serve(ctx, cancel)
	s.mu.Lock()
	s.err = err
	s.mu.Unlock()
	close(s.done)
}

func (s *callStream) serve(ctx context.Context, cancel context.CancelFunc) error {
	stream, err := node.NewRaftTransportClient(s.p.fast.current()).Exchange(ctx)
	if err != nil {
		return err
	}
	if err := stream.Send(&node.RaftFrame{Hello: s.p.t.hello}); err != nil {
		_, err = stream.Recv()
		return err
	}
	var sender sync.WaitGroup
	sender.Go(func() {
		defer cancel() // a failed send ends the receiver too
		for {
			select {
			case f := <-s.out:
				if stream.Send(f) != nil {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	})
	defer sender.Wait()
	defer cancel()
	return s.receive(stream)
}

func (s *callStream) receive(stream node.RaftTransport_ExchangeClient) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	if _, err := s.p.t.greet(stream.Context(), first.Hello); err != nil {
		s.p.t.refused(s.p.addr, err)
		return err
	}
	s.mu.Lock()
	s.greeted = true
	s.mu.Unlock()
	s.p.works(s)
	for {
		f, err := stream.Recv()
		if err != nil {
			return err
		}
		s.mu.Lock()
		answer, ok := s.waiting[f.Sequence]
		delete(s.waiting, f.Sequence)
		s.mu.Unlock()
		if ok {
			answer <- f
		}
	}
}
