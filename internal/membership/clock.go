package membership

import (
	"context"
	"encoding/binary"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"

	"platform/internal/boottime"
)

const (
	// clockNoise is by how much a clock may seem to differ that does not: an answer
	// takes a moment, and not the same in both directions.
	clockNoise = 250 * time.Millisecond
	// clockTolerance is by how much the clock of a node may differ from what most
	// nodes say before somebody should look after it.
	clockTolerance = 5 * time.Second
	// clockMemory is for how long it is remembered what a clock said that is not heard
	// any more. Clocks that nobody sets drift by far less meanwhile than they may differ.
	clockMemory = time.Hour
	// clockReport is how often a clock that is off is reported.
	clockReport = 10 * time.Minute
)

// clocks compares the clock of this machine with those of the other nodes, which
// answer each probe of the gossip with their time. What they said is kept against the
// monotonic clock, suspension included, so that a step of this machine's time changes
// nothing in it.
type clocks struct {
	elapsed func() time.Duration // the monotonic clock
	wall    func() time.Time     // the machine's time
	log     *slog.Logger

	mu       sync.Mutex // covers the fields below
	others   map[string]reading
	next     chan struct{} // closed with the next reading
	reported time.Duration // when this clock was found to be off, zero: it is not
}

// reading is what the clock of another node said.
type reading struct {
	at   time.Duration // by the monotonic clock
	zero time.Time     // what it showed when that was zero, as far as can be told
}

// time is what the clock shows at a time of the monotonic clock.
func (r reading) time(at time.Duration) time.Time { return r.zero.Add(at) }

func newClocks(wall func() time.Time, log *slog.Logger) *clocks {
	return &clocks{elapsed: boottime.Start().Elapsed, wall: wall, log: log, others: map[string]reading{}, next: make(chan struct{})}
}

// note takes the time of another node in, which was sent about half of rtt ago. If
// that took long, it says too little.
func (c *clocks) note(node string, theirs time.Time, rtt time.Duration) {
	if rtt > clockNoise {
		return
	}
	at := c.elapsed()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.others[node] = reading{at, theirs.Add(rtt/2 - at)}
	close(c.next)
	c.next = make(chan struct{})
}

// heard returns a channel that is closed when the next answer comes.
func (c *clocks) heard() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.next
}

// settled tells whether nothing more that any of the nodes can say matters: all have
// been heard, or most of them have the time that this machine has.
func (c *clocks) settled(nodes []string) bool {
	own := c.wall()
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.elapsed()
	known, same := 0, 1
	for _, node := range nodes {
		r, ok := c.others[node]
		if !ok {
			continue
		}
		known++
		if own.Sub(r.time(at)).Abs() <= clockTolerance {
			same++
		}
	}
	return known == len(nodes) || 2*same > len(nodes)+1
}

// now is the machine's time if as many clocks are behind it as are ahead, but for
// noise, and else the nearest one of which that is true: a majority decides, and of two
// that differ each goes by its own.
func (c *clocks) now() time.Time {
	own := c.wall().Round(0)
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.elapsed()
	all := make([]time.Time, 0, 8)
	all = append(all, own)
	for node, r := range c.others {
		if at-r.at > clockMemory {
			delete(c.others, node)
			continue
		}
		all = append(all, r.time(at))
	}
	agreed := middle(all)
	off := own.Sub(agreed)
	c.report(at, off)
	if off.Abs() <= clockNoise {
		return own
	}
	return agreed
}

// middle is the first of the times, moved into the middle of them all.
func middle(all []time.Time) time.Time {
	own, n := all[0], len(all)
	slices.SortFunc(all, time.Time.Compare)
	if low := all[(n-1)/2]; own.Before(low) {
		return low
	}
	if high := all[n/2]; own.After(high) {
		return high
	}
	return own
}

func (c *clocks) report(at, off time.Duration) {
	switch {
	case off.Abs() <= clockTolerance:
		if c.reported != 0 {
			c.reported = 0
			c.log.Info("the clock of this machine is right again")
		}
	case c.reported == 0 || at-c.reported > clockReport:
		c.reported = max(at, 1)
		c.log.Warn("the clock of this machine is wrong: most nodes have another time, which timers go by; look after its time synchronization",
			"off_by", off.Round(time.Millisecond).String())
	}
}

// Now is the time that most of the nodes agree on: this machine's as long as it is not
// alone with it.
func (m *Members) Now() time.Time { return m.clocks.now() }

// AwaitNow waits until it is known whether this machine is alone with its time, or ctx
// ends. That takes a second after the start and no time later.
func (m *Members) AwaitNow(ctx context.Context) {
	for {
		heard := m.clocks.heard()
		var others []string
		for _, member := range m.Nodes() {
			if !member.Self && member.State == Alive {
				others = append(others, member.Name)
			}
		}
		if m.clocks.settled(others) {
			return
		}
		select {
		case <-heard:
		case <-ctx.Done():
			return
		}
	}
}

var _ memberlist.PingDelegate = (*delegate)(nil)

// AckPayload is this machine's time, which goes with the answers to probes.
func (d *delegate) AckPayload() []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(d.m.clocks.wall().UnixNano()))
}

// NotifyPingComplete takes the time of a node that has answered a probe.
func (d *delegate) NotifyPingComplete(n *memberlist.Node, rtt time.Duration, payload []byte) {
	if len(payload) == 8 {
		d.m.clocks.note(n.Name, time.Unix(0, int64(binary.BigEndian.Uint64(payload))), rtt)
		d.m.clocks.now() // says so if this clock is off, also where nobody asks for the time
	}
}
