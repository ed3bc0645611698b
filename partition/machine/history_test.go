package machine_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"platform/internal/feature"
	"platform/internal/ids"
	"platform/internal/target"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/partition/machine/machinetest"
)

// logged is a command in a partition's log, with its result.
type logged struct {
	header  machine.Header
	command machine.Command
	outcome machine.Outcome
	effects []string
}

// history generates commands that clients, attempts, clocks and other partitions may send,
// in any order and with duplicates, and applies them.
type history struct {
	*rapid.T
	*world
	logs  [][]logged
	fresh int                       // names assigned so far
	ended map[ids.Invocation]uint64 // has a result: its life
	full  bool
	// scoped is the percentage of invocations that have a scope.
	scoped int
	level  feature.Level // of proposed entries
	tight  bool          // timers continue almost everything
}

// newHistory starts a history. A full one includes operators and handlers that wait for
// events that may never occur; in the others everything ends by itself.
func newHistory(t *rapid.T, partitions int, full bool) *history {
	return &history{
		T: t, world: newWorld(uint32(partitions)), logs: make([][]logged, partitions), full: full,
		ended: map[ids.Invocation]uint64{}, scoped: 30, level: feature.Level(rapid.IntRange(1, int(feature.Newest)).Draw(t, "level")),
	}
}

// tighten makes timers continue almost everything.
func (h *history) tighten() {
	h.tight = true
	for _, p := range h.parts {
		p.machine.TightenAll()
	}
}

func (h *history) number(label string, from, to int) int {
	return rapid.IntRange(from, to).Draw(h.T, label)
}
func (h *history) chance(percent int) bool { return h.number("chance", 1, 100) <= percent }

// run generates and applies a number of commands.
func (h *history) run(commands int) {
	for range commands {
		p := h.number("partition", 0, len(h.parts)-1)
		switch n := h.number("command", 0, 99); {
		case n < 25:
			c := h.drawInvoke()
			h.apply(h.owner(c.ID), c)
		case n < 45 && h.full:
			h.drawOperator(p)
		case n < 70:
			h.drawProgress(p)
		case n < 78:
			h.now += int64(h.number("pass", 0, 3000))
			h.apply(p, &machine.FireTimers{Timers: h.parts[p].state.Timers()})
		case n < 90:
			h.drawDeliver(h.number("from", 0, len(h.parts)-1), p)
		case n < 92:
			h.parts[p].epoch++
			h.level = feature.Newest
			h.apply(p, &machine.Lead{Epoch: h.parts[p].epoch})
		case n < 97:
			h.drawFlow(p)
		case n < 98:
			h.stale(p)
		default:
			h.now += machine.MinRetention
		}
	}
}

// stale repeats a command of the log under the header of a deposed leader.
func (h *history) stale(p int) {
	if len(h.logs[p]) == 0 {
		return
	}
	l := h.logs[p][h.number("which", 0, len(h.logs[p])-1)]
	before := h.parts[p].state.Dump(h.names)
	outcome := h.applyWith(p, machine.Header{Epoch: h.parts[p].epoch - 1, Time: h.now + 1e6}, l.command)
	require.Equal(h, machine.Outcome{Code: machine.Stale}, outcome)
	require.Equal(h, before, h.parts[p].state.Dump(h.names))
}

func (h *history) apply(p int, c machine.Command) machine.Outcome {
	return h.applyWith(p, machine.Header{Epoch: h.parts[p].epoch, Time: h.now, Level: h.level}, c)
}

// applyWith applies a command and checks the invariants.
func (h *history) applyWith(p int, header machine.Header, c machine.Command) machine.Outcome {
	part := h.parts[p]
	queued, running := h.inboxed(part), running(part.state)
	lives := map[ids.Invocation]uint64{}
	for _, id := range h.ids {
		inv, err := part.state.Invocation(id)
		if err != nil || inv == nil {
			continue
		}
		lives[id] = inv.Life
		if inv.Expired(max(header.Time, part.state.Meta().Clock)) { // callers may reuse it
			delete(h.ended, id)
		}
	}
	outcome, effects, err := part.machine.Apply(part.state, header, c, nil)
	require.NoError(h, err)
	require.Empty(h, part.state.Faults())
	require.Empty(h, part.state.Broken(h.names))
	if outcome.Code != machine.OK && outcome.Code != machine.Conflict {
		require.Empty(h, effects)
	}
	h.mayRefuse(c, outcome)
	h.passed(part, queued)
	h.withinLimits(part, running)
	var texts []string
	for _, e := range effects {
		texts = append(texts, h.names.Effect(e))
		switch e := e.(type) {
		case *machine.Run:
			if e.Invocation.Length == 1 {
				require.NotNil(h, e.Input)
			}
			id := e.Invocation.ID
			life, over := h.ended[id]
			require.False(h, over && life == e.Invocation.Life, "%s runs after it has ended", h.names.Of(id))
			delete(h.ended, id) // a workflow without a retention may have called itself
		case *machine.Finish:
			require.NotContains(h, h.ended, e.ID, "%s ended twice", h.names.Of(e.ID))
			h.ended[e.ID] = lives[e.ID]
		}
	}
	for _, id := range h.ids {
		if h.owner(id) == p && h.status(id) != machine.Completed {
			delete(h.ended, id) // purged, or created again
		}
	}
	h.logs[p] = append(h.logs[p], logged{header, c, outcome, texts})
	return outcome
}

// inboxed returns the queue of each key.
func (h *history) inboxed(p *part) map[machine.Object][]ids.Invocation {
	waiting := map[machine.Object][]*machine.Invocation{}
	for _, id := range h.ids {
		if inv, err := p.state.Invocation(id); err == nil && inv != nil && inv.Status == machine.Inboxed && !inv.HoldsLock && inv.Target.Type.Exclusive() {
			waiting[inv.Target.Object()] = append(waiting[inv.Target.Object()], inv)
		}
	}
	order := map[machine.Object][]ids.Invocation{}
	for o, all := range waiting {
		slices.SortFunc(all, func(a, b *machine.Invocation) int { return int(a.QueueSeq) - int(b.QueueSeq) })
		for _, inv := range all {
			order[o] = append(order[o], inv.ID)
		}
	}
	return order
}

// passed checks that no invocation in a queue was overtaken by one behind it or by a new
// one.
func (h *history) passed(p *part, before map[machine.Object][]ids.Invocation) {
	after := h.inboxed(p)
	for o, queue := range before {
		var remaining []ids.Invocation
		for _, id := range queue {
			if slices.Contains(after[o], id) {
				remaining = append(remaining, id)
			} else if inv, err := p.state.Invocation(id); len(remaining) > 0 {
				require.NoError(h, err)
				require.True(h, inv == nil || inv.RunningAt == 0, "%s overtook in the queue of %v", h.names.Of(id), o)
			}
		}
		require.GreaterOrEqual(h, len(after[o]), len(remaining), "queue of %v", o)
		require.True(h, slices.Equal(remaining, after[o][:len(remaining)]), "queue of %v", o)
	}
}

// status returns the status of an invocation, 0 if it does not exist.
func (h *history) status(id ids.Invocation) machine.Status {
	inv, err := h.parts[h.owner(id)].state.Invocation(id)
	require.NoError(h, err)
	if inv == nil {
		return 0
	}
	return inv.Status
}

// living returns the invocations that have not ended, in the order of their names.
func (h *history) living() (found []ids.Invocation) {
	for _, name := range h.sortedNames() {
		if s := h.status(h.ids[name]); s != 0 && s != machine.Completed {
			found = append(found, h.ids[name])
		}
	}
	return found
}

// drawTarget draws a target and the name of the invocation, since the IDs of workflows and
// of idempotent requests are derived from their keys.
func (h *history) drawTarget() (string, machine.Target) {
	name, to := h.drawUnscoped()
	if !h.chance(h.scoped) {
		return name, to
	}
	before, at, _ := strings.Cut(name, "@")
	to.Scope = fmt.Sprintf("s%d.%s", h.number("scope", 1, 2), at)
	return before + to.Scope[:2] + "@" + at, to
}

func (h *history) drawUnscoped() (string, machine.Target) {
	at := fmt.Sprintf("@%d", h.number("owner", 0, len(h.parts)-1))
	h.fresh++
	name := fmt.Sprintf("n%d%s", h.fresh, at)
	kinds := 5
	if h.full {
		kinds = 6
	}
	switch h.number("kind", 0, kinds) {
	case 0:
		return name, parseTarget("Greeter/greet", "service")
	case 1, 2:
		return name, parseTarget(fmt.Sprintf("Counter/k%d%s/add", h.number("key", 1, 2), at), "object")
	case 3:
		return name, parseTarget(fmt.Sprintf("Counter/k1%s/get", at), "shared")
	case 4:
		key := fmt.Sprintf("w%d%s", h.number("key", 1, 2), at)
		return key, parseTarget("Wf/"+key+"/run", "workflow")
	}
	if kinds == 6 && h.chance(50) {
		return name, parseTarget(fmt.Sprintf("Wf/w%d%s/look", h.number("key", 1, 2), at), "workflow-shared")
	}
	return fmt.Sprintf("i%d%s", h.number("key", 1, 2), at), parseTarget("Greeter/idempotent", "service")
}

func (h *history) drawRetention() machine.Retention {
	return machine.Retention{
		Completion: int64(h.number("retention", 0, 4)) * machine.MinRetention / 2,
		Journal:    int64(h.number("journal retention", 0, 2)) * machine.MinRetention / 2,
	}
}

func (h *history) drawInvoke() *machine.Invoke {
	name, to := h.drawTarget()
	c := &machine.Invoke{ID: h.id(name), Target: to, Input: journal.NewInput(nil, []byte(name)), Retention: h.drawRetention()}
	if strings.HasPrefix(name, "i") {
		c.IdempotencyKey = &name
	}
	if h.chance(50) {
		c.Request = uint64(h.number("request", 1, 3))
	}
	if h.chance(20) {
		c.StartAt = h.now + int64(h.number("delay", -100, 3000))
	}
	if to.Scope != "" {
		c.LimitKey = []string{"", "", "a", "a/x", "b", "no/limit/key"}[h.number("limit key", 0, 5)]
		c.Priority = uint8(h.number("priority", 0, 2))
	}
	return c
}

// drawProgress generates progress of an attempt of the partition, usually a current one.
func (h *history) drawProgress(p int) {
	var running []*machine.Invocation
	for _, name := range h.sortedNames() {
		inv, err := h.parts[p].state.Invocation(h.ids[name])
		if err == nil && inv != nil && (inv.Status == machine.Invoked || h.chance(3)) {
			running = append(running, inv)
		}
	}
	if len(running) == 0 {
		return
	}
	inv := running[h.number("which", 0, len(running)-1)]
	c := &machine.Progress{ID: inv.ID, Attempt: inv.Attempt, Pin: machine.Pin{Deployment: "dp_1", Protocol: 6}}
	stale := inv.Status != machine.Invoked
	if h.chance(5) {
		c.Attempt -= uint64(h.number("older", 1, 3))
		stale = true
	}
	c.Steps = h.drawSteps(inv)
	if h.full && h.level >= feature.Level4 && h.chance(20) {
		n := uint32(h.number("failed", 1, 5))
		c.Errors, c.Failed = 1, machine.FailedAttempts{Total: inv.Failed.Total + n, Counted: n, SinceCommand: n}
	}
	outcome := h.apply(p, c)
	require.Equal(h, stale, outcome.Code == machine.Stale)
	require.NotEqual(h, machine.Invalid, outcome.Code)
}

func (h *history) sortedNames() (names []string) {
	for name := range h.ids {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// open returns, from the journal of inv, the next completion ID of its handler and the
// completion IDs that are pending.
func (h *history) open(inv *machine.Invocation) (next uint32, waits []uint32) {
	st := h.parts[h.owner(inv.ID)].state
	for i := range inv.Length {
		e, err := st.Entry(inv.ID, i)
		require.NoError(h, err)
		for _, id := range journal.CompletionsOf(e) {
			next = max(next, id)
			if s, err := st.Notified(inv.ID, journal.Completion(id)); err == nil && s == journal.Pending && e.Type != journal.Run {
				waits = append(waits, id)
			}
		}
	}
	return next + 1, waits
}

// drawSteps generates valid steps.
func (h *history) drawSteps(inv *machine.Invocation) (steps []machine.Step) {
	next, waits := h.open(inv)
	id := func() uint32 { next++; return next - 1 }
	wait := func() uint32 { waits = append(waits, next); return id() }
	for range h.number("steps", 0, 4) {
		switch n := h.number("step", 0, 9); {
		case n == 0:
			c := id()
			steps = append(steps, machinetest.Run(c, "r"))
			if h.full && h.chance(20) {
				break // would never complete
			}
			steps = append(steps, machinetest.RunCompletion(c, h.drawResult()))
			if h.chance(20) {
				steps = append(steps, machinetest.RunCompletion(c, h.drawResult()))
			}
		case n == 1:
			steps = append(steps, machinetest.Sleep(wait(), h.now+int64(h.number("sleep", -500, 3000))))
		case n <= 3:
			name, to := h.drawTarget()
			callee := machine.Callee{ID: h.id(name), Retention: h.drawRetention()}
			if n == 2 || !h.full && !mayCall(inv, name, to) {
				steps = append(steps, machinetest.Send(id(), to, []byte("x"), h.now+int64(h.number("delay", -500, 2000)), callee))
				break
			}
			steps = append(steps, machinetest.Call(id(), wait(), to, []byte("x"), callee))
		case n <= 6 && h.full:
			steps = append(steps, h.drawShared(inv, id, wait))
		case inv.Target.Type.WritesState():
			switch h.number("state", 0, 3) {
			case 0, 1:
				steps = append(steps, machinetest.SetState(fmt.Sprintf("k%d", h.number("key", 1, 3)), []byte{byte(n)}))
			case 2:
				steps = append(steps, machinetest.ClearState("k1"), machinetest.GetStateKeys(id()))
			default:
				steps = append(steps, machinetest.ClearAllState(), machinetest.GetState(id(), "k2"))
			}
		case inv.Target.Type.Keyed():
			steps = append(steps, machinetest.GetState(id(), "k1"))
		}
	}
	return append(steps, h.drawEnding(waits)...)
}

// mayCall keeps handlers from waiting for each other in a cycle, as handlers must: only
// external requests call what others may be waiting for too.
func mayCall(inv *machine.Invocation, name string, to machine.Target) bool {
	fresh := name[0] == 'n' && !to.Type.WritesState()
	return fresh || inv.Target.Type == target.Service && inv.Target.Handler == "greet" && inv.Source.Kind == machine.FromIngress
}

// drawEnding generates the end of the attempt, if it ends.
func (h *history) drawEnding(waits []uint32) []machine.Step {
	switch n := h.number("ending", 0, 9); {
	case n <= 2:
		return nil
	case n <= 5 && len(waits) > 0:
		s := machinetest.Suspend()
		from := h.number("await", 0, len(waits)-1)
		s.Await.Nested = []journal.Future{{
			Completions: waits[from:],
			Combinator:  journal.Combinator(h.number("combinator", 0, 4)),
		}}
		if h.full && h.chance(30) {
			s.Await.Nested[0].Names = []string{"go"}
			s.Await.Nested[0].Signals = []uint32{17}
		}
		return []machine.Step{s}
	case n == 6:
		return []machine.Step{{Kind: machine.StepFail, Failure: &machine.AttemptFailure{Code: 500, Message: "no"}}}
	case n == 8 && h.full && h.level >= feature.Level2:
		return []machine.Step{{Kind: machine.StepYield}}
	case n == 9 && h.full && h.level >= feature.Level4:
		message := strings.Repeat("x", h.number("message", 0, 5000))
		cause := uint64(h.number("cause", 0, 2*machine.MaxCauses))
		return []machine.Step{{Kind: machine.StepRetry, Failure: &machine.AttemptFailure{Code: 500, Message: message}, Attempts: 1, Cause: cause}}
	case n == 7 && h.full:
		return []machine.Step{{Kind: machine.StepPause, Failure: &machine.AttemptFailure{Code: 500, Message: "no"}}}
	}
	return []machine.Step{machinetest.Output(h.drawResult()), machinetest.End()}
}

func (h *history) drawResult() journal.Result {
	if h.chance(30) {
		return journal.Result{Failure: &journal.Failure{Code: 400, Message: "bad"}}
	}
	if h.chance(30) {
		return journal.Result{Value: largeResult}
	}
	return journal.Result{Value: []byte("v")}
}

var largeResult = bytes.Repeat([]byte("v"), 4<<10)

// drawDeliver delivers messages, often repeatedly, and acknowledges some.
func (h *history) drawDeliver(from, to int) {
	if from == to {
		return
	}
	sent, err := h.parts[from].state.LastSent(uint32(to))
	require.NoError(h, err)
	delivered, err := h.parts[to].state.LastDelivered(uint32(from))
	require.NoError(h, err)
	first := delivered + 1 - min(uint64(h.number("again", 0, 2)), delivered)
	c := &machine.Deliver{From: uint32(from), FirstSeq: first}
	for seq := first; seq <= sent; seq++ {
		msg := h.parts[from].state.Outgoing(uint32(to), seq)
		if msg == nil { // acknowledged already
			return
		}
		c.Messages = append(c.Messages, msg)
	}
	if len(c.Messages) > 0 {
		c.Messages = c.Messages[:h.number("messages", 1, len(c.Messages))]
	}
	want := machine.OK
	if len(c.Messages) == 0 {
		want = machine.Existing
	}
	require.Equal(h, want, h.apply(to, c).Code)
	if h.chance(50) {
		upto, err := h.parts[to].state.LastDelivered(uint32(from))
		require.NoError(h, err)
		h.apply(from, &machine.Acknowledge{To: uint32(to), Upto: upto})
	}
}
