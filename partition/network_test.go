package partition

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"platform/internal/raftgroup/logstore"
	"platform/partition/machine"
)

// The leader is cut off while calls are pending on it: they fail with an unknown outcome,
// and the others continue.
func TestAnIsolatedLeaderIsReplaced(t *testing.T) {
	c, l := loaded(t, nil)
	for range 2 {
		old := c.leader()
		l.gap()
		c.network.isolate(c.hosts[old].name, "a", "b", "c")
		next := c.leader(old)
		l.progress(50)
		t.Logf("no responses for %v", l.gap())
		p := c.hosts[old].p
		require.Eventually(t, func() bool { return !p.Leading() }, time.Minute, time.Millisecond, "its lease has expired")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		_, _, err := p.Call(ctx, request("Steps", "do", `"old"`))
		cancel()
		require.ErrorIs(t, err, ErrNotLeader)
		require.Greater(t, c.hosts[next].p.Status().Term, p.Status().Term, "an isolated replica does not increase its term")
		c.network.repair()
		l.progress(50)
		require.Eventually(t, func() bool { return c.hosts[old].p.Leader() == c.hosts[c.leader()].p.Leader() }, time.Minute, time.Millisecond)
	}
	l.finish(t)
	c.requireSame(0, 1, 2)
}

// The reads go to a leader that does not know yet that there may be another one.
func TestADeposedLeaderDoesNotServeStaleReads(t *testing.T) {
	inv := request("Steps", "do", `"x"`)
	for name, read := range map[string]func(context.Context, *Partition) error{
		"output": func(ctx context.Context, p *Partition) error {
			_, err := p.Find(ctx, inv.ID)
			return err
		},
		"attach": func(ctx context.Context, p *Partition) error {
			_, err := p.Await(ctx, inv.ID)
			return err
		},
		"state": func(ctx context.Context, p *Partition) error {
			_, _, err := p.State(ctx, machine.Object{Service: "Steps", Key: "k"}, 1<<20)
			return err
		},
		"journal": func(ctx context.Context, p *Partition) error {
			_, _, err := p.Inspect(ctx, inv.ID, true)
			return err
		},
		"strong scan": func(ctx context.Context, p *Partition) error {
			_, err := p.Scan(ctx, &Scan{Table: Invocations, Keys: AllKeys, Strong: true})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorker()
			c := newReplicaSet(t, nil, w.definitions()...)
			_, err := c.call(t.Context(), inv)
			require.NoError(t, err)
			old := c.leader()
			p := c.hosts[old].p
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			require.NoError(t, read(ctx, p))
			c.network.isolate(c.hosts[old].name, "a", "b", "c")
			require.ErrorIs(t, read(ctx, p), ErrNotLeader)
			require.NoError(t, ctx.Err(), "before the timeout")
		})
	}
}

// hangingLog accepts no entries while hung is locked.
type hangingLog struct {
	logstore.Storage
	hung sync.RWMutex
}

func (s *hangingLog) StoreLogs(logs []*raft.Log) error {
	s.hung.RLock()
	defer s.hung.RUnlock()
	return s.Storage.StoreLogs(logs)
}

// The leader lists while its Raft instance cannot notice a new leader, because it waits for
// the disk.
func TestListingsEndWithTheLease(t *testing.T) {
	w := newWorker()
	disks := map[string]*hangingLog{}
	c := newReplicaSet(t, func(c *replicaSet) {
		c.tune = func(cfg *Config) {
			disks[cfg.Node] = &hangingLog{Storage: cfg.Group.Storage}
			cfg.Group.Storage = disks[cfg.Node]
		}
	}, w.definitions()...)
	old := c.leader()
	p := c.hosts[old].p
	list := func() error {
		_, err := p.Scan(t.Context(), &Scan{Table: Invocations, Keys: AllKeys})
		return errors.Join(err, errors.Join(slices.Collect(listErrors(p))...))
	}
	require.NoError(t, list())
	disk := disks[c.hosts[old].name]
	disk.hung.Lock()
	ctx, cancel := context.WithCancel(t.Context())
	var hanging sync.WaitGroup
	hanging.Go(func() { _, _ = p.Invoke(ctx, request("Steps", "do", `"hangs"`)) })
	c.network.isolate(c.hosts[old].name, "a", "b", "c")
	require.Eventually(t, func() bool { return errors.Is(list(), ErrNotLeader) }, time.Minute, time.Millisecond)
	require.True(t, p.Leading(), "its Raft instance waits for the disk")
	disk.hung.Unlock()
	cancel()
	hanging.Wait()
}

// listErrors yields the errors of a listing of records.
func listErrors(p *Partition) iter.Seq[error] {
	return func(yield func(error) bool) {
		for _, err := range p.Records(context.Background(), true) {
			if err != nil && !yield(err) {
				return
			}
		}
	}
}

// Messages are lost in one direction only, from or to the leader or a follower.
func TestOneWayLoss(t *testing.T) {
	tests := map[string]func(c *replicaSet, leader, follower, other string){
		"leader cannot send":                          func(c *replicaSet, l, f, o string) { c.network.cut(l, f); c.network.cut(l, o) },
		"leader cannot receive":                       func(c *replicaSet, l, f, o string) { c.network.cut(f, l); c.network.cut(o, l) },
		"follower cannot send":                        func(c *replicaSet, l, f, o string) { c.network.cut(f, l); c.network.cut(f, o) },
		"follower cannot receive":                     func(c *replicaSet, l, f, o string) { c.network.cut(l, f); c.network.cut(o, f) },
		"one follower cannot receive from the leader": func(c *replicaSet, l, f, _ string) { c.network.cut(l, f) },
		"leader and one follower are disconnected":    func(c *replicaSet, l, f, _ string) { c.network.isolate(l, f) },
	}
	for name, cut := range tests {
		t.Run(name, func(t *testing.T) {
			c, l := loaded(t, nil)
			leader := c.leader()
			follower, other := c.hosts[(leader+1)%3].name, c.hosts[(leader+2)%3].name
			l.gap()
			cut(c, c.hosts[leader].name, follower, other)
			l.progress(200)
			gap := l.gap()
			t.Logf("no responses for %v", gap)
			require.Less(t, gap, time.Minute, "took longer than elections")
			c.network.repair()
			l.progress(50)
			l.finish(t)
			c.requireSame(0, 1, 2)
		})
	}
}

func TestAFlappingFollowerDoesNotDisrupt(t *testing.T) {
	c, l := loaded(t, nil)
	leader := c.leader()
	flapping := c.hosts[(leader+1)%3].name
	for range 10 {
		c.network.isolate(flapping, "a", "b", "c")
		l.progress(30)
		c.network.repair()
		l.progress(10)
	}
	t.Logf("no responses for at most %v", l.gap())
	require.Less(t, l.longest.Load(), int64(time.Minute))
	l.finish(t)
	c.requireSame(0, 1, 2)
}
