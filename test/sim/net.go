package sim

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// errReset is the error of a connection whose peer is gone.
var errReset = status.Error(codes.Unavailable, "connection reset by peer")

// keepalive is when an idle connection is closed by either end: gRPC pings after 10 s of
// silence and waits for 5 s.
const keepalive = 15 * time.Second

// link is one direction between two nodes. The services are a node named "svc".
type link struct{ from, to string }

// conditions are the fault conditions of a link.
type conditions struct {
	held    bool          // messages are delayed until it is reset, as with TCP
	delay   time.Duration // upper bound of an additional delay
	loss    float64       // fraction of lost Raft messages
	reorder bool          // Raft messages may be reordered
}

// network carries messages between the nodes of a simulation.
type network struct {
	trace *trace
	seed  uint64

	mu      sync.Mutex // covers the fields below
	ways    map[link]*linkState
	hosts   map[string]*host // by address; absent: connection refused
	changed chan struct{}    // closed when conditions change
	pipes   map[*pipe]struct{}
	order   []*pipe // pipes in order of creation
}

// linkState is a link with its conditions and random source.
type linkState struct {
	conditions
	rng    *rand.Rand
	breaks *time.Timer // while it is held
}

func newNetwork(seed uint64, t *trace) *network {
	return &network{
		trace: t, seed: seed, ways: map[link]*linkState{}, hosts: map[string]*host{},
		changed: make(chan struct{}), pipes: map[*pipe]struct{}{},
	}
}

func (n *network) link(w link) *linkState {
	r := n.ways[w]
	if r == nil {
		r = &linkState{rng: newRand(n.seed, "road "+w.from+" "+w.to)}
		n.ways[w] = r
	}
	return r
}

// set changes the conditions of a link.
func (n *network) set(w link, change func(*conditions)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := n.link(w)
	was := r.held
	change(&r.conditions)
	switch {
	case r.held && !was:
		r.breaks = time.AfterFunc(keepalive, func() { n.breakConnections(w.from, w.to) })
	case !r.held && was:
		r.breaks.Stop()
	}
	close(n.changed)
	n.changed = make(chan struct{})
}

// held reports whether a link is held, and returns a channel that is closed when that may
// have changed.
func (n *network) held(w link) (bool, <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.link(w).held, n.changed
}

// listen registers a host at its address; nil removes it.
func (n *network) listen(address string, h *host) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if h == nil {
		delete(n.hosts, address)
		return
	}
	n.hosts[address] = h
}

func (n *network) host(address string) *host {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.hosts[address]
}

// breakConnections breaks the connections between two nodes.
func (n *network) breakConnections(a, b string) {
	n.breakPipes(func(p *pipe) bool {
		return p.way == link{a, b} || p.way == link{b, a}
	})
}

// breakNode breaks the connections of a node that has crashed.
func (n *network) breakNode(node string) {
	n.breakPipes(func(p *pipe) bool { return p.way.from == node || p.way.to == node })
}

func (n *network) breakPipes(matches func(*pipe) bool) {
	n.mu.Lock()
	pipes := slices.Clone(n.order)
	n.mu.Unlock()
	for _, p := range pipes {
		if matches(p) {
			p.fail(errReset)
		}
	}
}

// packet is a message in transit, or with an error the end of a pipe.
type packet struct {
	at   time.Time
	data []byte
	err  error
}

// pipe is one direction of a connection or of a stream on it.
type pipe struct {
	net   *network
	way   link
	lossy bool // for Raft, which tolerates loss and reordering

	mu    sync.Mutex // covers the fields below
	queue []packet
	last  time.Time
	begun bool
	err   error
	wake  chan struct{}
}

func (n *network) pipe(w link, lossy bool) *pipe {
	p := &pipe{net: n, way: w, lossy: lossy, wake: make(chan struct{}, 1)}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pipes[p] = struct{}{}
	n.order = append(n.order, p)
	return p
}

// forget removes a pipe from the list.
func (n *network) forget(p *pipe) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.pipes, p)
	if i := slices.Index(n.order, p); i >= 0 {
		n.order = slices.Delete(n.order, i, i+1)
	}
}

const (
	leastDelay = 80 * time.Microsecond
	usualDelay = 400 * time.Microsecond
)

// delay returns a random delay of a message and whether it is lost.
func (n *network) delay(w link, lossy bool) (d time.Duration, lost, shuffled bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := n.link(w)
	d = leastDelay + time.Duration(r.rng.Int64N(int64(usualDelay)))
	if r.rng.IntN(50) == 0 {
		d += time.Duration(r.rng.Int64N(int64(5 * time.Millisecond)))
	}
	if r.delay > 0 {
		d += time.Duration(r.rng.Int64N(int64(r.delay)))
	}
	chanceOfLoss := r.rng.Float64()
	return d, lossy && chanceOfLoss < r.loss, lossy && r.reorder
}

// send sends a message. It never blocks.
func (p *pipe) send(data []byte, end error) error {
	d, lost, shuffled := p.net.delay(p.way, p.lossy)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return p.err
	}
	p.net.trace.frame(p.way, len(data))
	if lost && p.begun && end == nil {
		return nil
	}
	at := time.Now().Add(d)
	if !shuffled || !p.begun || end != nil {
		if at.Before(p.last) {
			at = p.last
		}
		p.last = at
	}
	p.begun = true
	i := len(p.queue)
	for i > 0 && p.queue[i-1].at.After(at) {
		i--
	}
	p.queue = slices.Insert(p.queue, i, packet{at, data, end})
	p.notify()
	return nil
}

func (p *pipe) notify() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// fail ends the pipe immediately and drops messages in transit.
func (p *pipe) fail(err error) {
	p.mu.Lock()
	if p.err == nil {
		p.err, p.queue = err, nil
	}
	p.notify()
	p.mu.Unlock()
	p.net.forget(p)
}

var errDeadline = errors.New("deadline exceeded")

// receive returns the next message. One goroutine may receive at a time.
func receive[T any](p *pipe, stop <-chan T) ([]byte, error) {
	for {
		held, changed := p.net.held(p.way)
		p.mu.Lock()
		if p.err != nil {
			p.mu.Unlock()
			return nil, p.err
		}
		wait := time.Duration(-1)
		if len(p.queue) > 0 && !held {
			wait = max(time.Until(p.queue[0].at), 0)
			if wait == 0 {
				next := p.queue[0]
				p.queue = slices.Delete(p.queue, 0, 1)
				p.mu.Unlock()
				if next.err != nil {
					p.fail(next.err)
					return nil, next.err
				}
				return next.data, nil
			}
		}
		p.mu.Unlock()
		var due <-chan time.Time
		var timer *time.Timer
		if wait > 0 {
			timer = time.NewTimer(wait)
			due = timer.C
		}
		select {
		case <-due:
		case <-p.wake:
		case <-changed:
		case <-stop:
			return nil, errDeadline
		}
		if timer != nil {
			timer.Stop()
		}
	}
}
