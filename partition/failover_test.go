package partition

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/partition/machine"
)

func loaded(t *testing.T, tune func(*replicaSet)) (*replicaSet, *load) {
	w := newWorker()
	c := newReplicaSet(t, tune, w.definitions()...)
	c.worker = w
	c.leader()
	l := startLoad(c, w)
	l.progress(100)
	return c, l
}

// steady makes the election timeouts longer than a busy machine needs for a failover that
// does not depend on them.
func steady(c *replicaSet) {
	const long = 4 * time.Second
	c.profile.HeartbeatTimeout, c.profile.ElectionTimeout, c.profile.LeaderLeaseTimeout = long, long, long
}

// requireShort verifies that callers usually wait for less time than a follower needs to notice that
// its leader is silent. gaps are the times without responses.
func (c *replicaSet) requireShort(gaps []time.Duration, when string) {
	c.t.Helper()
	slices.Sort(gaps)
	c.t.Logf("no responses %s: %v", when, gaps)
	require.Less(c.t, gaps[len(gaps)/2], c.profile.HeartbeatTimeout)
}

func TestCallsSucceedWhileLeadersAreKilled(t *testing.T) {
	c, l := loaded(t, steady)
	var gaps []time.Duration
	for range 5 {
		victim := c.leader()
		l.gap()
		c.kill(victim)
		c.leader(victim)
		l.progress(50)
		gaps = append(gaps, l.gap())
		c.start(victim)
		l.progress(100)
	}
	l.finish(t)
	c.requireSame(0, 1, 2)
	c.requireShort(gaps, "after a kill")
}

func TestLeadershipTransferIsFasterThanFailover(t *testing.T) {
	c, l := loaded(t, steady)
	var gaps []time.Duration
	for range 10 {
		from := c.leader()
		to := (from + 1) % 3
		l.gap()
		require.NoError(t, c.hosts[from].p.TransferLeadership(t.Context(), c.servers(to)[0].ID))
		require.Equal(t, to, c.leader(from))
		l.progress(50)
		gaps = append(gaps, l.gap())
	}
	l.finish(t)
	c.requireSame(0, 1, 2)
	c.requireShort(gaps, "during a leadership transfer")
}

func TestRollingRestartIsFasterThanFailover(t *testing.T) {
	c, l := loaded(t, steady)
	var gaps []time.Duration
	for range 2 {
		for i := range c.hosts {
			l.gap()
			c.close(i)
			l.progress(50)
			gaps = append(gaps, l.gap())
			c.start(i)
			l.progress(50)
		}
	}
	l.finish(t)
	c.requireSame(0, 1, 2)
	c.requireShort(gaps, "during a restart")
}

func TestCallsFailWithoutAMajority(t *testing.T) {
	w := newWorker()
	c := newReplicaSet(t, nil, w.definitions()...)
	last := c.leader()
	for i := range c.hosts {
		if i != last {
			c.kill(i)
		}
	}
	p := c.hosts[last].p
	require.Eventually(t, func() bool { return !p.Leading() }, time.Minute, time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	start := time.Now()
	inv := request("Steps", "do", `"x"`)
	_, _, err := p.Call(ctx, inv)
	require.ErrorIs(t, err, ErrNotLeader)
	_, err = p.Invoke(ctx, inv)
	require.ErrorIs(t, err, ErrNotLeader)
	_, err = p.Await(ctx, inv.ID)
	require.ErrorIs(t, err, ErrNotLeader)
	_, err = p.Find(ctx, inv.ID)
	require.ErrorIs(t, err, ErrNotLeader)
	_, err = p.Operate(ctx, &machine.Kill{Target: inv.ID})
	require.ErrorIs(t, err, ErrNotLeader)
	require.ErrorIs(t, p.Reconcile(ctx, c.servers(0, 1, 2)), ErrNotLeader)
	require.ErrorIs(t, p.TransferLeadership(ctx, ""), ErrNotLeader)
	require.Less(t, time.Since(start), 10*time.Second, "rejected immediately")
	require.Zero(t, p.Leader())
	require.Nil(t, p.Status().Followers)

	for i := range c.hosts {
		if i != last {
			c.start(i)
		}
	}
	e, err := c.call(t.Context(), inv)
	require.NoError(t, err)
	require.Equal(t, "6", string(e.Result.Value))
	c.requireSame(0, 1, 2)
}
