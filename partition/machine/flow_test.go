package machine_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/flowcontrol"
	"platform/internal/feature"
	"platform/internal/ids"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/partition/machine/machinetest"
)

// rules parses the rules of a book, one per line:
//
//	pattern concurrency=2 rate=1/s queue=3 disabled
func (w *world) rules(a arguments) *machine.SetRules {
	b := &flowcontrol.Book{}
	for _, words := range a.lines() {
		r := flowcontrol.Rule{Version: 1}
		var err error
		r.Pattern, err = flowcontrol.ParsePattern(words[0])
		require.NoError(a.t, err)
		for _, word := range words[1:] {
			switch key, value, _ := strings.Cut(word, "="); key {
			case "concurrency":
				r.Limits.Concurrency = uint32(number(a, value))
			case "rate":
				rate, err := flowcontrol.ParseRate(value)
				require.NoError(a.t, err)
				r.Limits.Rate = &rate
			case "queue":
				r.Limits.QueueLimit = new(uint64(number(a, value)))
			case "disabled":
				r.Disabled = true
			default:
				a.d.Fatalf(a.t, "unknown limit %s", word)
			}
		}
		b.Rules = append(b.Rules, r)
	}
	slices.SortFunc(b.Rules, func(x, y flowcontrol.Rule) int { return x.Pattern.Compare(y.Pattern) })
	b.Version = uint32(a.number("version", 1))
	return &machine.SetRules{Book: b}
}

func (w *world) pauseQueue(a arguments) *machine.PauseQueue {
	key, err := flowcontrol.ParseLimitKey(a.text("limit-key", "none"))
	require.NoError(a.t, err)
	if key.L1 == "none" {
		key = flowcontrol.LimitKey{}
	}
	q := flowcontrol.QueueKey{Scope: a.text("scope", ""), LimitKey: key, Service: a.text("service", "Greeter")}
	return &machine.PauseQueue{ID: q.ID(), Queue: q, Paused: a.d.Cmd == "pause-queue", By: a.text("by", ""), Reason: a.text("reason", "")}
}

// drawFlow changes the rules or pauses a vqueue.
func (h *history) drawFlow(p int) {
	if h.full && h.chance(30) {
		if h.level >= feature.Level4 && h.chance(30) {
			h.apply(p, &machine.PauseQueue{Queue: flowcontrol.QueueKey{Scope: fmt.Sprintf("s1.%d", p)}, Paused: h.chance(60)})
		}
		for q := range h.parts[p].state.VQueues() {
			if h.chance(30) {
				h.apply(p, &machine.PauseQueue{Queue: q, Paused: h.chance(60)})
			}
		}
		return
	}
	b := &flowcontrol.Book{Version: h.parts[p].state.Meta().Rules + uint32(h.number("version", 0, 1))}
	for i, text := range []string{"*", "*/a", fmt.Sprintf("s1.%d", p), "*/*/*"} {
		if h.chance(40) {
			continue
		}
		pattern, err := flowcontrol.ParsePattern(text)
		require.NoError(h, err)
		r := flowcontrol.Rule{Pattern: pattern, Version: uint32(i + 1), Disabled: h.chance(10)}
		r.Limits.Concurrency = uint32(h.number("concurrency", 0, 3))
		if h.chance(20) {
			r.Limits.Rate = &flowcontrol.Rate{Count: uint32(h.number("count", 1, 3)), Period: time.Duration(h.number("period", 1, 900)) * time.Millisecond}
		}
		if h.chance(20) {
			r.Limits.QueueLimit = new(uint64(h.number("queue limit", 0, 2)))
		}
		b.Rules = append(b.Rules, r)
	}
	slices.SortFunc(b.Rules, func(x, y flowcontrol.Rule) int { return x.Pattern.Compare(y.Pattern) })
	known := h.parts[p].state.Meta().Rules
	outcome := h.apply(p, &machine.SetRules{Book: b})
	require.Equal(h, b.Version <= known, outcome.Code == machine.Existing)
}

// running returns the number of invocations that hold a slot of each counter.
func running(st *machinetest.State) map[flowcontrol.CounterKey]uint64 {
	counts := map[flowcontrol.CounterKey]uint64{}
	for _, c := range st.AllCounters() {
		counts[c.Key] = c.Running
	}
	return counts
}

// withinLimits checks that a command admitted nothing above a limit of the rules in force. A
// limit that was lowered may be exceeded, but by no more than before.
func (h *history) withinLimits(p *part, before map[flowcontrol.CounterKey]uint64) {
	book, err := p.state.Rules()
	require.NoError(h, err)
	rules := flowcontrol.NewMatcher(book)
	for key, n := range running(p.state) {
		r := rules.Match(key.Scope, key.LimitKey)[key.Level()]
		if r == nil || r.Limits.Concurrency == 0 || n <= uint64(r.Limits.Concurrency) {
			continue
		}
		require.LessOrEqual(h, n, before[key], "%v admits above its limit of %d", key, r.Limits.Concurrency)
	}
}

// mayRefuse checks that only external requests that would have to wait are refused.
func (h *history) mayRefuse(c machine.Command, outcome machine.Outcome) {
	if outcome.Code != machine.QueueFull {
		return
	}
	invoke := c.(*machine.Invoke)
	require.NotEmpty(h, invoke.Target.Scope)
	require.NotEmpty(h, outcome.Rule)
	require.Zero(h, h.status(invoke.ID))
}

func (h *history) resumeQueues() {
	for p := range h.parts {
		for _, c := range h.parts[p].state.AllCounters() {
			if c.Pause != nil {
				h.apply(p, &machine.PauseQueue{Queue: flowcontrol.QueueKey{Scope: c.Key.Scope}})
			}
		}
		for q, record := range h.parts[p].state.VQueues() {
			if record.Paused {
				h.apply(p, &machine.PauseQueue{Queue: q})
			}
		}
	}
}

func TestAnInvalidScopeLimitsNothing(t *testing.T) {
	m, st := machine.New(machine.Shards{Count: 1}), machinetest.NewStrict()
	*st.Meta() = machine.Meta{Epoch: 1, Clock: 1000}
	for n, scope := range []string{"a/b", "*", "\x00", strings.Repeat("x", 37)} {
		c := &machine.Invoke{
			ID: ids.NewInvocation(0, [16]byte{15: byte(n + 1)}), Target: machine.Target{Scope: scope, Service: "Greeter", Handler: "greet"},
			Input: journal.NewInput(nil, nil),
		}
		outcome, _, err := m.Apply(st, machine.Header{Epoch: 1, Time: 1000}, c, nil)
		require.NoError(t, err)
		require.Equal(t, machine.Invoked, outcome.Status)
		require.Empty(t, st.Broken(machinetest.Names{}))
	}
}

// A deleted rule may release more invocations than one command can admit.
func TestAMillionWaitersDoNotBlockThePartition(t *testing.T) {
	m, st := machine.New(machine.Shards{Count: 1}), machinetest.New()
	*st.Meta() = machine.Meta{Epoch: 1, Clock: 1000}
	apply := func(c machine.Command) (runs int) {
		_, effects, err := m.Apply(st, machine.Header{Epoch: 1, Time: 1000}, c, nil)
		require.NoError(t, err)
		for _, e := range effects {
			if _, ok := e.(*machine.Run); ok {
				runs++
			}
		}
		return runs
	}
	one := flowcontrol.Rule{Pattern: flowcontrol.Pattern{Scope: "s"}, Limits: flowcontrol.Limits{Concurrency: 1}, Version: 1}
	apply(&machine.SetRules{Book: &flowcontrol.Book{Version: 1, Rules: []flowcontrol.Rule{one}}})
	const waiting = 2500
	running := 0
	for n := range waiting {
		var id ids.Invocation
		binary.BigEndian.PutUint64(id[16:], uint64(n+1))
		running += apply(&machine.Invoke{ID: id, Target: machine.Target{Scope: "s", Service: "Greeter", Handler: "greet"}, Input: journal.NewInput(nil, nil)})
	}
	require.Equal(t, 1, running)
	admitted := apply(&machine.SetRules{Book: &flowcontrol.Book{Version: 2}})
	require.Equal(t, 16, admitted, "timers admit the rest")
	running += admitted
	for rounds := 0; running < waiting; rounds++ {
		require.Less(t, rounds, 10)
		admitted := apply(&machine.FireTimers{Timers: st.Timers()})
		require.LessOrEqual(t, admitted, 256)
		running += admitted
		admitted = apply(&machine.PauseQueue{Queue: flowcontrol.QueueKey{Scope: "s", Service: "Greeter"}}) // it is running
		require.LessOrEqual(t, admitted, 16, "any command may admit invocations, up to its bound")
		running += admitted
		require.Empty(t, st.Broken(machinetest.Names{}), "admissible invocations that wait have a due timer")
	}
	require.Empty(t, st.Broken(machinetest.Names{}))
}

// TestFailedAttemptsAreCounted checks that the failed attempts reported with progress are
// counted.
func TestFailedAttemptsAreCounted(t *testing.T) {
	s := machinetest.NewStrict()
	id := ids.NewInvocation(1, [16]byte{1})
	apply(t, s, &machine.Lead{Epoch: 1}, &machine.Invoke{ID: id, Target: machine.Target{Scope: "s", Service: "S", Handler: "h"}, Input: journal.NewInput(nil, nil)})
	inv, err := s.Invocation(id)
	require.NoError(t, err)
	for range 2 {
		apply(t, s, &machine.Progress{ID: id, Attempt: inv.Attempt, Errors: 3})
	}
	inv, err = s.Invocation(id)
	require.NoError(t, err)
	require.EqualValues(t, 6, inv.Flow.Errors)
}

// TestTheWaitsOfTheLatestAttemptOutliveIt checks that an invocation that has ended still has the time that its
// latest attempt waited.
func TestTheWaitsOfTheLatestAttemptOutliveIt(t *testing.T) {
	for level, latest := range map[feature.Level]int64{feature.Level3: 0, feature.Level4: 70} {
		m, st := machine.New(machine.Shards{Count: 1}), machinetest.NewStrict()
		*st.Meta() = machine.Meta{Epoch: 1, Clock: 1000}
		apply := func(at int64, c machine.Command) {
			outcome, _, err := m.Apply(st, machine.Header{Level: level, Epoch: 1, Time: at}, c, nil)
			require.NoError(t, err)
			require.Equal(t, machine.OK, outcome.Code)
			require.Empty(t, st.Broken(machinetest.Names{}))
		}
		one := flowcontrol.Rule{Pattern: flowcontrol.Pattern{Scope: "s"}, Limits: flowcontrol.Limits{Concurrency: 1}, Version: 1}
		apply(1000, &machine.SetRules{Book: &flowcontrol.Book{Version: 1, Rules: []flowcontrol.Rule{one}}})
		first, second := ids.NewInvocation(1, [16]byte{1}), ids.NewInvocation(1, [16]byte{2})
		for _, id := range []ids.Invocation{first, second} {
			apply(1000, &machine.Invoke{ID: id, Target: machine.Target{Scope: "s", Service: "S", Handler: "h"}, Input: journal.NewInput(nil, nil), Retention: machine.Retention{Completion: 1000}})
		}
		apply(1070, &machine.Kill{Target: first})
		waited, err := st.Invocation(second)
		require.NoError(t, err)
		require.Equal(t, machine.Wait{Latest: 70, Total: 70}, waited.Flow.Rules, "it is running")
		apply(1100, &machine.Kill{Target: second})
		ended, err := st.Invocation(second)
		require.NoError(t, err)
		require.Equal(t, machine.Completed, ended.Status)
		require.Equal(t, machine.Wait{Latest: latest, Total: 70}, ended.Flow.Rules, "at level %d", level)
	}
}
