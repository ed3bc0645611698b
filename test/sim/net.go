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

// errReset is what is left of a connection whose other end is gone.
var errReset = status.Error(codes.Unavailable, "connection reset by peer")

// keepalive is when a connection on which nothing comes through is given up, by either
// end: gRPC asks after 10 s of silence and waits for 5 s.
const keepalive = 15 * time.Second

// way is one direction between two nodes. Services are a node by the name of "svc".
type way struct{ from, to string }

// weather is how a way is at a time.
type weather struct {
	held    bool          // nothing arrives; what is sent waits, as TCP has it
	slow    time.Duration // added to the delay, in part
	loss    float64       // share of the Raft messages that get lost
	shuffle bool          // Raft messages may overtake each other
}

// network carries messages between the nodes of a simulation.
type network struct {
	trace *trace
	seed  uint64

	mu      sync.Mutex // covers the fields below
	ways    map[way]*road
	hosts   map[string]*host // by address; absent: nobody listens
	changed chan struct{}    // closed when the weather changes
	pipes   map[*pipe]struct{}
	order   []*pipe // of pipes, as they were made
}

// road is a way, its weather and its own chance.
type road struct {
	weather
	rng    *rand.Rand
	breaks *time.Timer // while it is held
}

func newNetwork(seed uint64, t *trace) *network {
	return &network{
		trace: t, seed: seed, ways: map[way]*road{}, hosts: map[string]*host{},
		changed: make(chan struct{}), pipes: map[*pipe]struct{}{},
	}
}

func (n *network) road(w way) *road {
	r := n.ways[w]
	if r == nil {
		r = &road{rng: chance(n.seed, "road "+w.from+" "+w.to)}
		n.ways[w] = r
	}
	return r
}

// set changes the weather of a way.
func (n *network) set(w way, change func(*weather)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := n.road(w)
	was := r.held
	change(&r.weather)
	switch {
	case r.held && !was:
		r.breaks = time.AfterFunc(keepalive, func() { n.cut(w.from, w.to) })
	case !r.held && was:
		r.breaks.Stop()
	}
	close(n.changed)
	n.changed = make(chan struct{})
}

// held tells whether nothing comes through, and returns what is closed when that may
// have changed.
func (n *network) held(w way) (bool, <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.road(w).held, n.changed
}

// listen makes a host known at its address; nil takes it away.
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

// cut breaks the connections between two nodes.
func (n *network) cut(a, b string) {
	n.breakPipes(func(p *pipe) bool {
		return p.way == way{a, b} || p.way == way{b, a}
	})
}

// gone breaks the connections of a node that has ended.
func (n *network) gone(node string) {
	n.breakPipes(func(p *pipe) bool { return p.way.from == node || p.way.to == node })
}

func (n *network) breakPipes(which func(*pipe) bool) {
	n.mu.Lock()
	pipes := slices.Clone(n.order)
	n.mu.Unlock()
	for _, p := range pipes {
		if which(p) {
			p.fail(errReset)
		}
	}
}

// packet is a message on its way, or, with an error, the end of them.
type packet struct {
	at   time.Time
	data []byte
	err  error
}

// pipe is one direction of a connection or of a stream on it.
type pipe struct {
	net   *network
	way   way
	lossy bool // Raft copes with loss and disorder

	mu    sync.Mutex // covers the fields below
	queue []packet
	last  time.Time
	begun bool
	err   error
	wake  chan struct{}
}

func (n *network) pipe(w way, lossy bool) *pipe {
	p := &pipe{net: n, way: w, lossy: lossy, wake: make(chan struct{}, 1)}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pipes[p] = struct{}{}
	n.order = append(n.order, p)
	return p
}

// forget takes a pipe off the list of those that may be cut.
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

// delay draws how long a message takes, and whether it gets lost.
func (n *network) delay(w way, lossy bool) (d time.Duration, lost, shuffled bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := n.road(w)
	d = leastDelay + time.Duration(r.rng.Int64N(int64(usualDelay)))
	if r.rng.IntN(50) == 0 {
		d += time.Duration(r.rng.Int64N(int64(5 * time.Millisecond)))
	}
	if r.slow > 0 {
		d += time.Duration(r.rng.Int64N(int64(r.slow)))
	}
	chanceOfLoss := r.rng.Float64()
	return d, lossy && chanceOfLoss < r.loss, lossy && r.shuffle
}

// send puts a message on its way. It never blocks.
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
	p.nudge()
	return nil
}

func (p *pipe) nudge() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// fail ends the pipe at once; what is on its way is lost.
func (p *pipe) fail(err error) {
	p.mu.Lock()
	if p.err == nil {
		p.err, p.queue = err, nil
	}
	p.nudge()
	p.mu.Unlock()
	p.net.forget(p)
}

var errGivenUp = errors.New("given up")

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
			return nil, errGivenUp
		}
		if timer != nil {
			timer.Stop()
		}
	}
}
