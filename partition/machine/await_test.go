package machine_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"platform/internal/feature"
	"platform/internal/ids"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/partition/machine/machinetest"
)

// waiter is one invocation with a model of its handler, which has the knowledge that the
// machine lacks: which signals it has consumed, and how much of the journal it had seen
// when it suspended.
type waiter struct {
	*rapid.T
	*world
	id       ids.Invocation
	level    feature.Level
	consumed map[uint32]bool // consumed notifications, by journal index
	await    journal.Future  // what it awaits, if suspended
	waiting  bool
	sleeps   uint32
	woken    int // attempts after the first
	useful   int // attempts in which the handler could continue
}

func newWaiter(t *rapid.T) *waiter {
	w := &waiter{T: t, world: newWorld(1), consumed: map[uint32]bool{}}
	w.level = rapid.SampledFrom([]feature.Level{feature.Level1, feature.Level4}).Draw(t, "level")
	w.id = w.world.id("a")
	w.apply(&machine.Invoke{ID: w.id, Target: parseTarget("Greeter/greet", "service"), Input: journal.NewInput(nil, nil)})
	return w
}

func (w *waiter) apply(c machine.Command) {
	p := w.parts[0]
	outcome, effects, err := p.machine.Apply(p.state, machine.Header{Epoch: 1, Time: w.now, Level: w.level}, c, nil)
	require.NoError(w, err)
	require.Equal(w, machine.OK, outcome.Code)
	require.Empty(w, p.state.Broken(w.names))
	for _, e := range effects {
		if _, ok := e.(*machine.Run); ok {
			w.woken++
		}
	}
}

func (w *waiter) record() *machine.Invocation {
	inv, err := w.parts[0].state.Invocation(w.id)
	require.NoError(w, err)
	return inv
}

func (w *waiter) number(label string, from, to int) int {
	return rapid.IntRange(from, to).Draw(w.T, label)
}

// arrived is a notification that the handler has not consumed.
type arrived struct {
	at uint32
	ok bool
}

// unconsumed returns the notifications in the first entries of the journal that the handler
// has not consumed, the first of each ID. Non-repeatable notifications stay.
func (w *waiter) unconsumed(length uint32) map[journal.NotificationID]arrived {
	found := map[journal.NotificationID]arrived{}
	for i := range length {
		e, err := w.parts[0].state.Entry(w.id, i)
		require.NoError(w, err)
		if !e.Type.IsNotification() || w.consumed[i] {
			continue
		}
		n, err := journal.ParseNotification(e.Payload)
		require.NoError(w, err)
		if _, known := found[n.ID]; !known {
			found[n.ID] = arrived{i, n.Settled() == journal.Succeeded}
		}
	}
	return found
}

// over reports whether an await was over, when and how: unlike the machine, it knows the
// order of arrival. The result of a node of unknown kind is known only to the handler.
func over(f *journal.Future, there map[journal.NotificationID]arrived) (a arrived, done bool) {
	var ended, succeeded, failed []arrived
	children := len(f.Completions) + len(f.Signals) + len(f.Names) + len(f.Nested)
	add := func(a arrived, done bool) {
		if !done {
			return
		}
		ended = append(ended, a)
		if a.ok {
			succeeded = append(succeeded, a)
		} else {
			failed = append(failed, a)
		}
	}
	own := journal.Future{Completions: f.Completions, Signals: f.Signals, Names: f.Names}
	for id := range own.Leaves() {
		a, done := there[id]
		add(a, done)
	}
	for i := range f.Nested {
		add(over(&f.Nested[i], there))
	}
	earlier := func(a, b arrived) int { return int(a.at) - int(b.at) }
	all := len(ended) == children
	last := func(ok bool) arrived {
		if len(ended) == 0 {
			return arrived{0, ok}
		}
		return arrived{slices.MaxFunc(ended, earlier).at, ok}
	}
	switch f.Combinator {
	case journal.CombineFirstCompleted, journal.CombineUnknown:
		if len(ended) == 0 {
			return a, false
		}
		a = slices.MinFunc(ended, earlier)
		if f.Combinator == journal.CombineUnknown {
			a.ok = len(f.Completions)%2 == 0
		}
		return a, true
	case journal.CombineAllCompleted:
		return last(true), all
	case journal.CombineFirstSucceededOrAllFailed:
		if len(succeeded) > 0 {
			return slices.MinFunc(succeeded, earlier), true
		}
		return last(false), all
	}
	if len(failed) > 0 {
		return slices.MinFunc(failed, earlier), true
	}
	return last(true), all
}

// happen makes a random event reach the invocation.
func (w *waiter) happen() {
	result := &journal.Result{Value: []byte("v")}
	if w.number("how", 0, 2) == 0 {
		result = &journal.Result{Failure: &journal.Failure{Code: 400, Message: "bad"}}
	}
	switch n := w.number("what", 0, 9); {
	case n <= 2:
		w.apply(&machine.Signal{Target: w.id, ID: journal.NamedSignal("go"), Result: result})
	case n == 3:
		w.apply(&machine.Signal{Target: w.id, ID: journal.NumberedSignal(2), Result: result})
	case n == 4:
		w.apply(&machine.Signal{Target: w.id, ID: journal.NumberedSignal(journal.CancelSignal)})
	case n <= 7:
		w.apply(&machine.Signal{Target: w.id, ID: journal.NumberedSignal(uint32(w.number("awakeable", 17, 22))), Result: result})
	default:
		w.now += int64(w.number("pass", 0, 20))
		w.apply(&machine.FireTimers{Timers: w.parts[0].state.Timers()})
	}
}

// attempt runs the handler to its next suspension, which it decides with the part of the
// journal that it has seen: at least everything from before the attempt started.
func (w *waiter) attempt() {
	inv := w.record()
	fresh := inv.Length > inv.Seen
	seen := uint32(w.number("seen", int(inv.Seen), int(inv.Length)))
	steps := w.drawCommands()
	if !w.waiting {
		w.await = w.drawTree(2)
	}
	for range 100 {
		if _, done := over(&w.await, w.unconsumed(seen)); !done {
			break
		}
		w.useful++
		w.take(seen)
		w.await = w.drawTree(2)
	}
	if _, done := over(&w.await, w.unconsumed(seen)); done {
		return // the handler can continue
	}
	await := w.await
	w.waiting = true
	w.apply(&machine.Progress{ID: w.id, Attempt: inv.Attempt, Steps: append(steps, machinetest.SuspendOn(await))})
	if !fresh && len(steps) == 0 {
		require.Equal(w, machine.Suspended, w.record().Status, "%s, nothing has arrived since the attempt started: %v", machinetest.Await(&await), w.unconsumed(seen))
	}
}

// take marks what the handler consumes of its await: of repeated signals the first, or all.
func (w *waiter) take(seen uint32) {
	leaves := map[journal.NotificationID]bool{}
	for id := range w.await.Leaves() {
		leaves[id] = true
	}
	greedy := w.number("greedy", 0, 1) == 1
	for {
		left := false
		for id, a := range w.unconsumed(seen) {
			if leaves[id] && id.Repeats() {
				w.consumed[a.at], left = true, left || greedy && id.Repeats()
			}
		}
		if !left {
			return
		}
	}
}

func (w *waiter) drawCommands() (steps []machine.Step) {
	for range w.number("sleeps", 0, 2) - 1 {
		w.sleeps++
		steps = append(steps, machinetest.Sleep(w.sleeps, w.now+int64(w.number("sleep", -5, 30))))
	}
	return steps
}

func (w *waiter) drawTree(depth int) journal.Future {
	f := journal.Future{Combinator: journal.Combinator(w.number("combinator", 0, 4))}
	for range w.number("completions", 0, 2) {
		f.Completions = append(f.Completions, uint32(w.number("completion", 1, int(w.sleeps)+1)))
	}
	for range w.number("signals", 0, 2) {
		f.Signals = append(f.Signals, []uint32{1, 2, 17, 18, 19, 20, 21, 22}[w.number("signal", 0, 7)])
	}
	if w.number("named", 0, 1) == 1 {
		f.Names = []string{"go"}
	}
	if depth > 0 {
		for range w.number("nested", 0, 2) {
			f.Nested = append(f.Nested, w.drawTree(depth-1))
		}
	}
	if f.Empty() {
		f.Signals = []uint32{journal.CancelSignal}
	}
	return f
}

// A handler is deterministic: woken needlessly, it suspends on the same await again.
func TestASuspendedHandlerIsWokenInTimeAndNotEndlessly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWaiter(t)
		for range 60 {
			inv := w.record()
			if inv.Status == machine.Suspended {
				_, done := over(&w.await, w.unconsumed(inv.Length))
				require.False(t, done, "it is suspended on %s, which is over", machinetest.Await(&w.await))
			}
			if inv.Status == machine.Invoked && w.number("turn", 0, 2) == 0 {
				w.attempt()
				continue
			}
			w.happen()
		}
		notifications := int(w.record().Length - w.record().Commands)
		require.LessOrEqual(t, w.woken-1, notifications, fmt.Sprintf("woken without a new notification, %d times usefully", w.useful))
	})
}

// Only the handler knows whether signal 2 or the awakeable was first in the race: if it has
// consumed the signal before, it was the awakeable.
func TestARaceWithAnOldSignalIsNotDecidedForTheHandler(t *testing.T) {
	w := newTrustingWorld()
	id, ok := w.id("a"), &journal.Result{}
	suspend := func(await journal.Future) {
		inv, err := w.parts[0].state.Invocation(id)
		require.NoError(t, err)
		w.must(t, &machine.Progress{ID: id, Attempt: inv.Attempt, Steps: []machine.Step{machinetest.SuspendOn(await)}})
	}
	signal := func(number uint32, r *journal.Result) {
		w.must(t, &machine.Signal{Target: id, ID: journal.NumberedSignal(number), Result: r})
	}
	status := func() machine.Status {
		inv, err := w.parts[0].state.Invocation(id)
		require.NoError(t, err)
		return inv.Status
	}
	w.must(t, &machine.Invoke{ID: id, Target: parseTarget("Greeter/greet", "service"), Input: journal.NewInput(nil, nil)})
	signal(2, ok)
	signal(18, &journal.Result{Failure: &journal.Failure{Code: 400}})
	suspend(journal.Future{Signals: []uint32{18}, Combinator: journal.CombineFirstCompleted})
	require.Equal(t, machine.Invoked, status(), "it has not seen the awakeable")

	suspend(journal.Future{
		Signals: []uint32{17}, Combinator: journal.CombineFirstSucceededOrAllFailed,
		Nested: []journal.Future{{
			Signals: []uint32{3}, Combinator: journal.CombineAllSucceededOrFirstFailed,
			Nested: []journal.Future{{Signals: []uint32{2, 18}, Combinator: journal.CombineFirstCompleted}},
		}},
	})
	require.Equal(t, machine.Suspended, status(), "it has seen everything")
	signal(3, ok)
	require.Equal(t, machine.Invoked, status())
}
