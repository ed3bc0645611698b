package raftgroup

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/raftgroup/retention"
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
func lateFollower(t *testing.T, change func(*Config)) (c *testCluster, gate *gatedExports, leader, follower int) {
	gates := map[StateMachine]*gatedExports{}
	c = newTestClusterWith(t, 10, func(cfg *Config) {
		gate := gateExports(cfg.StateMachine.(*journal))
		gates[cfg.StateMachine] = gate
		cfg.StateMachine = gate
		patient(cfg) // an election on a busy machine would begin the transfer again from another leader
		if change != nil {
			change(cfg)
		}
	})
	c.groups[0].port.timeoutNow(time.Minute)
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
	case <-time.After(time.Minute):
		t.Fatal("nothing happened within a minute")
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
		case <-time.After(time.Minute):
			t.Fatal("the snapshot is not sent")
		}
		require.Eventually(t, func() bool {
			done = c.journals[f].Applied() == c.journals[l].Applied()
			return done || len(gate.begun) > 0
		}, time.Minute, time.Millisecond)
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
	}, time.Minute, time.Millisecond)
}

// TestHeldLogIsBoundedByBytes cuts the log when a slow transfer holds too much of it.
func TestHeldLogIsBoundedByBytes(t *testing.T) {
	const limit = 4 << 20
	c, gate, l, f := lateFollower(t, func(cfg *Config) { cfg.Transport.heldLog = retention.NewBudget(limit) })
	g := c.groups[l]
	large := string(make([]byte, 1<<20))
	held := g.Stats().FirstIndex
	require.Eventually(t, func() bool {
		propose(t, g, large)
		proposeMany(t, g, 1, 20)
		require.NoError(t, g.Snapshot(t.Context()))
		require.LessOrEqual(t, g.cfg.Transport.heldLog.Held(), int64(limit))
		return g.Stats().FirstIndex > held+100
	}, time.Minute, time.Millisecond)
	require.Zero(t, g.cfg.Transport.heldLog.Held())
	close(gate.release)
	require.Eventually(t, func() bool { return c.journals[f].Applied() == c.journals[l].Applied() }, time.Minute, time.Millisecond)
}
