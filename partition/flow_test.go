package partition

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	restate "github.com/restatedev/sdk-go"
	"github.com/stretchr/testify/require"

	"platform/flowcontrol"
	"platform/internal/feature"
	"platform/internal/ids"
	"platform/partition/machine"
)

// gated is a service whose handlers wait, and counts how many run concurrently.
type gated struct {
	release        chan struct{}
	inside, atOnce atomic.Int64
}

func (g *gated) service() restate.ServiceDefinition {
	return restate.NewService("Gated").Handler("pass", restate.NewServiceHandler(
		func(_ restate.Context, n int) (int, error) {
			now := g.inside.Add(1)
			for most := g.atOnce.Load(); now > most && !g.atOnce.CompareAndSwap(most, now); most = g.atOnce.Load() {
			}
			<-g.release
			g.inside.Add(-1)
			return n, nil
		}))
}

func scoped(scope, limitKey string) *machine.Invoke {
	inv := request("Gated", "pass", "1")
	inv.ID = ids.NewInvocation(ids.Route(scope, ""), [16]byte(inv.ID[8:]))
	inv.Target.Scope, inv.LimitKey = scope, limitKey
	return inv
}

func setRules(t *testing.T, p *Partition, version uint32, rules ...flowcontrol.Rule) {
	t.Helper()
	l, err := p.leader()
	require.NoError(t, err)
	_, err = l.propose(t.Context(), &machine.SetRules{Book: &flowcontrol.Book{Version: version, Rules: rules}})
	require.NoError(t, err)
}

// queuesOf returns the vqueues of a partition.
func queuesOf(t *testing.T, p *Partition) (found []Queue) {
	t.Helper()
	page, err := p.Scan(t.Context(), &Scan{Table: Queues, Keys: AllKeys, Strong: true})
	require.NoError(t, err)
	require.Nil(t, page.Next)
	for _, r := range page.Rows {
		found = append(found, *r.Queue)
	}
	return found
}

func collect[V any](t *testing.T, all iter.Seq2[V, error]) (found []V) {
	t.Helper()
	for v, err := range all {
		require.NoError(t, err)
		found = append(found, v)
	}
	return found
}

// requireEndsWithContext verifies that an iteration with a canceled context yields its error
// and nothing else.
func requireEndsWithContext[V any](t *testing.T, iterate func(context.Context) iter.Seq2[V, error]) {
	t.Helper()
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	yielded := 0
	for _, err := range iterate(canceled) {
		require.ErrorIs(t, err, context.Canceled)
		yielded++
	}
	require.Equal(t, 1, yielded)
}

func TestAScopeRunsAsManyAsItsRuleAllowsAndExplains(t *testing.T) {
	g := &gated{release: make(chan struct{})}
	c := newTestNodeWith(t, 1, func(cfg *Config) { cfg.Flow.Enable = true }, g.service())
	p := c.partitions[0]
	const limit, calls = 3, 20
	rule := flowcontrol.Rule{Pattern: flowcontrol.Pattern{Scope: "s"}, Limits: flowcontrol.Limits{Concurrency: limit}, Version: 1}
	setRules(t, p, 1, rule)
	var done sync.WaitGroup
	for range calls {
		done.Go(func() {
			_, o, err := p.Call(t.Context(), scoped("s", "a"))
			if err != nil || o.Code != machine.OK {
				t.Errorf("%v %v", o.Code, err)
			}
		})
	}
	var q Queue
	require.Eventually(t, func() bool {
		all := queuesOf(t, p)
		if len(all) == 1 {
			q = all[0]
		}
		return q.Stages[flowcontrol.Inbox] == calls-limit
	}, time.Minute, 5*time.Millisecond)
	require.Equal(t, "s", q.Key.Scope)
	require.Equal(t, ids.OfVQueue("s", "a", "Gated", ""), q.ID)
	require.EqualValues(t, limit, q.Stages[flowcontrol.Running])
	require.False(t, q.Head.ID.IsZero())
	require.NotZero(t, q.Head.At)
	require.Equal(t, flowcontrol.ByConcurrency, q.Blocked.Cause)
	require.Equal(t, "s", q.Blocked.Rule.Pattern.String())
	require.EqualValues(t, limit, q.Blocked.Used)
	usages := collect(t, p.usages(t.Context()))
	require.Len(t, usages, 2)
	require.Equal(t, []string{"s", "s/a"}, []string{usages[0].Key.String(), usages[1].Key.String()})
	require.Equal(t, rule.Pattern, usages[0].Rule.Pattern)
	require.Nil(t, usages[1].Rule)
	requireEndsWithContext(t, p.usages)

	o, err := p.Operate(t.Context(), &machine.PauseQueue{ID: q.ID, Paused: true})
	require.NoError(t, err)
	require.Equal(t, machine.OK, o.Code)
	o, err = p.Operate(t.Context(), &machine.PauseQueue{ID: ids.OfVQueue("t", "", "Gated", ""), Paused: true})
	require.NoError(t, err)
	require.Equal(t, machine.NotFound, o.Code)
	require.Equal(t, flowcontrol.ByPause, queuesOf(t, p)[0].Blocked.Cause)
	_, err = p.Operate(t.Context(), &machine.PauseQueue{ID: q.ID})
	require.NoError(t, err)

	require.Eventually(t, func() bool { return g.inside.Load() == limit }, time.Minute, time.Millisecond)
	close(g.release)
	done.Wait()
	require.EqualValues(t, limit, g.atOnce.Load())
}

// TestAPausedScopeIsReported pauses a scope that has no queue yet.
func TestAPausedScopeIsReported(t *testing.T) {
	g := &gated{release: make(chan struct{})}
	c := newTestNodeWith(t, 1, func(cfg *Config) {
		cfg.Flow.Enable = true
		cfg.Level = func() feature.Level { return feature.Level4 }
	}, g.service())
	p := c.partitions[0]
	require.NoError(t, p.WaitLeading(t.Context()))
	scope := flowcontrol.QueueKey{Scope: "s"}
	o, err := p.Operate(t.Context(), &machine.PauseQueue{Queue: scope, Paused: true, By: "::1", Reason: "too much"})
	require.NoError(t, err)
	require.Equal(t, machine.OK, o.Code)
	_, err = p.Invoke(t.Context(), scoped("s", "a"))
	require.NoError(t, err)
	q := queuesOf(t, p)[0]
	require.EqualValues(t, 1, q.Stages[flowcontrol.Inbox])
	require.Equal(t, flowcontrol.ByScopePause, q.Blocked.Cause)
	paused := collect(t, p.usages(t.Context()))[0].Pause
	require.Equal(t, []string{"::1", "too much"}, []string{paused.By, paused.Reason})

	_, err = p.Operate(t.Context(), &machine.PauseQueue{Queue: scope})
	require.NoError(t, err)
	q = queuesOf(t, p)[0]
	require.EqualValues(t, 1, q.Stages[flowcontrol.Running])
	close(g.release)
}

func TestCallsFailWhenAVQueueIsFull(t *testing.T) {
	g := &gated{release: make(chan struct{})}
	c := newTestNode(t, 1, g.service())
	p := c.partitions[0]
	setRules(t, p, 1, flowcontrol.Rule{
		Pattern: flowcontrol.Pattern{Scope: "s"}, Limits: flowcontrol.Limits{Concurrency: 1, QueueLimit: new(uint64(0))}, Version: 1,
	})
	first := scoped("s", "")
	_, err := p.Invoke(t.Context(), first)
	require.NoError(t, err)
	_, o, err := p.Call(t.Context(), scoped("s", ""))
	require.NoError(t, err)
	require.Equal(t, machine.Outcome{Code: machine.QueueFull, Rule: "s"}, o)
	requireNoWaiters(t, p)
	close(g.release)
	_, err = p.Await(t.Context(), first.ID)
	require.NoError(t, err)
}

func TestFlowControlIsRefusedWhileInvocationsAreInFlight(t *testing.T) {
	g := &gated{release: make(chan struct{})}
	c := newTestNode(t, 1, g.service())
	p := c.partitions[0]
	require.NoError(t, p.checkFlowControl(), "a new partition")
	inv := request("Gated", "pass", "1")
	_, err := p.Invoke(t.Context(), inv)
	require.NoError(t, err)
	err = p.checkFlowControl()
	require.ErrorIs(t, err, ErrHoldsData)
	require.ErrorContains(t, err, "partition 0 holds 1, such as "+inv.ID.String()+" of Gated/pass")
	close(g.release)
	_, err = p.Await(t.Context(), inv.ID)
	require.NoError(t, err)
	require.NoError(t, p.checkFlowControl(), "completed invocations are allowed")
}

func TestFlowControlStaysEnabled(t *testing.T) {
	g := &gated{release: make(chan struct{})}
	c := newTestNodeWith(t, 1, func(cfg *Config) { cfg.Flow.Enable = true }, g.service())
	p := c.partitions[0]
	inv := request("Gated", "pass", "1")
	_, err := p.Invoke(t.Context(), inv)
	require.NoError(t, err)
	succeed(t, p)
	close(g.release)
	_, err = p.Await(context.WithoutCancel(t.Context()), inv.ID)
	require.NoError(t, err)
}

// succeed ends the leadership of a partition and waits for the next one.
func succeed(t *testing.T, p *Partition) {
	t.Helper()
	before, err := p.leader()
	require.NoError(t, err)
	before.abandon(errOutdated)
	require.Eventually(t, func() bool {
		l, err := p.leader()
		return err == nil && l != before
	}, time.Minute, 5*time.Millisecond)
	require.NoError(t, p.WaitLeading(t.Context()))
}

func TestAPartitionLedWithoutFlowControlIsCheckedAgain(t *testing.T) {
	g := &gated{release: make(chan struct{})}
	c := newTestNodeWith(t, 1, func(cfg *Config) { cfg.Flow.Enable = true }, g.service())
	p := c.partitions[0]
	p.cfg.Flow.Enable = false // as after a restart, because another partition refused
	succeed(t, p)
	inv := request("Gated", "pass", "1")
	_, err := p.Invoke(t.Context(), inv)
	require.NoError(t, err)
	require.ErrorIs(t, p.checkFlowControl(), ErrHoldsData)

	p.cfg.Flow.Enable, p.cfg.Flow.EnabledEverywhere = true, func() bool { return true } // on all partitions, before
	succeed(t, p)
	close(g.release)
	_, err = p.Await(t.Context(), inv.ID)
	require.NoError(t, err)
}
