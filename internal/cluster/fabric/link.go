package fabric

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"platform/internal/limits"
	"platform/internal/nodelink"
	"platform/proto/node"
)

// timeouts are the timeouts of a link. All but connect apply only while a response is
// pending; an idle link sends nothing.
type timeouts struct {
	// connect bounds how long a request waits for the connection before it fails unsent.
	// Requests do not wait at all for an unresponsive node.
	connect time.Duration
	// ping is the idle time after which the node is pinged. It responds without consulting
	// any partition. gRPC does not allow keepalives this frequent.
	ping time.Duration
	// unresponsive is the idle time after which the link is closed. It is about the time
	// that the node's partitions need to elect other leaders.
	unresponsive time.Duration
	// accepted is how long the node must have been responsive for a request to count as
	// accepted by a leader.
	accepted time.Duration
}

var defaultTimeouts = timeouts{connect: time.Second, ping: 300 * time.Millisecond, unresponsive: 1500 * time.Millisecond, accepted: acceptedAfter}

// link is the client side of one Exchange stream: it sends requests and receives
// responses in any order. A broken link stays broken; nodeConn opens another one.
type link struct {
	conn         *nodeConn
	out          *outbound
	calls        *nodelink.Calls[node.PartitionResponse]
	connected    chan struct{} // closed when the hello of the node has arrived
	begun        time.Time
	lastReceived atomic.Int64 // time of the last message of the node, as the duration since begun: the system clock may step
}

func newLink(p *nodeConn) *link {
	return &link{conn: p, out: newOutbound(), calls: nodelink.NewCalls[node.PartitionResponse](), connected: make(chan struct{}), begun: time.Now()}
}

// awaitConnected waits until the link is connected. It fails with errLeaderChanged when
// leader reports another node.
func (l *link) awaitConnected(ctx context.Context, leader leaderWatch) error {
	select {
	case <-l.connected:
		return nil
	default:
	}
	if l.conn.unresponsive.Load() {
		return errUnresponsive
	}
	t := time.NewTimer(l.conn.c.timeouts.connect)
	defer t.Stop()
	for {
		changed := leader.changed() // before checking, so that no change is missed
		if leader.moved() {
			return errLeaderChanged
		}
		select {
		case <-l.connected:
			return nil
		case <-l.calls.Ended():
			return l.calls.Err()
		case <-t.C:
			return l.giveUp()
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// giveUp records that no hello has arrived in time, unless one has arrived just now: until the
// next one the node would count as unresponsive, and its requests would be relayed.
func (l *link) giveUp() error {
	l.conn.unresponsive.Store(true)
	select {
	case <-l.connected:
		l.conn.unresponsive.Store(false)
		return nil
	default:
		return errUnresponsive
	}
}

// responsiveSince returns the time between sending a request and the last message of the
// node.
func (l *link) responsiveSince(sent time.Time) time.Duration {
	return time.Duration(l.lastReceived.Load()) - sent.Sub(l.begun)
}

// received records that a message of the node has arrived at a time.
func (l *link) received(at time.Time) { l.lastReceived.Store(int64(at.Sub(l.begun))) }

// call sends a request and waits for its response. After an error, sent reports whether
// the node may have received the request. It fails with errLeaderChanged when leader
// reports another node.
func (l *link) call(ctx context.Context, req *node.PartitionRequest, leader leaderWatch) (r *node.PartitionResponse, sent bool, err error) {
	if err := l.awaitConnected(ctx, leader); err != nil {
		return nil, false, err
	}
	if n := req.SizeVT(); n > limits.Response {
		return nil, false, fmt.Errorf("%w: a request of %d bytes, at most %d", errTooLarge, n, limits.Response)
	}
	sequence, response := l.calls.Begin()
	out := &outgoing{frame: &node.PartitionFrame{Sequence: sequence, Request: req}}
	changed := leader.changed()
	select {
	case l.out.queue <- out:
	case <-l.calls.Ended():
		return nil, false, l.calls.Err()
	case <-ctx.Done():
		l.calls.Forget(sequence)
		return nil, false, context.Cause(ctx)
	}
	for {
		select {
		case r := <-response:
			return r, true, nil
		case <-l.calls.Ended():
			select { // a response that has arrived takes precedence
			case r := <-response:
				return r, true, nil
			default:
				return nil, !out.drop(), l.calls.Err()
			}
		case <-changed:
			changed = leader.changed()
			if leader.moved() {
				return nil, l.abandon(out), errLeaderChanged
			}
		case <-ctx.Done():
			return nil, l.abandon(out), context.Cause(ctx)
		}
	}
}

// monitor waits until done is closed or ctx ends. It returns an error if the link breaks
// before that or leader reports another node. It counts as a pending request, so that the
// node is pinged.
func (l *link) monitor(ctx context.Context, done <-chan struct{}, leader leaderWatch) error {
	if err := l.awaitConnected(ctx, leader); err != nil {
		return err
	}
	sequence, _ := l.calls.Begin()
	defer l.calls.Forget(sequence)
	for {
		changed := leader.changed() // before checking, so that no change is missed
		if leader.moved() {
			return errLeaderChanged
		}
		select {
		case <-l.calls.Ended():
			return l.calls.Err()
		case <-changed:
		case <-done:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// abandon stops waiting for a response. It cancels the request on the node if it may have
// been sent, which is the result.
func (l *link) abandon(o *outgoing) (sent bool) {
	l.calls.Forget(o.frame.Sequence)
	if o.drop() {
		return false
	}
	l.out.sendControl(&node.PartitionFrame{Sequence: o.frame.Sequence, Cancel: true})
	return true
}

// run opens the stream and serves it until it breaks or ctx ends.
func (l *link) run(ctx context.Context) {
	ctx, cancel := context.WithCancelCause(ctx)
	var prober sync.WaitGroup
	prober.Go(func() { l.probe(ctx, cancel) })
	open := func(ctx context.Context) (nodelink.Stream[node.PartitionBatch], error) {
		return node.NewNodePartitionsClient(l.conn.conn.Conn()).Exchange(ctx)
	}
	err := nodelink.Open(ctx, open, &node.PartitionBatch{Hello: l.conn.c.self.Hello()}, l.out.run, l.receive)
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause // more specific than "stream cancelled"
	}
	cancel(nil)
	prober.Wait()
	l.conn.brokenSince.Store(time.Now().UnixNano()) // before others notice it
	l.calls.End(fmt.Errorf("connection to %s: %w", l.conn.address, err))
}

// probe pings the node while responses are pending, and breaks the link when it is
// unresponsive.
func (l *link) probe(ctx context.Context, cancel context.CancelCauseFunc) {
	timeouts := l.conn.c.timeouts
	tick := time.NewTicker(timeouts.ping)
	defer tick.Stop()
	quiet, lastTick := time.Duration(0), time.Now()
	for lastSeen := int64(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := time.Now()
		quiet += min(now.Sub(lastTick), 2*timeouts.ping) // a longer interval means that this process was paused
		lastTick = now
		switch last := l.lastReceived.Load(); {
		case !l.calls.Pending():
			l.received(now)
			quiet = 0
		case last != lastSeen:
			lastSeen, quiet = last, 0
		case quiet > timeouts.unresponsive:
			l.conn.unresponsive.Store(true)
			cancel(errUnresponsive)
		default:
			l.out.sendControl(&node.PartitionFrame{Ping: true})
		}
	}
}

// greeted is called when the hello of the node has arrived.
func (l *link) greeted() {
	l.received(time.Now())
	close(l.connected) // first, see giveUp
	l.conn.unresponsive.Store(false)
}

func (l *link) receive(stream nodelink.Stream[node.PartitionBatch]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	if _, err := l.conn.c.self.Verify(stream.Context(), first.Hello); err != nil {
		l.conn.c.log.Error("node rejected", "address", l.conn.address, "err", err)
		return err
	}
	l.greeted()
	incomplete := newAssembler(l.conn.c.bodies.Account())
	defer incomplete.close()
	for {
		batch, err := stream.Recv()
		if err != nil {
			return err
		}
		l.received(time.Now())
		for _, f := range batch.Frames {
			if err := l.deliver(f, incomplete); err != nil {
				return err
			}
		}
	}
}

// deliver passes a response to its caller.
func (l *link) deliver(f *node.PartitionFrame, incomplete *assembler) error {
	r := f.Response
	if f.Piece != nil {
		whole, done, err := incomplete.add(f)
		switch {
		case err != nil:
			r = &node.PartitionResponse{Code: node.PartitionCode_PARTITION_CODE_UNKNOWN_OUTCOME, Message: "response dropped: " + err.Error()}
		case !done:
			return nil
		default:
			r = new(node.PartitionResponse)
			if err := r.UnmarshalVTUnsafe(whole); err != nil {
				return fmt.Errorf("decode response: %w", err)
			}
		}
	}
	if f.Cancel { // the node sends no further pieces
		incomplete.drop(f.Sequence)
	}
	if r == nil {
		return nil
	}
	l.calls.Respond(f.Sequence, r)
	return nil
}
