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
	// clockNoise is the measurement error of a clock comparison: network latency is
	// neither zero nor symmetric.
	clockNoise = 250 * time.Millisecond
	// clockTolerance is the deviation from the majority above which a clock is reported
	// to operators.
	clockTolerance = 5 * time.Second
	// sampleTTL bounds the age of a clock sample. Free-running clocks drift by far less
	// than clockTolerance within it.
	sampleTTL = time.Hour
	// clockReportInterval is the interval between warnings about a wrong clock.
	clockReportInterval = 10 * time.Minute
)

// clocks compares this machine's clock with the clocks of the other nodes, which return
// their time with every probe acknowledgement. Samples are stored relative to a monotonic
// clock that includes suspension, so a step of this machine's clock does not affect them.
type clocks struct {
	elapsed func() time.Duration // monotonic clock
	wall    func() time.Time     // wall clock
	log     *slog.Logger

	mu       sync.Mutex             // covers the fields below
	samples  map[string]clockSample // by node name
	updated  chan struct{}          // closed when the next sample arrives
	reported time.Duration          // when the clock was last reported as wrong; 0 if it is right
}

// clockSample is the time of another node.
type clockSample struct {
	at   time.Duration // monotonic time of the measurement
	zero time.Time     // estimated time of the node at monotonic time zero
}

// timeAt returns the estimated time of the node at a monotonic time.
func (s clockSample) timeAt(at time.Duration) time.Time { return s.zero.Add(at) }

func newClocks(wall func() time.Time, log *slog.Logger) *clocks {
	return &clocks{elapsed: boottime.Start().Elapsed, wall: wall, log: log, samples: map[string]clockSample{}, updated: make(chan struct{})}
}

// record stores the time of another node, sent about half of rtt ago. Samples with a long
// round trip are too inaccurate and ignored.
func (c *clocks) record(node string, theirs time.Time, rtt time.Duration) {
	if rtt > clockNoise {
		return
	}
	at := c.elapsed()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.samples[node] = clockSample{at, theirs.Add(rtt/2 - at)}
	close(c.updated)
	c.updated = make(chan struct{})
}

// nextSample returns a channel that is closed when the next sample arrives.
func (c *clocks) nextSample() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.updated
}

// converged reports whether further samples cannot change the result of now: all nodes
// have been sampled, or a majority agrees with this machine.
func (c *clocks) converged(nodes []string) bool {
	own := c.wall()
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.elapsed()
	known, agreeing := 0, 1
	for _, node := range nodes {
		s, ok := c.samples[node]
		if !ok {
			continue
		}
		known++
		if own.Sub(s.timeAt(at)).Abs() <= clockTolerance {
			agreeing++
		}
	}
	return known == len(nodes) || 2*agreeing > len(nodes)+1
}

// now returns the machine's own time if, within clockNoise, it is a median of all clocks,
// and otherwise the nearest median: a majority overrules this machine, whereas two nodes
// that disagree each keep their own time.
func (c *clocks) now() time.Time {
	own := c.wall().Round(0)
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.elapsed()
	all := make([]time.Time, 0, 8)
	all = append(all, own)
	for node, s := range c.samples {
		if at-s.at > sampleTTL {
			delete(c.samples, node)
			continue
		}
		all = append(all, s.timeAt(at))
	}
	agreed := nearestMedian(all)
	off := own.Sub(agreed)
	c.report(at, off)
	if off.Abs() <= clockNoise {
		return own
	}
	return agreed
}

// nearestMedian clamps the first of the times to the median range of all. It reorders all.
func nearestMedian(all []time.Time) time.Time {
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
			c.log.Info("system clock agrees with the cluster again")
		}
	case c.reported == 0 || at-c.reported > clockReportInterval:
		c.reported = max(at, 1)
		c.log.Warn("system clock differs from the majority of nodes; timers use the majority's time; check time synchronization on this machine",
			"off_by", off.Round(time.Millisecond).String())
	}
}

// Now returns the time that the majority of the nodes agrees on: this machine's time
// unless a majority contradicts it.
func (m *Members) Now() time.Time { return m.clocks.now() }

// AwaitNow waits until enough nodes have reported their time for Now to be reliable, or
// ctx ends. This takes about a second after the start and returns immediately later.
func (m *Members) AwaitNow(ctx context.Context) {
	for {
		sampled := m.clocks.nextSample() // before checking, so that no sample is missed
		var others []string
		for _, member := range m.Nodes() {
			if !member.Self && member.State == Alive {
				others = append(others, member.Name)
			}
		}
		if m.clocks.converged(others) {
			return
		}
		select {
		case <-sampled:
		case <-ctx.Done():
			return
		}
	}
}

var _ memberlist.PingDelegate = (*delegate)(nil)

// AckPayload returns this machine's time, which is sent with probe acknowledgements.
func (d *delegate) AckPayload() []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(d.m.clocks.wall().UnixNano()))
}

// NotifyPingComplete records that a node has acknowledged a probe, and its time.
func (d *delegate) NotifyPingComplete(n *memberlist.Node, rtt time.Duration, payload []byte) {
	d.m.table.noteAck(n.Name)
	if len(payload) == 8 {
		d.m.clocks.record(n.Name, time.Unix(0, int64(binary.BigEndian.Uint64(payload))), rtt)
		d.m.clocks.now() // logs a wrong clock even if nothing else reads the time
	}
}
