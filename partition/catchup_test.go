package partition

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/feature"
	"platform/internal/raftgroup"
	"platform/partition/codec"
	"platform/partition/machine"
)

// awayEntries is how many entries a follower misses: many appends, and ten times what the
// log cache holds.
const awayEntries = 5_000

// fill commits n entries, each with an invocation that starts next year.
func (c *replicaSet) fill(n int) {
	c.t.Helper()
	var left atomic.Int64
	left.Store(int64(n))
	start := time.Now().AddDate(1, 0, 0).UnixMilli()
	var wg sync.WaitGroup
	for range 128 {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				inv := request("Steps", "do", `"later"`)
				inv.StartAt = start
				for c.commit(inv) != nil {
					c.leader()
				}
			}
		})
	}
	wg.Wait()
}

// commit commits a command in a log entry of its own, bypassing the proposer.
func (c *replicaSet) commit(command machine.Command) error {
	l, err := c.hosts[c.leader()].p.leader()
	if err != nil {
		return err
	}
	data, err := codec.EncodeCommand(feature.Supported(), command)
	if err != nil {
		return err
	}
	if data, err = l.seal([][]byte{data}); err != nil {
		return err
	}
	_, err = l.p.group.Propose(data).Wait(c.t.Context())
	return err
}

func away(t *testing.T, trailing uint64, entries int) (c *replicaSet, follower int) {
	w := newWorker()
	c = newReplicaSet(t, func(c *replicaSet) { c.profile.TrailingLogs = trailing }, w.definitions()...)
	leader := c.leader()
	follower = (leader + 1) % 3
	c.fill(100)
	require.NoError(t, c.hosts[follower].p.Checkpoint(t.Context()))
	c.kill(follower)
	before := c.hosts[leader].p.Status().Last
	start := time.Now()
	c.fill(entries)
	t.Logf("%d entries in %v", c.hosts[leader].p.Status().Last-before, time.Since(start).Round(time.Millisecond))
	require.GreaterOrEqual(t, c.hosts[leader].p.Status().Last-before, uint64(entries))
	require.NoError(t, c.hosts[leader].p.Checkpoint(t.Context()))
	return c, follower
}

func TestAFollowerCatchesUpFromTheLog(t *testing.T) {
	c, f := away(t, 2*awayEntries, awayEntries)
	start := time.Now()
	c.start(f)
	c.requireSame(0, 1, 2)
	t.Logf("caught up in %v", time.Since(start).Round(time.Millisecond))
	require.Less(t, c.hosts[f].p.Status().Snapshot, uint64(awayEntries), "no snapshot was installed")
}

func TestAFollowerCatchesUpFromASnapshot(t *testing.T) {
	c, f := away(t, 50, awayEntries)
	start := time.Now()
	c.start(f)
	c.requireSame(0, 1, 2)
	t.Logf("caught up in %v", time.Since(start).Round(time.Millisecond))
	// The record of the snapshot is written after the state was switched to it.
	require.Eventually(t, func() bool { return c.hosts[f].p.Status().Snapshot > awayEntries }, time.Minute, time.Millisecond)

	// It can lead with the received state.
	require.Eventually(t, func() bool {
		l := c.leader()
		return l == f || c.hosts[l].p.TransferLeadership(t.Context(), c.servers(f)[0].ID) == nil && c.leader(l) == f
	}, time.Minute, 10*time.Millisecond)
	e, err := c.call(t.Context(), request("Steps", "do", `"x"`))
	require.NoError(t, err)
	require.Equal(t, "6", string(e.Result.Value))
	c.requireSame(0, 1, 2)
}

// The receiver is killed after an increasing part of the snapshot, until one is received
// completely.
func TestAReplicaKilledDuringSnapshotTransferCatchesUp(t *testing.T) {
	const entries = 4000
	c, f := away(t, 50, entries)
	rounds := 0
	for whole := false; !whole; rounds++ {
		require.Less(t, rounds, 20)
		limit := int64(1<<10) << (2 * rounds) // the leader's retry delay doubles with each failure
		var sent atomic.Int64
		c.network.watch(func(w direction, n int) {
			if w.to == c.hosts[f].name {
				sent.Add(int64(n))
			}
		})
		c.start(f)
		require.Eventually(t, func() bool {
			whole = c.hosts[f].p.Status().Applied >= entries
			return whole || sent.Load() > limit
		}, time.Minute, time.Millisecond/4)
		c.kill(f)
	}
	c.network.watch(nil)
	t.Logf("killed %d times", rounds)
	c.fill(10)
	c.start(f)
	c.requireSame(0, 1, 2)
}

func TestAWipedHostRejoinsAsANewReplica(t *testing.T) {
	c, l := loaded(t, func(c *replicaSet) { c.profile.TrailingLogs = 50 })
	wiped := (c.leader() + 1) % 3
	address := c.hosts[wiped].address
	old := c.servers(wiped)[0]
	c.kill(wiped)
	l.progress(100)
	require.NoError(t, c.hosts[c.leader()].p.Checkpoint(t.Context()))
	again := c.add(c.hosts[wiped].name+"2", address, true)
	c.start(again)
	l.progress(50)
	require.Zero(t, c.hosts[again].p.Status().Applied, "it has not been added yet")

	var members []int
	for i := range 3 {
		if i != wiped {
			members = append(members, i)
		}
	}
	c.reconcile(append(members, again)...)
	status := c.hosts[c.leader()].p.Status()
	_, found := status.Members.Find(old.ID)
	require.False(t, found)
	require.Len(t, status.Followers, 2)
	l.progress(50)
	l.finish(t)
	c.requireSame(append(members, again)...)

	// The new replica is a voter: it forms a majority with one other.
	c.kill(members[0])
	_, err := c.call(t.Context(), request("Steps", "do", `"x"`))
	require.NoError(t, err)
}

// reconcile makes the current leader reconcile until the members are these hosts.
func (c *replicaSet) reconcile(hosts ...int) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 30*time.Second)
	defer cancel()
	for {
		err := c.hosts[c.leader()].p.Reconcile(ctx, c.servers(hosts...))
		if err == nil {
			return
		}
		require.ErrorIs(c.t, err, ErrNotLeader)
	}
}

func TestReplicasMoveUnderLoad(t *testing.T) {
	c, l := loaded(t, func(c *replicaSet) { c.profile.TrailingLogs = 50 })
	d := c.add("d", "", true)
	c.start(d)
	require.NoError(t, c.hosts[c.leader()].p.Checkpoint(t.Context()))
	members := []int{0, 1, 2, d}
	for range 4 { // each moves once, the leader first
		gone := c.leader()
		var rest []int
		for _, i := range members {
			if i != gone {
				rest = append(rest, i)
			}
		}
		l.gap()
		c.reconcile(rest...)
		l.progress(20)
		t.Logf("%s moved; no responses for %v", c.hosts[gone].name, l.gap())
		_, in := c.hosts[c.leader()].p.Status().Members.Find(c.servers(gone)[0].ID)
		require.False(t, in)

		h := c.hosts[gone]
		c.close(gone)
		c.destroy(h)
		h.join = true
		c.start(gone)
		require.Zero(t, h.p.Status().Last)
		c.reconcile(members...)
		l.progress(20)
	}
	l.finish(t)
	c.requireSame(members...)
}

// destroy removes a replica's data, first only partially.
func (c *replicaSet) destroy(h *host) {
	t := c.t
	logs, tables := h.reopen(t)
	require.NoError(t, logs.BeginDestroy(GroupID(0)))
	require.NoError(t, tables.Destroy(t.Context(), 0))
	require.NoError(t, errors.Join(tables.Close(), logs.Close()))
	for i := range c.hosts {
		if c.hosts[i] == h {
			require.ErrorIs(t, c.tryStart(i), raftgroup.ErrLeaving)
		}
	}
	logs, tables = h.reopen(t)
	require.NoError(t, Destroy(t.Context(), logs, tables, nil, 0))
	require.NoError(t, errors.Join(tables.Close(), logs.Close()))
}
