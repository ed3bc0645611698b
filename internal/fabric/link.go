package fabric

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"platform/internal/limits"
	"platform/proto/node"
)

// patience holds the timeouts of a link. A request waits for reach for the connection
// before it is given up unsent, and not at all if the node is silent. While the node owes
// a response, it is pinged after ping of silence, and the link is closed after deaf. Both are shorter than gRPC's
// keepalive allows, and there are no pings while no response is pending. A node answers a
// ping without consulting any partition, and deaf is about the time that its partitions
// need to elect other leaders. held is how long the node must have been responsive for a
// request to count as held by a leader.
type patience struct{ reach, ping, deaf, held time.Duration }

var usualPatience = patience{reach: time.Second, ping: 300 * time.Millisecond, deaf: 1500 * time.Millisecond, held: heldTime}

// link is one outgoing Exchange stream: requests go out, responses come back in any
// order. A broken link stays broken; the peer opens another.
type link struct {
	peer  *peer
	out   *outbound
	ready chan struct{} // closed when the other node has introduced itself
	done  chan struct{} // closed when broken; err is set before
	heard atomic.Int64  // when the other node last said something, Unix nanoseconds

	mu      sync.Mutex // covers the fields below
	next    uint64
	waiting map[uint64]chan *node.PartitionResponse
	err     error
}

func newLink(p *peer) *link {
	return &link{
		peer: p, out: newOutbound(), ready: make(chan struct{}), done: make(chan struct{}),
		waiting: make(map[uint64]chan *node.PartitionResponse),
	}
}

func (l *link) broken() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

func (l *link) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// reach waits until the other node has introduced itself, or moved says that another
// replica leads.
func (l *link) reach(ctx context.Context, moved watch) error {
	select {
	case <-l.ready:
		return nil
	default:
	}
	if l.peer.silent.Load() {
		return errSilent
	}
	t := time.NewTimer(l.peer.c.patience.reach)
	defer t.Stop()
	for {
		changed := moved.changed() // before looking who leads
		if moved.away() {
			return errMoved
		}
		select {
		case <-l.ready:
			return nil
		case <-l.done:
			return l.failure()
		case <-t.C:
			l.peer.silent.Store(true)
			return errSilent
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// heldSince is for how long, after a request was sent, the other node has given signs
// of life without answering it.
func (l *link) heldSince(sent time.Time) time.Duration {
	return time.Duration(l.heard.Load() - sent.UnixNano())
}

// call sends a request and waits for its response. After an error, sent says whether
// the other node may have got the request. Waiting ends with errMoved when moved says
// that another replica leads.
func (l *link) call(ctx context.Context, req *node.PartitionRequest, moved watch) (r *node.PartitionResponse, sent bool, err error) {
	if err := l.reach(ctx, moved); err != nil {
		return nil, false, err
	}
	if n := req.SizeVT(); n > limits.Response {
		return nil, false, fmt.Errorf("%w: a request of %d bytes, at most %d", errTooLarge, n, limits.Response)
	}
	sequence, answer := l.register()
	out := &outgoing{frame: &node.PartitionFrame{Sequence: sequence, Request: req}}
	changed := moved.changed()
	select {
	case l.out.queue <- out:
	case <-l.done:
		return nil, false, l.failure()
	case <-ctx.Done():
		l.forget(sequence)
		return nil, false, context.Cause(ctx)
	}
	for {
		select {
		case r := <-answer:
			return r, true, nil
		case <-l.done:
			select { // what has come counts
			case r := <-answer:
				return r, true, nil
			default:
				return nil, !out.drop(), l.failure()
			}
		case <-changed:
			changed = moved.changed()
			if moved.away() {
				return nil, l.leave(out), errMoved
			}
		case <-ctx.Done():
			return nil, l.leave(out), context.Cause(ctx)
		}
	}
}

// guard waits until over is closed or ctx ends, and returns an error if the link breaks
// before or moved says that another replica leads. It counts as a request that waits for
// its response, so that the other node is pinged.
func (l *link) guard(ctx context.Context, over <-chan struct{}, moved watch) error {
	if err := l.reach(ctx, moved); err != nil {
		return err
	}
	sequence, _ := l.register()
	defer l.forget(sequence)
	for {
		changed := moved.changed() // before looking who leads
		if moved.away() {
			return errMoved
		}
		select {
		case <-l.done:
			return l.failure()
		case <-changed:
		case <-over:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

func (l *link) register() (uint64, chan *node.PartitionResponse) {
	answer := make(chan *node.PartitionResponse, 1)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next++
	if l.waiting != nil {
		l.waiting[l.next] = answer
	}
	return l.next, answer
}

func (l *link) forget(sequence uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waiting, sequence)
}

// leave stops waiting for a response, and tells the other node if it may have got the
// request, which the result says.
func (l *link) leave(o *outgoing) (sent bool) {
	l.forget(o.frame.Sequence)
	if o.drop() {
		return false
	}
	l.out.word(&node.PartitionFrame{Sequence: o.frame.Sequence, Cancel: true})
	return true
}

// run opens the stream and serves it until it breaks or ctx ends.
func (l *link) run(ctx context.Context) {
	ctx, cancel := context.WithCancelCause(ctx)
	err := l.serve(ctx, cancel)
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause // says more than that the stream was cancelled
	}
	cancel(nil)
	l.mu.Lock()
	l.err = fmt.Errorf("connection to %s: %w", l.peer.address, err)
	l.waiting = nil
	l.mu.Unlock()
	close(l.done)
}

func (l *link) serve(ctx context.Context, cancel context.CancelCauseFunc) error {
	stream, err := node.NewNodePartitionsClient(l.peer.connection()).Exchange(ctx)
	if err != nil {
		return err
	}
	if err := stream.Send(&node.PartitionBatch{Hello: l.peer.c.self.hello()}); err != nil {
		_, err = stream.Recv() // says why
		return err
	}
	var helpers sync.WaitGroup
	helpers.Go(func() {
		if err := l.out.run(ctx, stream.Send); err != nil {
			cancel(nil) // the receiver learns why
		}
	})
	helpers.Go(func() { l.listen(ctx, cancel) })
	defer helpers.Wait()
	defer cancel(nil)
	return l.receive(stream)
}

// listen breaks the link when the other node owes a response and is silent.
func (l *link) listen(ctx context.Context, cancel context.CancelCauseFunc) {
	limits := l.peer.c.patience
	tick := time.NewTicker(limits.ping)
	defer tick.Stop()
	silent, looked := time.Duration(0), time.Now()
	for heard := int64(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := time.Now()
		silent += min(now.Sub(looked), 2*limits.ping) // more: this process did not run
		looked = now
		switch last := l.heard.Load(); {
		case !l.owed():
			l.heard.Store(now.UnixNano())
			silent = 0
		case last != heard:
			heard, silent = last, 0
		case silent > limits.deaf:
			l.peer.silent.Store(true)
			cancel(errSilent)
		default:
			l.out.word(&node.PartitionFrame{Ping: true})
		}
	}
}

func (l *link) owed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting) > 0
}

func (l *link) receive(stream node.NodePartitions_ExchangeClient) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	if err := l.peer.c.self.greet(first.Hello); err != nil {
		l.peer.c.log.Error("node refused", "address", l.peer.address, "err", err)
		return err
	}
	l.heard.Store(time.Now().UnixNano())
	l.peer.silent.Store(false)
	close(l.ready)
	incomplete := newParts(l.peer.c.bodies.Account())
	defer incomplete.close()
	for {
		batch, err := stream.Recv()
		if err != nil {
			return err
		}
		l.heard.Store(time.Now().UnixNano())
		for _, f := range batch.Frames {
			if err := l.take(f, incomplete); err != nil {
				return err
			}
		}
	}
}

// take hands a response to who waits for it.
func (l *link) take(f *node.PartitionFrame, incomplete *parts) error {
	r := f.Response
	if f.Piece != nil {
		whole, done, err := incomplete.add(f)
		switch {
		case err != nil:
			r = &node.PartitionResponse{Code: node.PartitionCode_PARTITION_CODE_UNKNOWN_OUTCOME, Message: "the response is lost: " + err.Error()}
		case !done:
			return nil
		default:
			r = new(node.PartitionResponse)
			if err := r.UnmarshalVTUnsafe(whole); err != nil {
				return fmt.Errorf("decode response: %w", err)
			}
		}
	}
	if f.Cancel { // the other node sends no more of it
		incomplete.drop(f.Sequence)
	}
	if r == nil {
		return nil
	}
	l.mu.Lock()
	answer := l.waiting[f.Sequence]
	delete(l.waiting, f.Sequence)
	l.mu.Unlock()
	if answer != nil {
		answer <- r
	}
	return nil
}
