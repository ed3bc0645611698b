package fabric

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/ids"
	"platform/internal/raftgroup"
	"platform/partition"
	"platform/partition/journal"
	"platform/partition/machine"
)

// fakeCluster is a partition with fake replicas on several nodes, as seen from the node
// "self".
type fakeCluster struct {
	mu        sync.Mutex
	nodes     map[string]*fake
	requested []string
	table     []string
	local     *fake
}

// remote returns the fake replica at address; a node without one is down.
func (w *fakeCluster) remote(address string, id uint32) Replica {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requested = append(w.requested, address)
	if f := w.nodes[address]; f != nil {
		return redirecting{f, address}
	}
	down := newFake(true)
	down.invoke = func(context.Context, *machine.Invoke) (machine.Outcome, error) {
		return machine.Outcome{}, fmt.Errorf("%w: %s is down", ErrUnreachable, address)
	}
	return down
}

// redirecting rejects requests with a hint at the leader, as a Remote does.
type redirecting struct {
	*fake
	address string
}

func (h redirecting) Invoke(ctx context.Context, inv *machine.Invoke) (machine.Outcome, error) {
	o, err := h.fake.Invoke(ctx, inv)
	if errors.Is(err, partition.ErrNotLeader) {
		err = &NotLeaderError{Node: h.address, Leader: h.fake.Leader()}
	}
	return o, err
}

func (w *fakeCluster) takeRequested() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	requested := w.requested
	w.requested = nil
	return requested
}

func (w *fakeCluster) lead(address string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for a, f := range w.nodes {
		f.set(a == address, leaderOf(address, address))
	}
}

func (w *fakeCluster) handle() *Handle {
	return NewDirectory(1, DirectoryConfig{
		Local: func(uint32) Local {
			if w.local == nil {
				return nil
			}
			return w.local
		},
		Remote: w.remote, Replicas: func(uint32) []string { return w.table }, Self: "self",
	}).Partition(0)
}

// newFakeCluster returns a cluster with a follower at each address.
func newFakeCluster(addresses ...string) *fakeCluster {
	w := &fakeCluster{nodes: map[string]*fake{}, table: addresses}
	for _, a := range addresses {
		f := newFake(false)
		f.invoke = func(context.Context, *machine.Invoke) (machine.Outcome, error) {
			return machine.Outcome{Code: machine.OK, ExpiresAt: int64(a[0])}, nil
		}
		w.nodes[a] = f
	}
	return w
}

func TestLeaderHintIsFollowedAndCached(t *testing.T) {
	w := newFakeCluster("a", "b", "c")
	w.lead("c")
	h := w.handle()
	o, err := h.Invoke(t.Context(), invocation(1))
	require.NoError(t, err)
	require.EqualValues(t, 'c', o.ExpiresAt)
	require.Equal(t, []string{"a", "c"}, w.takeRequested())
	_, err = h.Invoke(t.Context(), invocation(1))
	require.NoError(t, err)
	require.Equal(t, []string{"c"}, w.takeRequested(), "the cached leader is tried first")
	w.lead("b")
	_, err = h.Invoke(t.Context(), invocation(1))
	require.NoError(t, err)
	require.Equal(t, []string{"c", "b"}, w.takeRequested())
	require.Equal(t, Stats{Remote: 5}, h.d.Stats())
}

func TestLocalReplicaKnowsLeader(t *testing.T) {
	w := newFakeCluster("a", "b", "c")
	w.lead("b")
	w.local = newFake(false)
	w.local.set(false, leaderOf("b", "b"))
	_, err := w.handle().Invoke(t.Context(), invocation(1))
	require.NoError(t, err)
	require.Equal(t, []string{"b"}, w.takeRequested())
	w.local.invoke = w.nodes["a"].invoke
	w.local.set(true, leaderOf("self", "self"))
	h := w.handle()
	_, err = h.Invoke(t.Context(), invocation(1))
	require.NoError(t, err)
	require.Empty(t, w.takeRequested(), "this node leads")
	require.Equal(t, Stats{Local: 1}, h.d.Stats())
}

func TestWrongHintsAreTolerated(t *testing.T) {
	w := newFakeCluster("a", "b", "c")
	w.nodes["a"].set(false, leaderOf("b", "b"))
	w.nodes["b"].set(false, leaderOf("a", "a"))
	w.nodes["c"].set(true, leaderOf("c", "c"))
	_, err := w.handle().Invoke(t.Context(), invocation(1))
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "c"}, w.takeRequested(), "each node is tried once although the hints are circular")

	w.nodes["a"].set(false, leaderOf("gone", "gone"))
	w.nodes["b"].set(false, leaderOf("self", "self"))
	_, err = w.handle().Invoke(t.Context(), invocation(1))
	require.NoError(t, err)
	require.Equal(t, []string{"a", "gone", "a", "b", "c"}, w.takeRequested(), "hints at a dead node, which the first one should relay to, and at this one")
}

func TestEndlessHintsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFakeCluster("a0")
		n := 0
		h := NewDirectory(1, DirectoryConfig{
			Local: func(uint32) Local { return nil }, Replicas: func(uint32) []string { return w.table },
			Remote: func(address string, _ uint32) Replica {
				n++
				f := newFake(false)
				f.leader = leaderOf("x", fmt.Sprint("x", n))
				return redirecting{f, address}
			},
		}).Partition(0)
		_, err := h.Invoke(t.Context(), invocation(1))
		require.ErrorIs(t, err, partition.ErrNotLeader)
		require.Less(t, n, 200*maxRequestsPerRound)
	})
}

func TestLookupWithoutLeaderTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFakeCluster("a", "b")
		start := time.Now()
		h := w.handle()
		_, err := h.Invoke(t.Context(), invocation(1))
		require.ErrorIs(t, err, partition.ErrNotLeader)
		require.True(t, raftgroup.Definite(err))
		require.Equal(t, FailoverBudget, time.Since(start))
		rounds := len(w.takeRequested()) / 2
		require.Greater(t, rounds, 60)
		require.Less(t, rounds, 220, "no busy loop")
		require.EqualValues(t, 1, h.d.Stats().NoLeader)
		require.EqualValues(t, rounds-1, h.d.Stats().Rounds)

		for name, read := range map[string]func() error{
			"scan":    func() error { _, err := h.Scan(t.Context(), &partition.Scan{}); return err },
			"list":    func() error { _, err := h.List(t.Context(), &partition.List{}); return err },
			"inspect": func() error { _, _, err := h.Inspect(t.Context(), invocationID(1), true); return err },
			"records": func() (err error) {
				for _, err = range h.Records(t.Context(), true) {
				}
				return err
			},
		} {
			start = time.Now()
			require.ErrorIs(t, read(), partition.ErrNotLeader, name)
			require.Equal(t, FailoverBudget, time.Since(start), name)
		}
	})
}

// The lookups of several attempts share the deadline that their context carries.
func TestLookupEndsAtTheDeadlineOfTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, start := newFakeCluster("a", "b").handle(), time.Now()
		ctx := WithLookupDeadline(t.Context(), start.Add(time.Second))
		for range 3 {
			_, err := h.Invoke(ctx, invocation(1))
			require.ErrorIs(t, err, partition.ErrNotLeader)
			require.True(t, TimedOut(err))
			require.Equal(t, time.Second, time.Since(start))
		}
		require.ErrorIs(t, h.Deliver(t.Context(), &machine.Deliver{}), partition.ErrNotLeader)
		require.Equal(t, time.Second+deliverLookupTimeout, time.Since(start))
	})
}

func TestAllNodesDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFakeCluster("a", "b")
		clear(w.nodes)
		_, err := w.handle().Invoke(t.Context(), invocation(1))
		require.ErrorIs(t, err, ErrUnreachable)
		require.True(t, raftgroup.Definite(err))
		w.table = nil
		_, err = w.handle().Invoke(t.Context(), invocation(1))
		require.True(t, raftgroup.Definite(err), "no replicas known")
	})
}

func TestLookupEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFakeCluster("a", "b")
		ctx, cancel := context.WithTimeout(t.Context(), 70*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err := w.handle().Invoke(ctx, invocation(1))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.True(t, raftgroup.Definite(err), "nothing was proposed")
		require.Equal(t, 70*time.Millisecond, time.Since(start))
	})
}

func TestLookupContinuesWhenLeaderIsElected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFakeCluster("a", "b")
		w.local = newFake(false)
		w.local.invoke = w.nodes["a"].invoke
		start := time.Now()
		time.AfterFunc(time.Second, func() { w.local.set(true, leaderOf("self", "self")) })
		_, err := w.handle().Invoke(t.Context(), invocation(1))
		require.NoError(t, err)
		require.Equal(t, time.Second, time.Since(start), "a change of the local replica ends the backoff")

		w.local.set(false, raftgroup.Leader{})
		time.AfterFunc(time.Second, func() { w.lead("b") })
		_, err = w.handle().Invoke(t.Context(), invocation(1))
		require.NoError(t, err)
	})
}

func TestUnknownOutcomeIsNotRetried(t *testing.T) {
	w := newFakeCluster("a", "b")
	w.lead("a")
	attempts := 0
	w.nodes["a"].invoke = func(context.Context, *machine.Invoke) (machine.Outcome, error) {
		attempts++
		w.lead("b")
		return machine.Outcome{}, fmt.Errorf("deposed: %w", raftgroup.ErrUnknownOutcome)
	}
	h := w.handle()
	_, err := h.Invoke(t.Context(), invocation(1))
	require.ErrorIs(t, err, raftgroup.ErrUnknownOutcome)
	require.Equal(t, 1, attempts)
	o, err := h.Invoke(t.Context(), invocation(1))
	require.NoError(t, err)
	require.EqualValues(t, 'b', o.ExpiresAt)
}

func TestOtherErrorsEndTheLookup(t *testing.T) {
	w := newFakeCluster("a", "b")
	w.lead("a")
	for _, want := range []error{partition.ErrNotFound, raftgroup.ErrOverloaded, errors.New("odd")} {
		w.nodes["a"].invoke = func(context.Context, *machine.Invoke) (machine.Outcome, error) { return machine.Outcome{}, want }
		_, err := w.handle().Invoke(t.Context(), invocation(1))
		require.ErrorIs(t, err, want)
		require.Equal(t, []string{"a"}, w.takeRequested())
	}
}

// respondingLeader returns a leader that responds to each kind of request.
func respondingLeader() *fake {
	leader := newFake(true)
	leader.call = func(_ context.Context, inv *machine.Invoke) (partition.Ending, machine.Outcome, error) {
		return partition.Ending{Target: inv.Target}, machine.Outcome{Own: true}, nil
	}
	leader.await = func(context.Context, ids.Invocation) (partition.Ending, error) {
		return partition.Ending{ExpiresAt: 1}, nil
	}
	leader.operate = func(context.Context, machine.Command) (machine.Outcome, error) {
		return machine.Outcome{StartAt: 1}, nil
	}
	leader.deliver = func(context.Context, *machine.Deliver) error { return nil }
	leader.ingest = func(context.Context, *machine.Ingest) (machine.Outcome, error) { return machine.Outcome{Last: 4}, nil }
	leader.find = func(context.Context, ids.Invocation) (*machine.Invocation, error) {
		return sampleRecord().Invocation, nil
	}
	leader.inspect = func(context.Context, ids.Invocation, bool) (partition.Record, []journal.Entry, error) {
		return sampleRecord(), []journal.Entry{{Type: journal.Sleep}}, nil
	}
	leader.state = func(context.Context, machine.Object, int) ([]machine.StateEntry, bool, error) {
		return []machine.StateEntry{{Key: []byte("k")}}, true, nil
	}
	leader.scan = func(context.Context, *partition.Scan) (partition.Page, error) { return partition.Page{Read: 3}, nil }
	leader.records = func(context.Context, bool) iter.Seq2[partition.Record, error] {
		return func(yield func(partition.Record, error) bool) { yield(sampleRecord(), nil) }
	}
	return leader
}

// TestEveryRequestIsRetriedOnTheLeader sends each kind of request once while the replica on
// this node is deposed and another one leads.
func TestEveryRequestIsRetriedOnTheLeader(t *testing.T) {
	leader := respondingLeader()
	h := NewDirectory(1, DirectoryConfig{
		Local: func(uint32) Local { return deposed{newFake(false)} }, Replicas: func(uint32) []string { return []string{"b"} },
		Remote: func(string, uint32) Replica { return leader },
	}).Partition(0)
	requireResponses(t, h)
	seen := 0
	for rec, err := range h.Records(t.Context(), true) {
		require.NoError(t, err)
		require.Equal(t, invocationID(1), rec.ID)
		seen++
	}
	require.Equal(t, 1, seen)
}

// requireResponses sends each kind of request but Records to a respondingLeader.
func requireResponses(t *testing.T, h *Handle) {
	t.Helper()
	ctx := t.Context()

	e, o, err := h.Call(ctx, invocation(1))
	require.NoError(t, err)
	require.Equal(t, "S", e.Target.Service)
	require.True(t, o.Own)
	e, err = h.Await(ctx, invocationID(1))
	require.NoError(t, err)
	require.EqualValues(t, 1, e.ExpiresAt)
	o, err = h.Operate(ctx, &machine.Kill{Target: invocationID(1)})
	require.NoError(t, err)
	require.EqualValues(t, 1, o.StartAt)
	require.NoError(t, h.Deliver(ctx, &machine.Deliver{}))
	o, err = h.Ingest(ctx, &machine.Ingest{})
	require.NoError(t, err)
	require.EqualValues(t, 4, o.Last)
	inv, err := h.Find(ctx, invocationID(1))
	require.NoError(t, err)
	require.Equal(t, invocationID(1), inv.ID)
	rec, entries, err := h.Inspect(ctx, invocationID(1), true)
	require.NoError(t, err)
	require.Equal(t, invocationID(1), rec.ID)
	require.Len(t, entries, 1)
	state, complete, err := h.State(ctx, machine.Object{}, 10)
	require.NoError(t, err)
	require.True(t, complete)
	require.Len(t, state, 1)
	page, err := h.Scan(ctx, &partition.Scan{})
	require.NoError(t, err)
	require.Equal(t, 3, page.Read)
}

// deposed reports that it leads, but rejects requests.
type deposed struct{ *fake }

func (deposed) Leading() bool { return true }

func TestRecordsAreNotReadTwice(t *testing.T) {
	w := newFakeCluster()
	broken := newFake(true)
	broken.records = func(context.Context, bool) iter.Seq2[partition.Record, error] {
		return func(yield func(partition.Record, error) bool) {
			if yield(sampleRecord(), nil) {
				yield(partition.Record{}, ErrUnreachable)
			}
		}
	}
	w.nodes["a"], w.table = broken, []string{"a", "a2"}
	var errs []error
	seen := 0
	for _, err := range w.handle().Records(t.Context(), true) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		seen++
	}
	require.Equal(t, 1, seen)
	require.Len(t, errs, 1)
	require.ErrorIs(t, errs[0], ErrUnreachable)
}

// The object of a read to which a leader did not respond may have expired when
// the next leader responds.
func TestNotFoundAfterAnInterruptedReadIsMarked(t *testing.T) {
	for _, sent := range []bool{true, false} {
		first, second := newFake(true), newFake(true)
		started := make(chan struct{})
		first.await = func(ctx context.Context, _ ids.Invocation) (partition.Ending, error) {
			close(started)
			<-ctx.Done()
			return partition.Ending{}, ctx.Err()
		}
		second.await = func(context.Context, ids.Invocation) (partition.Ending, error) {
			return partition.Ending{}, partition.ErrNotFound
		}
		n1, n2 := startNode(t, "c", localReplica(first)), startNode(t, "c", localReplica(second))
		c := newClient(t, "c")
		h := NewDirectory(1, DirectoryConfig{
			Local:        func(uint32) Local { return nil },
			Remote:       func(a string, id uint32) Replica { return c.Remote(a, id) },
			Replicas:     func(uint32) []string { return []string{n1.address, n2.address} },
			Unresponsive: func(string) bool { return false },
		}).Partition(0)
		if !sent {
			n1.stop()
		}
		answered := make(chan error, 1)
		go func() {
			_, err := h.Await(t.Context(), invocationID(1))
			answered <- err
		}()
		if sent {
			<-started
			n1.stop()
		}
		err := <-answered
		require.ErrorIs(t, err, partition.ErrNotFound)
		require.Equal(t, sent, WasInterrupted(err))
	}
}

// rejecting counts the invocations that a replica rejects.
type rejecting struct {
	*fake
	rejected atomic.Int32
}

func (r *rejecting) Invoke(ctx context.Context, inv *machine.Invoke) (machine.Outcome, error) {
	o, err := r.fake.Invoke(ctx, inv)
	if err != nil {
		r.rejected.Add(1)
	}
	return o, err
}

// TestALargeRequestIsSentToALeaderOnly sends invocations to a partition whose replicas reject several rounds of attempts.
func TestALargeRequestIsSentToALeaderOnly(t *testing.T) {
	for name, input := range map[string][]byte{"small": {1}, "large": make([]byte, pieceBytes)} {
		t.Run(name, func(t *testing.T) {
			var replicas [2]*rejecting
			var addresses []string
			for i := range replicas {
				replicas[i] = &rejecting{fake: invokeFake()}
				replicas[i].set(false, raftgroup.Leader{})
				replicas[i].find = func(context.Context, ids.Invocation) (*machine.Invocation, error) { return nil, partition.ErrNotFound }
				addresses = append(addresses, startNode(t, "c", localReplica(replicas[i])).address)
			}
			c := newClient(t, "c")
			c.timeouts = timeouts{connect: time.Hour, ping: time.Hour, unresponsive: time.Hour, accepted: time.Hour}
			h := directory(c, nil, addresses...)
			h.d.cfg.LookupTimeout = time.Hour
			done := make(chan error, 1)
			go func() {
				inv := invocation(1)
				inv.Input = input
				_, err := h.Invoke(t.Context(), inv)
				done <- err
			}()
			require.Eventually(t, func() bool { return h.d.Stats().Rounds >= 3 }, time.Minute, time.Millisecond)
			replicas[1].set(true, leaderOf(addresses[1], addresses[1]))
			require.NoError(t, <-done)
			rejected := replicas[0].rejected.Load() + replicas[1].rejected.Load()
			if name == "small" {
				require.Greater(t, rejected, int32(5))
				require.Equal(t, 1, replicas[1].acceptedRequests())
				return
			}
			require.EqualValues(t, 1, rejected, "the first attempt")
			require.Equal(t, 2, replicas[1].acceptedRequests(), "a read and the request")
		})
	}
}
