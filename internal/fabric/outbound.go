package fabric

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"platform/proto/node"
)

const (
	// queuedFrames bounds what waits to be written to a stream; who has more to say
	// waits.
	queuedFrames = 256
	// batchBytes is the size from which a batch is sent and not added to.
	batchBytes = 64 << 10
	// pieceBytes is the size from which a request or response goes in pieces, so that
	// small ones overtake it.
	pieceBytes = 64 << 10
	// activeBytes bounds the large messages that are being sent at a time, but one may be
	// larger: both sides hold those in memory as a whole. The others wait.
	activeBytes = 32 << 20
)

// outgoing is a frame on its way to the stream.
type outgoing struct {
	frame *node.PartitionFrame
	state atomic.Int32 // queued, then taken or dropped
}

const (
	queued = iota
	taken
	dropped
)

// drop takes a frame back; false if it may have been sent.
func (o *outgoing) drop() bool { return o.state.CompareAndSwap(queued, dropped) }

// outbound is the sending side of a stream: it makes batches of what is waiting.
type outbound struct {
	queue chan *outgoing
	wake  chan struct{} // something is urgent

	mu     sync.Mutex             // covers the fields below
	urgent []*node.PartitionFrame // signs of life and cancellations; at most a few per request under way
	gone   []uint64               // sequences of which nothing more need be sent
}

func newOutbound() *outbound {
	return &outbound{queue: make(chan *outgoing, queuedFrames), wake: make(chan struct{}, 1)}
}

// word sends a small frame that goes before all that is queued. It does not block.
func (o *outbound) word(f *node.PartitionFrame) {
	o.mu.Lock()
	o.urgent = append(o.urgent, f)
	o.mu.Unlock()
	o.hurry()
}

// forget stops sending the rest of a large request or response. It does not block.
func (o *outbound) forget(sequence uint64) {
	o.mu.Lock()
	o.gone = append(o.gone, sequence)
	o.mu.Unlock()
	o.hurry()
}

func (o *outbound) hurry() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// pieces is the rest of a large request or response.
type pieces struct {
	sequence uint64
	size     int // of the whole message
	rest     []byte
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

// fill adds what else is waiting. Cancellations come behind the frames that they are
// about, which were taken before.
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
	for _, sequence := range o.gone {
		b.forget(sequence)
	}
	for _, f := range o.urgent {
		if f.Cancel {
			b.forget(f.Sequence)
		}
		b.Frames = append(b.Frames, f)
	}
	o.urgent, o.gone = nil, o.gone[:0]
	o.mu.Unlock()
	b.addPiece()
}

// batch is what is sent next.
type batch struct {
	node.PartitionBatch
	size    int
	large   []*pieces              // being sent
	active  int                    // bytes in them
	waiting []*node.PartitionFrame // large ones that are sent after those
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
		return
	}
	b.waiting = append(b.waiting, f)
	b.start()
}

// start begins with large messages that wait, as far as there is room for them.
func (b *batch) start() {
	for len(b.waiting) > 0 {
		f := b.waiting[0]
		if len(b.large) > 0 && b.active+f.SizeVT() > activeBytes {
			return
		}
		message := body(f)
		p := &pieces{f.Sequence, len(message), message}
		b.active += p.size
		b.large = append(b.large, p)
		b.waiting = slices.Delete(b.waiting, 0, 1)
	}
}

// body encodes the message in a frame.
func body(f *node.PartitionFrame) []byte {
	var out []byte
	if f.Request != nil {
		out, _ = f.Request.MarshalVT() // has no way to fail
	} else {
		out, _ = f.Response.MarshalVT()
	}
	return out
}

// addPiece adds the next piece of one of the large messages, which take turns.
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
	b.start()
}

func (b *batch) forget(sequence uint64) {
	b.large = slices.DeleteFunc(b.large, func(p *pieces) bool {
		if p.sequence != sequence {
			return false
		}
		b.active -= p.size
		return true
	})
	b.waiting = slices.DeleteFunc(b.waiting, func(f *node.PartitionFrame) bool { return f.Sequence == sequence })
	b.start()
}
