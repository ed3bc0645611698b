package fabric

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"platform/proto/node"
)

const (
	// maxQueuedFrames bounds the frames waiting to be written to a stream; further senders
	// block.
	maxQueuedFrames = 256
	// batchBytes is the size at which a batch is sent.
	batchBytes = 64 << 10
	// pieceBytes is the size from which a message is sent in pieces, so that small ones can
	// overtake it.
	pieceBytes = 64 << 10
	// activeBytes bounds the total size of the large messages being sent concurrently,
	// except that a single message may be larger. Both sides hold them in memory; further
	// messages wait.
	activeBytes = 32 << 20
)

// outgoing is a frame queued for sending.
type outgoing struct {
	frame *node.PartitionFrame
	state atomic.Int32 // queued, then taken or dropped
	done  func()       // called once it is sent or cancelled, unless the stream ends; may be nil
}

const (
	queued = iota
	taken
	dropped
)

// drop removes a frame from the queue; it returns false if the frame may have been sent.
func (o *outgoing) drop() bool { return o.state.CompareAndSwap(queued, dropped) }

// outbound is the sending side of a stream. It combines queued frames into batches.
type outbound struct {
	queue chan *outgoing
	wake  chan struct{} // signals control or cancelled

	mu        sync.Mutex             // covers the fields below
	control   []*node.PartitionFrame // pings, pongs and cancellations; at most a few per pending request
	cancelled []uint64               // sequence numbers of messages to stop sending
}

func newOutbound() *outbound {
	return &outbound{queue: make(chan *outgoing, maxQueuedFrames), wake: make(chan struct{}, 1)}
}

// sendControl sends a small frame ahead of the queue. It does not block.
func (o *outbound) sendControl(f *node.PartitionFrame) {
	o.mu.Lock()
	o.control = append(o.control, f)
	o.mu.Unlock()
	o.wakeSender()
}

// forget stops sending the remaining pieces of a large message, and tells the receiver, which has some of
// them. It does not block.
func (o *outbound) forget(sequence uint64) {
	o.mu.Lock()
	o.cancelled = append(o.cancelled, sequence)
	o.mu.Unlock()
	o.wakeSender()
}

func (o *outbound) wakeSender() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// pieces is the unsent remainder of a large message.
type pieces struct {
	sequence uint64
	size     int // of the whole message
	rest     []byte
	done     func() // as in outgoing
}

// run sends until ctx ends or send fails.
func (o *outbound) run(ctx context.Context, send func(*node.PartitionBatch) error) error {
	b := &batch{}
	for {
		if len(b.large) == 0 {
			select {
			case f := <-o.queue:
				b.add(f)
			case <-o.wake:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		o.fill(b)
		if len(b.Frames) == 0 {
			continue
		}
		if err := send(&b.PartitionBatch); err != nil {
			return err
		}
		clear(b.Frames)
		b.Frames, b.size = b.Frames[:0], 0
	}
}

// fill adds the waiting frames to the batch. Control frames are added last, so that a
// cancellation follows the frame that it cancels.
func (o *outbound) fill(b *batch) {
	for more := true; more && b.size < batchBytes; {
		select {
		case f := <-o.queue:
			b.add(f)
		default:
			more = false
		}
	}
	o.mu.Lock()
	for _, sequence := range o.cancelled {
		if b.forget(sequence) {
			b.Frames = append(b.Frames, &node.PartitionFrame{Sequence: sequence, Cancel: true})
		}
	}
	for _, f := range o.control {
		if f.Cancel {
			b.forget(f.Sequence)
		}
		b.Frames = append(b.Frames, f)
	}
	o.control, o.cancelled = nil, o.cancelled[:0]
	o.mu.Unlock()
	b.addPiece()
}

// batch is the message being assembled for sending.
type batch struct {
	node.PartitionBatch
	size    int
	large   []*pieces   // being sent
	active  int         // total size of large
	waiting []*outgoing // large messages that exceed activeBytes, bounded by their senders
}

func (b *batch) add(o *outgoing) {
	if !o.state.CompareAndSwap(queued, taken) {
		return
	}
	f := o.frame
	size := f.SizeVT()
	if size < pieceBytes {
		b.Frames = append(b.Frames, f)
		b.size += size + 4
		finished(o.done)
		return
	}
	b.waiting = append(b.waiting, o)
	b.startLarge()
}

// startLarge starts sending waiting large messages while activeBytes permits.
func (b *batch) startLarge() {
	for len(b.waiting) > 0 {
		o := b.waiting[0]
		if len(b.large) > 0 && b.active+o.frame.SizeVT() > activeBytes {
			return
		}
		message := encodeBody(o.frame)
		p := &pieces{o.frame.Sequence, len(message), message, o.done}
		b.active += p.size
		b.large = append(b.large, p)
		b.waiting = slices.Delete(b.waiting, 0, 1)
	}
}

// encodeBody encodes the request or response of a frame.
func encodeBody(f *node.PartitionFrame) []byte {
	var out []byte
	if f.Request != nil {
		out, _ = f.Request.MarshalVT() // never fails
	} else {
		out, _ = f.Response.MarshalVT()
	}
	return out
}

// addPiece adds the next piece of a large message, in round-robin order.
func (b *batch) addPiece() {
	if len(b.large) == 0 {
		return
	}
	p := b.large[0]
	n := min(pieceBytes, len(p.rest))
	b.Frames = append(b.Frames, &node.PartitionFrame{Sequence: p.sequence, Piece: p.rest[:n], More: n < len(p.rest)})
	p.rest = p.rest[n:]
	b.large = slices.Delete(b.large, 0, 1)
	if len(p.rest) > 0 {
		b.large = append(b.large, p)
		return
	}
	b.active -= p.size
	finished(p.done)
	b.startLarge()
}

func finished(done func()) {
	if done != nil {
		done()
	}
}

// forget stops sending a large message. It returns whether pieces of it may have been sent.
func (b *batch) forget(sequence uint64) (begun bool) {
	sending := len(b.large)
	b.large = slices.DeleteFunc(b.large, func(p *pieces) bool {
		if p.sequence != sequence {
			return false
		}
		b.active -= p.size
		finished(p.done)
		return true
	})
	begun = len(b.large) < sending
	b.waiting = slices.DeleteFunc(b.waiting, func(o *outgoing) bool {
		if o.frame.Sequence != sequence {
			return false
		}
		finished(o.done)
		return true
	})
	b.startLarge()
	return begun
}
