package partition

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	restate "github.com/restatedev/sdk-go"
	"github.com/restatedev/sdk-go/server"
	"github.com/stretchr/testify/require"

	"platform/internal/feature"
	"platform/internal/ids"
	"platform/internal/raftgroup"
	"platform/internal/raftgroup/logstore"
	"platform/internal/target"
	"platform/invoker"
	"platform/invoker/discovery"
	"platform/metadata"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/partition/machine/machinetest"
	"platform/partition/store"
	"platform/test/harness/ports"
)

// testNode has a few partitions, on a real log and real tables, with a service
// that uses the Go SDK.
type testNode struct {
	partitions []*Partition
	opened     chan struct{}
	schemas    *metadata.Schemas
}

// Schemas implements invoker.Registry.
func (c *testNode) Schemas() *metadata.Schemas { return c.schemas }

func (c *testNode) deliver(ctx context.Context, to uint32, d *machine.Deliver) error {
	<-c.opened
	return c.partitions[to].Deliver(ctx, d)
}

func (c *testNode) owner(id ids.Invocation) *Partition {
	return c.partitions[machine.PartitionOf(id.PartitionKey(), uint32(len(c.partitions)))]
}

func newTestNode(t *testing.T, count uint32, services ...restate.ServiceDefinition) *testNode {
	t.Helper()
	return newTestNodeWith(t, count, func(*Config) {}, services...)
}

// newTestNodeWith is newCluster with a modified configuration.
func newTestNodeWith(t *testing.T, count uint32, tune func(*Config), services ...restate.ServiceDefinition) *testNode {
	t.Helper()
	dir := t.TempDir()
	log := slog.New(slog.DiscardHandler)
	c := &testNode{partitions: make([]*Partition, count), opened: make(chan struct{})}
	logs, err := logstore.Open(filepath.Join(dir, "log"), logstore.Options{Logger: log})
	require.NoError(t, err)
	tables, err := store.Open(filepath.Join(dir, "state"), store.Options{Logger: log})
	require.NoError(t, err)
	transport, err := raftgroup.NewTransport(raftgroup.TransportConfig{ClusterID: "test", NodeID: "n1", Address: "127.0.0.1:1", Logger: log})
	require.NoError(t, err)
	iv := invoker.New(invoker.DefaultConfig(), c, log)
	c.discover(t, iv, services)
	for i := range count {
		own, err := tables.Partition(i)
		require.NoError(t, err)
		storage, err := logs.Storage(GroupID(i))
		require.NoError(t, err)
		cfg := Config{
			ID: i, Count: count, Node: "n1", Tables: own, Flush: tables.Flush, Invoker: iv, Deliver: c.deliver, Log: log,
			Group: raftgroup.Config{
				Storage: storage, Transport: transport, Profile: raftgroup.Test(), LocalID: "n1",
				Voters: []raft.Server{{ID: "n1", Address: "127.0.0.1:1"}},
			},
		}
		tune(&cfg)
		c.partitions[i], err = Open(cfg)
		require.NoError(t, err)
	}
	close(c.opened)
	t.Cleanup(func() {
		for _, p := range c.partitions {
			require.NoError(t, p.Close(context.Background()))
		}
		iv.Close()
		require.NoError(t, transport.Close())
		require.NoError(t, tables.Close())
		require.NoError(t, logs.Close())
	})
	for _, p := range c.partitions {
		require.NoError(t, p.WaitLeading(t.Context()))
	}
	return c
}

// discover serves the services and registers them without a metadata group.
func (c *testNode) discover(t *testing.T, iv *invoker.Invoker, services []restate.ServiceDefinition) {
	t.Helper()
	addr := ports.Address(t)
	endpoint := server.NewRestate().WithLogger(slog.DiscardHandler, false)
	for _, s := range services {
		endpoint = endpoint.Bind(s)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() { _ = endpoint.Start(ctx, addr) })
	t.Cleanup(func() { cancel(); serving.Wait() })

	var d *metadata.Deployment
	require.Eventually(t, func() bool {
		var err error
		d, err = discovery.New(iv.Client(), discovery.DefaultConfig()).Discover(t.Context(), discovery.Request{URI: "http://" + addr})
		return err == nil
	}, time.Minute, 10*time.Millisecond)
	d.ID = "dp_1test"
	c.schemas = &metadata.Schemas{Deployments: map[ids.Deployment]*metadata.Deployment{d.ID: d}, Services: map[string]*metadata.Service{}}
	for _, s := range d.Services {
		s.Deployment = d.ID
		c.schemas.Services[s.Name] = s
	}
}

// request returns a call of a service's handler with JSON input.
func request(service, handler, json string) *machine.Invoke {
	return &machine.Invoke{
		ID:        ids.NewInvocation(rand.Uint64(), [16]byte{0: 1, 8: byte(rand.Uint32()), 9: byte(rand.Uint32()), 10: byte(rand.Uint32())}),
		Target:    machine.Target{Service: service, Handler: handler},
		Input:     journal.NewInput(nil, []byte(json)),
		Retention: machine.Retention{Completion: 60_000, Journal: 60_000},
	}
}

func TestCallsCrossPartitions(t *testing.T) {
	leaf := restate.NewService("Leaf").Handler("double", restate.NewServiceHandler(
		func(_ restate.Context, n int) (int, error) { return 2 * n, nil }))
	root := restate.NewService("Root").Handler("sum", restate.NewServiceHandler(
		func(ctx restate.Context, n int) (int, error) {
			sum := 0
			for i := range n {
				v, err := restate.Service[int](ctx, "Leaf", "double").Request(i)
				if err != nil {
					return 0, err
				}
				sum += v
			}
			return sum, nil
		}))
	c := newTestNode(t, 3, leaf, root)
	inv := request("Root", "sum", "20")
	ended, _, err := c.owner(inv.ID).Call(t.Context(), inv)
	require.NoError(t, err)
	require.Nil(t, ended.Result.Failure)
	require.Equal(t, "380", string(ended.Result.Value))
}

// A recovery from a replica that lacks the newest entries loses messages that their sender
// has deleted. Later messages must still arrive.
func TestMessagesArriveAfterTheReceiverHasLostEarlierOnes(t *testing.T) {
	var delivered atomic.Bool
	arrived := make(chan string, 2)
	leaf := restate.NewService("Leaf").Handler("note", restate.NewServiceHandler(
		func(_ restate.Context, s string) (restate.Void, error) { arrived <- s; return restate.Void{}, nil }))
	c := newTestNodeWith(t, 2, func(cfg *Config) {
		cfg.Level = func() feature.Level { return feature.Level4 }
		deliver := cfg.Deliver
		cfg.Deliver = func(ctx context.Context, to uint32, d *machine.Deliver) error {
			if to == 1 && delivered.CompareAndSwap(false, true) {
				return nil // received, and lost later
			}
			return deliver(ctx, to, d)
		}
	}, leaf)
	sender := c.partitions[0].role.leadership()
	c.sendNote(t, `"lost"`)
	require.Eventually(t, func() bool {
		_, left, _, err := sender.readOutbox(1, 0, 1, 0)
		return err == nil && len(left) == 0
	}, time.Minute, time.Millisecond)
	require.True(t, delivered.Load())
	c.sendNote(t, `"kept"`)
	select {
	case text := <-arrived:
		require.Equal(t, "kept", text)
	case <-time.After(time.Minute):
		t.Fatal("messages are refused because of those that the receiver has lost")
	}
}

// sendNote sends a note from partition 0 to a handler in partition 1.
func (c *testNode) sendNote(t *testing.T, text string) {
	t.Helper()
	caller := request("Leaf", "note", `""`)
	caller.ID = ids.NewInvocation(0, [16]byte(caller.ID[8:]))
	caller.Target.Service = "Unknown" // its attempts fail; the test acts as its handler
	_, err := c.partitions[0].Invoke(t.Context(), caller)
	require.NoError(t, err)
	inv, err := c.partitions[0].Find(t.Context(), caller.ID)
	require.NoError(t, err)
	callee := ids.NewInvocation(1<<63, [16]byte(caller.ID[8:]))
	step := machinetest.Send(1, machine.Target{Service: "Leaf", Handler: "note"}, []byte(text), 0, machine.Callee{ID: callee})
	o, err := c.partitions[0].role.leadership().propose(t.Context(), &machine.Progress{ID: caller.ID, Attempt: inv.Attempt, Steps: []machine.Step{step}})
	require.NoError(t, err)
	require.Equal(t, machine.OK, o.Code)
}

// TestMessagesOfARecoveredSenderAreNotTakenForDuplicates recovers a sender that has lost
// messages, which the receiver has. Its next messages must have other numbers.
func TestMessagesOfARecoveredSenderAreNotTakenForDuplicates(t *testing.T) {
	arrived := make(chan string, 2)
	leaf := restate.NewService("Leaf").Handler("note", restate.NewServiceHandler(
		func(_ restate.Context, s string) (restate.Void, error) { arrived <- s; return restate.Void{}, nil }))
	c := newTestNodeWith(t, 2, func(cfg *Config) {
		cfg.Level = func() feature.Level { return feature.Level4 }
		if cfg.ID == 0 {
			require.NoError(t, cfg.Group.Storage.Set([]byte("Recovered"), []byte{1})) // as a recovery does
		}
	}, leaf)
	lost := &machine.Deliver{From: 0, FirstSeq: 1}
	for range 3 {
		lost.Messages = append(lost.Messages, &machine.Kill{Target: ids.NewInvocation(1<<63, [16]byte{1})})
	}
	require.NoError(t, c.partitions[1].Deliver(t.Context(), lost))
	for range 2 {
		c.sendNote(t, `"new"`)
		select {
		case text := <-arrived:
			require.Equal(t, "new", text)
		case <-time.After(time.Minute):
			t.Fatal("a message was taken for one that the sender had lost")
		}
	}
	require.False(t, c.partitions[0].group.Recovered(), "numbers are skipped once")
}

// TestPendingMessagesOfARecoveredSenderArrive recovers a sender whose outbox is not empty: its
// next messages do not follow the numbers of those.
func TestPendingMessagesOfARecoveredSenderArrive(t *testing.T) {
	var closed atomic.Bool
	closed.Store(true)
	arrived := make(chan string, 2)
	leaf := restate.NewService("Leaf").Handler("note", restate.NewServiceHandler(
		func(_ restate.Context, s string) (restate.Void, error) { arrived <- s; return restate.Void{}, nil }))
	var storage logstore.Storage
	c := newTestNodeWith(t, 2, func(cfg *Config) {
		cfg.Level = func() feature.Level { return feature.Level4 }
		if cfg.ID == 0 {
			storage = cfg.Group.Storage
		}
		deliver := cfg.Deliver
		cfg.Deliver = func(ctx context.Context, to uint32, d *machine.Deliver) error {
			if closed.Load() {
				return ErrNotLeader
			}
			return deliver(ctx, to, d)
		}
	}, leaf)
	c.sendNote(t, `"before"`)
	require.NoError(t, storage.Set([]byte("Recovered"), []byte{1})) // as a recovery does
	p := c.partitions[0]
	leadAgain := func() {
		before := p.role.latest.Load()
		before.abandon(ErrNotLeader)
		require.Eventually(t, func() bool { return p.role.latest.Load() != before && p.Leading() }, time.Minute, 10*time.Millisecond)
	}
	leadAgain()
	require.Eventually(t, func() bool { return !p.group.Recovered() }, time.Minute, 10*time.Millisecond)
	c.sendNote(t, `"after"`)
	leadAgain() // the outbox is read from the table
	closed.Store(false)
	var texts []string
	for range 2 {
		select {
		case text := <-arrived:
			texts = append(texts, text)
		case <-time.After(time.Minute):
			t.Fatalf("only %q arrived", texts)
		}
	}
	require.ElementsMatch(t, []string{"before", "after"}, texts) // the handlers run concurrently
}

// TestNumbersAreSkippedOnceTheLevelAllowsIt recovers a sender while older servers are part of
// the cluster. The leader must not wait for its next leadership, which another replica may
// get.
func TestNumbersAreSkippedOnceTheLevelAllowsIt(t *testing.T) {
	var level atomic.Uint32
	level.Store(uint32(feature.Level3))
	c := newTestNodeWith(t, 2, func(cfg *Config) {
		cfg.Level = func() feature.Level { return feature.Level(level.Load()) }
		if cfg.ID == 0 {
			require.NoError(t, cfg.Group.Storage.Set([]byte("Recovered"), []byte{1})) // as a recovery does
		}
	})
	p := c.partitions[0]
	require.NoError(t, p.WaitLeading(t.Context()))
	require.True(t, p.group.Recovered())
	level.Store(uint32(feature.Level4))
	require.Eventually(t, func() bool { return !p.group.Recovered() }, time.Minute, 10*time.Millisecond)
	require.NoError(t, p.WaitLeading(t.Context()))
	view := p.tables.View()
	defer view.Close()
	last, err := view.LastSent(1)
	require.NoError(t, err)
	require.GreaterOrEqual(t, last, uint64(1)<<32)
}

func TestAnAbandonedLeadershipIsResumedWithItsInvocations(t *testing.T) {
	release := make(chan struct{})
	started := make(chan struct{}, 100)
	runs := make(chan int, 100)
	gated := restate.NewService("Gated").Handler("pass", restate.NewServiceHandler(
		func(ctx restate.Context, n int) (int, error) {
			v, err := restate.Run(ctx, func(restate.RunContext) (int, error) { runs <- n; return n + 1, nil })
			if err != nil {
				return 0, err
			}
			started <- struct{}{}
			<-release
			return v, nil
		}))
	c := newTestNode(t, 1, gated)
	p := c.partitions[0]
	const calls = 8
	sent := make([]*machine.Invoke, calls)
	for i := range sent {
		sent[i] = request("Gated", "pass", fmt.Sprint(i))
		o, err := p.Invoke(t.Context(), sent[i])
		require.NoError(t, err)
		require.Equal(t, machine.OK, o.Code)
	}
	for range calls {
		<-started
	}
	require.Len(t, runs, calls)

	before, err := p.leader()
	require.NoError(t, err)
	waiting := make(chan error, 1)
	go func() {
		_, err := p.Await(t.Context(), sent[0].ID)
		waiting <- err
	}()
	require.Eventually(t, func() bool {
		before.waiters.mu.Lock()
		defer before.waiters.mu.Unlock()
		return len(before.waiters.byID) == 1
	}, time.Minute, time.Millisecond)
	before.abandon(errOutdated)
	require.ErrorIs(t, <-waiting, raftgroup.ErrUnknownOutcome, "callers that wait on a deposed leader receive an error")
	require.Eventually(t, func() bool {
		l, err := p.leader()
		return err == nil && l != before && l.epoch > before.epoch
	}, time.Minute, 5*time.Millisecond)
	close(release)

	require.NoError(t, p.WaitLeading(t.Context()))
	for i, inv := range sent {
		ended, err := p.Await(t.Context(), inv.ID)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(i+1), string(ended.Result.Value))
	}
	require.Len(t, runs, calls, "no step ran twice")
}

func TestTheSameIDRunsOnce(t *testing.T) {
	bodies := make(chan struct{}, 100)
	once := restate.NewService("Once").Handler("run", restate.NewServiceHandler(
		func(_ restate.Context, s string) (string, error) { bodies <- struct{}{}; return s + "!", nil }))
	c := newTestNode(t, 1, once)
	inv := request("Once", "run", `"a"`)
	inv.Request = 7
	first, o, err := c.partitions[0].Call(t.Context(), inv)
	require.NoError(t, err)
	require.Equal(t, machine.OK, o.Code)
	again, o, err := c.partitions[0].Call(t.Context(), inv)
	require.NoError(t, err)
	require.Equal(t, machine.Existing, o.Code)
	require.True(t, o.Own)
	require.Equal(t, first.Result, again.Result)
	require.Len(t, bodies, 1)
	_, err = c.partitions[0].Await(t.Context(), request("Once", "run", `""`).ID)
	require.ErrorIs(t, err, ErrNotFound)
}

func TestASecondCallDoesNotJoinAWorkflowRun(t *testing.T) {
	began, release := make(chan struct{}), make(chan struct{})
	flow := restate.NewWorkflow("Flow").Handler("run", restate.NewWorkflowHandler(
		func(_ restate.WorkflowContext, _ string) (string, error) { close(began); <-release; return "done", nil }))
	c := newTestNode(t, 1, flow)
	inv := request("Flow", "run", `"a"`)
	inv.Target.Key, inv.Target.Type, inv.Request = "k", target.WorkflowRun, 7
	same, other := *inv, *inv
	other.Request = 8
	ends := make(chan Ending, 2)
	call := func(inv *machine.Invoke) {
		ended, _, err := c.partitions[0].Call(t.Context(), inv)
		require.NoError(t, err)
		ends <- ended
	}
	var callers sync.WaitGroup
	callers.Go(func() { call(inv) })
	<-began
	callers.Go(func() { call(&same) }) // as after a change of leader
	_, o, err := c.partitions[0].Call(t.Context(), &other)
	require.NoError(t, err)
	require.Equal(t, machine.Existing, o.Code)
	require.False(t, o.Own)
	require.Empty(t, ends, "it is still running")
	close(release)
	callers.Wait()
	for range 2 {
		require.Equal(t, `"done"`, string((<-ends).Result.Value))
	}
}

// The run ends after the second call was received and before that is applied.
func TestASecondCallDoesNotGetTheResultOfAWorkflowRunThatEndsMeanwhile(t *testing.T) {
	flow := restate.NewWorkflow("Flow").Handler("run", restate.NewWorkflowHandler(
		func(_ restate.WorkflowContext, s string) (string, error) { return s, nil }))
	c := newTestNode(t, 1, flow)
	l := c.partitions[0].role.leadership()
	inv := request("Flow", "run", `"first"`)
	inv.Target.Key, inv.Target.Type, inv.Request = "k", target.WorkflowRun, 7
	other := *inv
	other.Request = 8
	second := l.newCall(&other)
	first, _, err := c.partitions[0].Call(t.Context(), inv)
	require.NoError(t, err)
	require.Equal(t, `"first"`, string(first.Result.Value))
	require.NoError(t, l.submit(&other, second.applied))
	e := <-second.waiter.ended
	require.NoError(t, e.err)
	require.Empty(t, e.result.Value, "the result belongs to another request")
	require.Equal(t, machine.Existing, second.result().Code)
	require.False(t, second.result().Own)
	requireNoWaiters(t, c.partitions[0])
}

// With a short retention, the later request creates another invocation with the same ID.
func TestACallGetsTheResultOfTheInvocationThatItCreates(t *testing.T) {
	var runs atomic.Int64
	count := restate.NewService("Count").Handler("next", restate.NewServiceHandler(
		func(_ restate.Context, _ string) (int64, error) { return runs.Add(1), nil }))
	c := newTestNodeWith(t, 1, func(cfg *Config) { cfg.Level = func() feature.Level { return feature.Level2 } }, count)
	l := c.partitions[0].role.leadership()
	inv := request("Count", "next", `""`)
	inv.IdempotencyKey, inv.Request, inv.Retention = new("key"), 7, machine.Retention{}
	other := *inv
	other.Request = 8
	second := l.newCall(&other)
	first, _, err := c.partitions[0].Call(t.Context(), inv)
	require.NoError(t, err)
	require.Equal(t, "1", string(first.Result.Value))
	require.NoError(t, l.submit(&other, second.applied))
	e := <-second.waiter.ended
	require.NoError(t, e.err)
	require.Equal(t, "2", string(e.result.Value))
	require.Equal(t, machine.OK, second.result().Code)
	requireNoWaiters(t, c.partitions[0])
}

// The result of an earlier request counts if that had not ended when the call was applied.
func TestACallJoinsAnInvocationThatEndsBeforeItKnows(t *testing.T) {
	for name, own := range map[string]bool{"its own": true, "of another request": false} {
		t.Run(name, func(t *testing.T) {
			w := newWaiters()
			inv := request("S", "h", "1")
			inv.Request = 8
			c := (&leadership{waiters: w}).newCall(inv)
			e := ending{request: 7, result: journal.Result{Value: []byte("1")}}
			if own {
				e.request = 8
			}
			w.finish(inv.ID, e)
			c.applied(machine.Outcome{Code: machine.Existing, Own: own, Status: machine.Invoked}, nil)
			require.Len(t, c.waiter.ended, 1)
			require.Equal(t, e, <-c.waiter.ended)
			require.Empty(t, w.byID)
		})
	}
}

func requireNoWaiters(t *testing.T, p *Partition) {
	t.Helper()
	w := p.role.leadership().waiters
	w.mu.Lock()
	defer w.mu.Unlock()
	require.Empty(t, w.byID)
	require.Empty(t, w.byLock)
}

func TestCallsThatWaitForAnObjectAreDeferred(t *testing.T) {
	w := newWaiters()
	l := &leadership{waiters: w}
	exclusive := func() *machine.Invoke {
		inv := request("S", "h", "1")
		inv.Target.Key, inv.Target.Type = "k", target.ObjectExclusive
		return inv
	}
	var calls []*call
	for i := range 3 {
		inv := exclusive()
		c := l.newCall(inv)
		require.Equal(t, i, c.others)
		require.Equal(t, submission{deferred: i >= 2}, c.submission(inv))
		calls = append(calls, c)
	}
	kept := exclusive()
	kept.IdempotencyKey = new("key")
	require.Zero(t, l.newCall(kept).submission(kept), "its result may be kept")
	require.Zero(t, l.newCall(kept).others, "it has one end only")
	w.finish(kept.ID, ending{})
	shared, delayed, other, service := exclusive(), exclusive(), exclusive(), request("S", "h", "1")
	shared.Target.Type, delayed.Delay, other.Target.Key = target.ObjectShared, 1000, "l"
	for _, inv := range []*machine.Invoke{shared, delayed, other, service} {
		require.Zero(t, l.newCall(inv).others)
	}
	w.finish(calls[0].id, ending{})
	calls[1].end(ending{err: ErrNotLeader})
	calls[1].end(ending{err: ErrNotLeader})
	require.Equal(t, 1, l.newCall(exclusive()).others)
	w.close(ErrNotLeader)
	require.Zero(t, l.newCall(exclusive()).others)
}

func TestCallsOfCompletedInvocationsDoNotLeaveWaiters(t *testing.T) {
	echo := restate.NewService("Echo").Handler("say", restate.NewServiceHandler(
		func(_ restate.Context, n int) (int, error) { return n, nil }))
	c := newTestNode(t, 1, echo)
	p := c.partitions[0]
	first := request("Echo", "say", "7")
	for range 3 {
		again := *first
		ended, _, err := p.Call(t.Context(), &again)
		require.NoError(t, err)
		require.Equal(t, "7", string(ended.Result.Value))
	}
	requireNoWaiters(t, p)
}
