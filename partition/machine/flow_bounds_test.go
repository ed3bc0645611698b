package machine_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/flowcontrol"
	"platform/internal/feature"
	"platform/internal/ids"
	"platform/internal/target"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/partition/machine/machinetest"
)

// flowCounting counts what commands read of queues and write to the tables of flow control.
type flowCounting struct {
	*machinetest.State
	lookups  int // of members of queues, lanes and rings
	counters int // counters written
	left     int // members removed from rings
}

func (c *flowCounting) FirstWaiting(o machine.Object, from, before uint64) (uint64, ids.Invocation, error) {
	c.lookups++
	return c.State.FirstWaiting(o, from, before)
}

func (c *flowCounting) FirstQueued(q flowcontrol.QueueKey, priority uint8, from, before uint64) (uint64, flowcontrol.Queued, error) {
	c.lookups++
	return c.State.FirstQueued(q, priority, from, before)
}

func (c *flowCounting) FirstChild(ring flowcontrol.CounterKey, from, before uint64) (uint64, flowcontrol.Child, error) {
	c.lookups++
	return c.State.FirstChild(ring, from, before)
}

func (c *flowCounting) PutCounter(k flowcontrol.CounterKey, v flowcontrol.Counter) {
	c.counters++
	c.State.PutCounter(k, v)
}

func (c *flowCounting) DeleteChild(ring flowcontrol.CounterKey, seq uint64) {
	c.left++
	c.State.DeleteChild(ring, seq)
}

// flowBounded applies commands at a feature level and keeps the largest counts of one.
type flowBounded struct {
	t     *testing.T
	st    *flowCounting
	m     *machine.Machine
	level feature.Level
	now   int64
	most  flowCounting
	runs  int
}

func newFlowBounded(t *testing.T, level feature.Level) *flowBounded {
	b := &flowBounded{t: t, st: &flowCounting{State: machinetest.New()}, m: machine.New(machine.Shards{Count: 1}), level: level, now: 1000}
	b.apply(&machine.Lead{Epoch: 1})
	return b
}

func (b *flowBounded) apply(c machine.Command) {
	b.t.Helper()
	b.st.lookups, b.st.counters, b.st.left = 0, 0, 0
	_, effects, err := b.m.Apply(b.st, machine.Header{Epoch: 1, Time: b.now, Level: b.level}, c, nil)
	require.NoError(b.t, err)
	for _, e := range effects {
		if _, ok := e.(*machine.Run); ok {
			b.runs++
		}
	}
	b.most.lookups = max(b.most.lookups, b.st.lookups)
	b.most.counters = max(b.most.counters, b.st.counters)
	b.most.left = max(b.most.left, b.st.left)
}

// entry applies the commands of one log entry, and returns how many invocations it started.
func (b *flowBounded) entry(commands []machine.Command) (started int) {
	b.t.Helper()
	for i, c := range commands {
		_, effects, err := b.m.Apply(b.st, machine.Header{Epoch: 1, Time: b.now, Level: b.level, Command: i}, c, nil)
		require.NoError(b.t, err)
		for _, e := range effects {
			if _, ok := e.(*machine.Run); ok {
				started++
			}
		}
	}
	b.runs += started
	return started
}

// settle fires the due timers until there are none.
func (b *flowBounded) settle() (entries int) {
	for {
		due := slices.DeleteFunc(b.st.Timers(), func(t machine.Timer) bool { return t.At > b.now })
		if len(due) == 0 {
			require.Empty(b.t, b.st.Broken(machinetest.Names{}))
			return entries
		}
		b.apply(&machine.FireTimers{Timers: due[:min(len(due), 64)]})
		entries++
	}
}

func (b *flowBounded) invoke(n int, to machine.Target, limitKey string) ids.Invocation {
	id := ids.NewInvocation(0, [16]byte{1, byte(n), byte(n >> 8)})
	b.apply(&machine.Invoke{ID: id, Target: to, LimitKey: limitKey, Input: journal.NewInput(nil, nil)})
	return id
}

func (b *flowBounded) rules(version uint32, rules ...flowcontrol.Rule) {
	b.apply(&machine.SetRules{Book: &flowcontrol.Book{Version: version, Rules: rules}})
}

func concurrency(limit uint32, scope, l1 string) flowcontrol.Rule {
	return flowcontrol.Rule{Pattern: flowcontrol.Pattern{Scope: scope, L1: l1}, Limits: flowcontrol.Limits{Concurrency: limit}, Version: 1}
}

// TestGapsOfAQueueAreSkippedWithoutReadingThem kills thousands of waiting invocations, all but
// the last, and then ends the one that they waited for.
func TestGapsOfAQueueAreSkippedWithoutReadingThem(t *testing.T) {
	const waiting = 3000
	for name, to := range map[string]machine.Target{
		"key":  {Service: "Counter", Key: "k", Handler: "add", Type: target.ObjectExclusive},
		"slot": {Scope: "s", Service: "Greeter", Handler: "greet"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFlowBounded(t, feature.Level4)
			b.rules(1, concurrency(1, "s", ""))
			holder := b.invoke(0, to, "")
			var last ids.Invocation
			for n := range waiting {
				last = b.invoke(n+1, to, "")
			}
			for n := range waiting - 1 {
				b.apply(&machine.Kill{Target: ids.NewInvocation(0, [16]byte{1, byte(n + 1), byte((n + 1) >> 8)})})
			}
			require.Equal(t, 1, b.runs)
			b.most = flowCounting{}
			b.apply(&machine.Kill{Target: holder})
			require.LessOrEqual(t, b.most.lookups, 4)
			inv, err := b.st.Invocation(last)
			require.NoError(t, err)
			require.Equal(t, machine.Invoked, inv.Status)
			require.Empty(t, b.st.Broken(machinetest.Names{}))
		})
	}
}

// TestOneEntryReevaluatesABoundedNumberOfCounters raises the limit of thousands of counters
// with waiting invocations, and changes the rules again while the first change is in progress.
func TestOneEntryReevaluatesABoundedNumberOfCounters(t *testing.T) {
	const keys = 1500
	for level, most := range map[feature.Level]int{feature.Level3: math.MaxInt, feature.Level4: 3000} {
		t.Run(fmt.Sprint(level), func(t *testing.T) {
			b := newFlowBounded(t, level)
			b.rules(1, concurrency(1, "s", "*"))
			to := machine.Target{Scope: "s", Service: "Greeter", Handler: "greet"}
			for n := range 3 * keys {
				b.invoke(n, to, fmt.Sprint("k", n%keys))
			}
			require.Equal(t, keys, b.runs)
			b.most = flowCounting{}
			b.rules(2, concurrency(2, "s", "*"))
			b.rules(3, concurrency(3, "s", "*"))
			if level >= feature.Level4 {
				require.Equal(t, machine.ReevaluatingTwice, b.st.Meta().Reevaluation)
			}
			b.settle()
			require.Equal(t, 3*keys, b.runs, "the second change reaches all counters too")
			require.LessOrEqual(t, b.most.counters, most)
			require.Equal(t, machine.NotReevaluating, b.st.Meta().Reevaluation)
		})
	}
}

// TestOneEntryAdmitsABoundedNumberOfInvocations deletes the rule that thousands of invocations wait
// for, and ends running ones with one entry.
func TestOneEntryAdmitsABoundedNumberOfInvocations(t *testing.T) {
	const running, waiting = 250, 5000
	for level, most := range map[feature.Level]int{feature.Level3: running * 16, feature.Level4: 512} {
		t.Run(fmt.Sprint(level), func(t *testing.T) {
			b := newFlowBounded(t, level)
			to := machine.Target{Scope: "s", Service: "Greeter", Handler: "greet"}
			b.rules(1, concurrency(running, "s", ""))
			var ends []machine.Command
			for n := range running + waiting {
				if id := b.invoke(n, to, ""); n < running {
					ends = append(ends, &machine.Kill{Target: id})
				}
			}
			require.Equal(t, running, b.runs)
			require.Equal(t, running, b.entry(ends), "each frees a slot")
			for i := range ends {
				ends[i] = &machine.Kill{Target: ids.NewInvocation(0, [16]byte{1, byte(running + i), byte((running + i) >> 8)})}
			}
			b.rules(2)
			before := b.runs
			require.Equal(t, most, b.entry(ends))
			require.Equal(t, before+most, b.runs)
			b.settle()
			require.Equal(t, running+waiting, b.runs)
		})
	}
}

// TestOneEntryRemovesABoundedNumberOfMembersFromARing lowers the limits of thousands of
// counters whose scope is full, and then frees a slot of the scope.
func TestOneEntryRemovesABoundedNumberOfMembersFromARing(t *testing.T) {
	const keys = 5000
	for level, most := range map[feature.Level]int{feature.Level3: math.MaxInt, feature.Level4: 2100} {
		t.Run(fmt.Sprint(level), func(t *testing.T) {
			b := newFlowBounded(t, level)
			to := machine.Target{Scope: "s", Service: "Greeter", Handler: "greet"}
			var running ids.Invocation
			for n := range keys {
				running = b.invoke(n, to, fmt.Sprint("k", n))
			}
			b.rules(1, concurrency(keys, "s", ""))
			for n := range keys {
				b.invoke(keys+n, to, fmt.Sprint("k", n))
			}
			require.Equal(t, keys, b.runs)
			b.rules(2, concurrency(keys, "s", ""), concurrency(1, "s", "*"))
			b.settle()
			b.most = flowCounting{}
			b.apply(&machine.Kill{Target: running})
			b.settle()
			require.Equal(t, keys+1, b.runs, "the one whose key was freed")
			require.LessOrEqual(t, b.most.left, most)
		})
	}
}

// One command frees slots of very many scopes, or queues invocations in them.
func TestFreedScopesAreFoundInConstantTime(t *testing.T) {
	const scopes = 60_000
	m := machine.New(machine.Shards{Count: 1})
	began := time.Now()
	for range 2 {
		for n := range scopes {
			m.MarkFreed(fmt.Sprintf("scope-of-tenant-%05d", n))
		}
	}
	require.Less(t, time.Since(began), 30*time.Second)
	freed := m.MarkFreed("scope-of-tenant-00000")
	require.Len(t, freed, scopes)
	require.True(t, slices.IsSorted(freed), "in the order in which they were freed")
}
