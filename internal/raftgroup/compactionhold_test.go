package raftgroup

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// gatedExports is a state machine whose exports wait for the test.
type gatedExports struct {
	*journal
	begun   chan struct{} // one for each export that was begun
	release chan struct{} // an export continues after one of these
}

func gateExports(j *journal) *gatedExports {
	return &gatedExports{journal: j, begun: make(chan struct{}, 100), release: make(chan struct{})}
}

func (g *gatedExports) Export() (Exporter, error) {
	view, err := g.journal.Export()
	if err != nil {
		return nil, err
	}
	return &gatedView{view, g}, nil
}

type gatedView struct {
	Exporter
	g *gatedExports
}

func (v *gatedView) Each(ctx context.Context, emit func(key, value []byte) error) error {
	v.g.begun <- struct{}{}
	select {
	case <-v.g.release:
	case <-ctx.Done():
		return ctx.Err()
	}
	return v.Exporter.Each(ctx, emit)
}

// lateFollower has a follower that needs a snapshot, which the leader has begun to
// export and does not get on with. It returns the leader's gate, and both numbers.
func lateFollower(t *testing.T, change func(*Config)) (c *three, gate *gatedExports, leader, follower int) {
	gates := map[StateMachine]*gatedExports{}
	c = newThreeWith(t, 10, func(cfg *Config) {
		gate := gateExports(cfg.StateMachine.(*journal))
		gates[cfg.StateMachine] = gate
		cfg.StateMachine = gate
		if change != nil {
			change(cfg)
		}
	})
	leader = c.leader()
	follower = (leader + 1) % 3
	proposeMany(t, c.groups[leader], 1, 10)
	c.awaitSame() // the other one would take a dead follower for the leader that it does not know yet
	c.stop(follower)
	proposeMany(t, c.groups[leader], 11, 60)
	require.NoError(t, c.groups[leader].Snapshot(t.Context()))
	require.Equal(t, leader, c.leader())
	gate = gates[c.journals[leader]]
	c.restart(follower)
	awaitSignal(t, gate.begun)
	return c, gate, leader, follower
}

func awaitSignal(t *testing.T, signal <-chan struct{}) {
	t.Helper()
	select {
	case <-signal:
	case <-time.After(30 * time.Second):
		t.Fatal("nothing happened within 30 s")
	}
}

// TestLogIsKeptForAFollowerThatIsSentASnapshot cuts the log behind every snapshot
// that is under way, as a partition under sustained writes does.
func TestLogIsKeptForAFollowerThatIsSentASnapshot(t *testing.T) {
	c, gate, l, f := lateFollower(t, nil)
	written := 60
	for done := false; !done; {
		proposeMany(t, c.groups[l], written+1, written+50)
		written += 50
		require.NoError(t, c.groups[l].Snapshot(t.Context()))
		require.LessOrEqual(t, c.journals[f].importCount(), 1, "the log was cut past what the follower needed next")
		select {
		case gate.release <- struct{}{}:
		case <-gate.begun: // the transfer broke and began again; it waits at the gate
			continue
		case <-time.After(30 * time.Second):
			t.Fatal("the snapshot is not sent")
		}
		require.Eventually(t, func() bool {
			done = c.journals[f].Applied() == c.journals[l].Applied()
			return done || len(gate.begun) > 0
		}, 30*time.Second, time.Millisecond)
	}
	require.Equal(t, 1, c.journals[f].importCount())
	requireCommands(t, c.journals[f], written)

	// A follower that has caught up holds nothing.
	proposeMany(t, c.groups[l], written+1, written+50)
	require.Eventually(t, func() bool {
		propose(t, c.groups[l], "one more")
		require.NoError(t, c.groups[l].Snapshot(t.Context()))
		st := c.groups[l].Stats()
		return st.FirstIndex == st.LastIndex-9
	}, 30*time.Second, time.Millisecond)
}

// TestHeldLogIsBoundedByBytes cuts the log when a slow transfer holds too much of it.
func TestHeldLogIsBoundedByBytes(t *testing.T) {
	const limit = 4 << 20
	c, gate, l, f := lateFollower(t, nil)
	g := c.groups[l]
	g.storage.holds.limit = limit
	large := string(make([]byte, 1<<20))
	held := g.Stats().FirstIndex
	require.Eventually(t, func() bool {
		propose(t, g, large)
		proposeMany(t, g, 1, 20)
		require.NoError(t, g.Snapshot(t.Context()))
		require.LessOrEqual(t, g.cfg.Transport.heldLog.Load(), int64(limit))
		return g.Stats().FirstIndex > held+100
	}, 30*time.Second, time.Millisecond)
	require.Zero(t, g.cfg.Transport.heldLog.Load())
	close(gate.release)
	require.Eventually(t, func() bool { return c.journals[f].Applied() == c.journals[l].Applied() }, 30*time.Second, time.Millisecond)
}

// TestHoldsOfFollowers is about holds alone.
func TestHoldsOfFollowers(t *testing.T) {
	now := time.Unix(1000, 0)
	sizes := &logSizes{}
	for i := range uint64(100) {
		sizes.add([]*raft.Log{{Index: i + 1, Data: make([]byte, 1<<20)}})
	}
	newHolds := func() *compactionHolds {
		return &compactionHolds{sizes: sizes, limit: 50 << 20, shared: new(atomic.Int64), log: testLogger(t), now: func() time.Time { return now }}
	}
	at := func(match uint64) func(raft.ServerID, uint64) uint64 {
		return func(raft.ServerID, uint64) uint64 { return match }
	}
	t.Run("the lowest hold counts", func(t *testing.T) {
		c := newHolds()
		c.begin(80)
		h := c.begin(70)
		require.EqualValues(t, 60, c.bound(60, at(0)))
		require.EqualValues(t, 69, c.bound(90, at(0)))
		require.InDelta(t, 21<<20, c.shared.Load(), 1<<20)
		c.end(h)
		require.EqualValues(t, 79, c.bound(90, at(0)))
	})
	t.Run("a completed transfer follows its follower", func(t *testing.T) {
		c := newHolds()
		h := c.begin(70)
		c.follow(h, "b", 3)
		c.end(h)
		require.EqualValues(t, 69, c.bound(90, at(69)))
		require.EqualValues(t, 79, c.bound(90, at(80)))
		require.EqualValues(t, 90, c.bound(90, at(100)), "caught up")
		require.EqualValues(t, 90, c.bound(90, at(69)), "a hold that ended does not come back")
	})
	t.Run("a former leader holds nothing for its followers", func(t *testing.T) {
		c := newHolds()
		h := c.begin(70)
		c.follow(h, "b", 3)
		require.EqualValues(t, 90, c.bound(90, at(0)))
	})
	t.Run("no progress", func(t *testing.T) {
		c := newHolds()
		h := c.begin(70)
		now = now.Add(holdIdleLimit)
		require.EqualValues(t, 69, c.bound(90, at(0)))
		c.moved(h)
		now = now.Add(holdIdleLimit)
		require.EqualValues(t, 69, c.bound(90, at(0)))
		now = now.Add(1)
		require.EqualValues(t, 90, c.bound(90, at(0)))
	})
	t.Run("too many bytes", func(t *testing.T) {
		c := newHolds()
		c.begin(20)
		c.begin(60)
		require.EqualValues(t, 59, c.bound(90, at(0)), "the oldest hold is dropped")
		c.shared.Add(40 << 20) // by other groups
		require.EqualValues(t, 90, c.bound(90, at(0)))
		require.EqualValues(t, 40<<20, c.shared.Load())
	})
}

func TestMeasuredSizesOfALogAreBounded(t *testing.T) {
	sizes := &logSizes{}
	for i := range uint64(3 * maxMarks) {
		sizes.add([]*raft.Log{{Index: i + 1, Data: make([]byte, 1<<20)}})
	}
	require.LessOrEqual(t, len(sizes.marks), maxMarks)
	require.InDelta(t, 1000<<20, sizes.between(5001, 6000), 16<<20)
	require.InDelta(t, 10<<20, sizes.between(3*maxMarks-9, 3*maxMarks), 1<<20)
	require.Zero(t, sizes.between(10, 9))
}
