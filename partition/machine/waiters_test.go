package machine_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/feature"
	"platform/internal/ids"
	"platform/internal/target"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/partition/machine/machinetest"
)

// measured are tables that count the bytes that an entry adds to journals and the outbox.
type measured struct {
	*machinetest.State
	bytes int
}

func (m *measured) AppendEntry(id ids.Invocation, index uint32, e journal.Entry) {
	m.bytes += len(e.Payload)
	m.State.AppendEntry(id, index, e)
}

func (m *measured) PutOutgoing(to uint32, seq uint64, msg machine.Message) {
	if c, ok := msg.(*machine.Complete); ok {
		m.bytes += len(c.Result.Value)
		if c.Result.Failure != nil {
			for _, pair := range c.Result.Failure.Metadata {
				m.bytes += len(pair.Value)
			}
		}
	}
	m.State.PutOutgoing(to, seq, msg)
}

// backlog is one of two partitions, with many waiters for the same result.
type backlog struct {
	t      *testing.T
	m      *machine.Machine
	st     *measured
	level  feature.Level
	now    int64
	most   int // the most bytes that one entry added
	timers map[machine.Timer]bool
	sent   []*machine.Complete
}

func newBacklog(t *testing.T, level feature.Level) *backlog {
	c := &backlog{
		t: t, m: machine.New(machine.Shards{Self: 0, Count: 2}), st: &measured{State: machinetest.NewStrict()}, level: level, now: 1000,
		timers: map[machine.Timer]bool{},
	}
	c.entry(&machine.Lead{Epoch: 1, Node: "n"})
	return c
}

// entry applies one log entry and checks the invariants and how much it wrote.
func (c *backlog) entry(commands ...machine.Command) {
	c.t.Helper()
	c.now++
	c.st.bytes = 0
	var effects []machine.Effect
	for i, command := range commands {
		var outcome machine.Outcome
		var err error
		outcome, effects, err = c.m.Apply(c.st, machine.Header{Epoch: 1, Time: c.now, Level: c.level, Command: i}, command, effects)
		require.NoError(c.t, err)
		require.Contains(c.t, []machine.Code{machine.OK, machine.Existing}, outcome.Code, "%T", command)
	}
	c.most = max(c.most, c.st.bytes)
	for _, e := range effects {
		switch e := e.(type) {
		case *machine.SetTimer:
			c.timers[e.Timer] = true
		case *machine.Send:
			if done, ok := e.Message.(*machine.Complete); ok {
				c.sent = append(c.sent, done)
			}
		}
	}
	require.Empty(c.t, c.st.Broken(machinetest.Names{}))
}

// settle fires the due timers, as a leader does, and returns the number of entries.
func (c *backlog) settle() (entries int) {
	for ; ; entries++ {
		var due []machine.Timer
		for t := range c.timers {
			if t.Kind == machine.TimerAnswer || t.Kind == machine.TimerPromise {
				due = append(due, t)
				delete(c.timers, t)
			}
		}
		if len(due) == 0 {
			return entries
		}
		c.entry(&machine.FireTimers{Timers: due})
	}
}

func (c *backlog) invoke(id ids.Invocation, target machine.Target) {
	c.entry(&machine.Invoke{ID: id, Target: target, Input: journal.NewInput(nil, nil)})
}

func (c *backlog) progress(id ids.Invocation, steps ...machine.Step) *machine.Progress {
	inv, err := c.st.Invocation(id)
	require.NoError(c.t, err)
	return &machine.Progress{ID: id, Attempt: inv.Attempt, Steps: steps}
}

// answered counts the results in the journals of this partition's callers.
func (c *backlog) answered(callers []ids.Invocation, completion uint32) (n int) {
	for _, id := range callers {
		how, err := c.st.Notified(id, journal.Completion(completion))
		require.NoError(c.t, err)
		if how != journal.Pending {
			n++
		}
	}
	return n
}

var plain = machine.Target{Service: "S", Handler: "h"}

const (
	mebi      = 1 << 20
	entryMost = 10 * mebi // two byte budgets and the command itself
)

func large() journal.Result { return journal.Result{Value: make([]byte, mebi)} }

// The callers belong to two partitions.
func TestResultIsDeliveredToManyWaitersInBatches(t *testing.T) {
	const count = 60
	for _, level := range []feature.Level{feature.Level1, feature.Level2} {
		c := newBacklog(t, level)
		callee := ids.NewInvocation(1, [16]byte{1})
		c.invoke(callee, plain)
		var callers []ids.Invocation
		var attach []machine.Message
		for n := range count {
			id := caller(0, n)
			callers = append(callers, id)
			c.invoke(id, plain)
			c.entry(c.progress(id, machinetest.Attach(1, callee)))
			sink := machine.Sink{Caller: caller(1, n), Completion: 1, Type: journal.AttachInvocationCompletion}
			attach = append(attach, &machine.Attach{Target: callee, Sink: sink})
		}
		c.entry(&machine.Deliver{From: 1, FirstSeq: 1, Messages: attach})
		c.entry(c.progress(callee, machinetest.Output(large()), machinetest.End()))
		if level < feature.Level2 {
			require.Greater(t, c.most, 2*count*mebi, "all results in one entry, as older replicas write it")
			require.Zero(t, c.settle())
		} else {
			require.Positive(t, c.settle())
			require.Less(t, c.most, entryMost)
		}
		require.Equal(t, count, c.answered(callers, 1))
		require.Len(t, c.sent, count)
		seen := map[ids.Invocation]bool{}
		for _, done := range c.sent {
			require.Len(t, done.Result.Value, mebi)
			require.False(t, seen[done.Sink.Caller], "answered once")
			seen[done.Sink.Caller] = true
		}
		require.Empty(t, c.st.Faults())
	}
}

// The metadata of a failure can be as large as a value.
func TestFailureWithLargeMetadataIsDeliveredInBatches(t *testing.T) {
	const count = 60
	for _, level := range []feature.Level{feature.Level3, feature.Level4} {
		c := newBacklog(t, level)
		callee := ids.NewInvocation(1, [16]byte{1})
		c.invoke(callee, plain)
		var attach []machine.Message
		for n := range count {
			sink := machine.Sink{Caller: caller(1, n), Completion: 1, Type: journal.AttachInvocationCompletion}
			attach = append(attach, &machine.Attach{Target: callee, Sink: sink})
		}
		c.entry(&machine.Deliver{From: 1, FirstSeq: 1, Messages: attach})
		failure := &journal.Failure{Code: 500, Message: "no", Metadata: []journal.Metadata{{Key: "k", Value: strings.Repeat("v", mebi)}}}
		c.entry(c.progress(callee, machinetest.Output(journal.Result{Failure: failure}), machinetest.End()))
		if level < feature.Level4 {
			require.Greater(t, c.most, count*mebi, "all results in one entry, as older replicas write it")
		} else {
			require.Positive(t, c.settle())
			require.Less(t, c.most, entryMost)
		}
		require.Len(t, c.sent, count)
	}
}

// Attaching to a completed invocation is bounded as well.
func TestResponsesToManyAttachesAreBatched(t *testing.T) {
	c := newBacklog(t, feature.Level2)
	callee := ids.NewInvocation(1, [16]byte{1})
	c.invoke(callee, plain)
	c.entry(c.progress(callee, machinetest.Output(large()), machinetest.End()))
	var commands []machine.Command
	for n := range 100 {
		sink := machine.Sink{Caller: caller(1, n), Completion: 1, Type: journal.GetInvocationOutputCompletion}
		commands = append(commands, &machine.Deliver{From: 1, FirstSeq: uint64(n) + 1, Messages: []machine.Message{&machine.Attach{Target: callee, Sink: sink}}})
	}
	c.entry(commands...)
	require.Less(t, len(c.sent), 100)
	require.Positive(t, c.settle())
	require.Less(t, c.most, entryMost)
	require.Len(t, c.sent, 100)
}

// One promise with many waiters, and one handler that reads it many times.
func TestPromiseIsDeliveredToManyWaitersInBatches(t *testing.T) {
	const count, key = 60, "p"
	c := newBacklog(t, feature.Level2)
	run := machine.Target{Service: "W", Key: "k", Handler: "run", Type: target.WorkflowRun}
	shared := machine.Target{Service: "W", Key: "k", Handler: "ask", Type: target.WorkflowShared}
	flow := ids.NewInvocation(1, [16]byte{1})
	c.invoke(flow, run)
	var callers []ids.Invocation
	for n := range count {
		id := caller(0, n)
		callers = append(callers, id)
		c.invoke(id, shared)
		c.entry(c.progress(id, machinetest.GetPromise(1, key)))
	}
	c.entry(c.progress(flow, machinetest.CompletePromise(1, key, large())))
	require.Positive(t, c.settle())
	require.Equal(t, count, c.answered(callers, 1))

	var steps []machine.Step
	for n := range uint32(count) {
		if n%2 == 0 {
			steps = append(steps, machinetest.GetPromise(10+n, key))
		} else {
			steps = append(steps, machinetest.PeekPromise(10+n, key))
		}
	}
	c.entry(c.progress(callers[0], steps...))
	require.Positive(t, c.settle())
	for n := range uint32(count) {
		require.Equal(t, 1, c.answered(callers[:1], 10+n))
	}
	require.Less(t, c.most, entryMost)
}

func TestPurgeWaitsForPendingResponses(t *testing.T) {
	c := newBacklog(t, feature.Level2)
	callee := ids.NewInvocation(1, [16]byte{1})
	c.invoke(callee, plain)
	var attach []machine.Message
	for n := range 20 {
		attach = append(attach, &machine.Attach{Target: callee, Sink: machine.Sink{Caller: caller(1, n), Completion: 1, Type: journal.AttachInvocationCompletion}})
	}
	c.entry(&machine.Deliver{From: 1, FirstSeq: 1, Messages: attach})
	c.entry(c.progress(callee, machinetest.Output(large()), machinetest.End()))
	c.entry(&machine.Purge{Target: callee})
	inv, err := c.st.Invocation(callee)
	require.NoError(t, err)
	require.NotNil(t, inv)
	c.settle()
	require.Len(t, c.sent, 20)
	c.now = inv.ExpiresAt
	c.entry(&machine.FireTimers{Timers: []machine.Timer{{At: inv.ExpiresAt, Kind: machine.TimerPurge, ID: callee}}})
	inv, err = c.st.Invocation(callee)
	require.NoError(t, err)
	require.Nil(t, inv)
}

// A request that would reuse an expired ID returns the earlier invocation while that has
// unanswered waiters: a new record would drop them.
func TestReuseOfAnIDWaitsForPendingResponses(t *testing.T) {
	c := newBacklog(t, feature.Level2)
	key, callee := "once", ids.NewInvocation(1, [16]byte{1})
	again := func(request uint64) *machine.Invoke {
		return &machine.Invoke{ID: callee, Request: request, Target: plain, IdempotencyKey: &key, Input: journal.NewInput(nil, nil)}
	}
	c.entry(again(1))
	var attach []machine.Message
	for n := range 20 {
		attach = append(attach, &machine.Attach{Target: callee, Sink: machine.Sink{Caller: caller(1, n), Completion: 1, Type: journal.AttachInvocationCompletion}})
	}
	c.entry(&machine.Deliver{From: 1, FirstSeq: 1, Messages: attach})
	c.entry(c.progress(callee, machinetest.Output(large()), machinetest.End()))
	require.Less(t, len(c.sent), 20)
	c.entry(again(2))
	c.settle()
	require.Len(t, c.sent, 20)
	require.Empty(t, c.st.Faults())

	c.entry(again(3))
	inv, err := c.st.Invocation(callee)
	require.NoError(t, err)
	require.Equal(t, machine.Invoked, inv.Status, "the ID is reused after all answers")
}

// Thousands of delayed invocations that start together do not load all their inputs.
func TestSimultaneousStartsLoadABoundedAmountOfInput(t *testing.T) {
	c := newBacklog(t, feature.Level2)
	var timers []machine.Timer
	for n := range 20 {
		id := caller(0, n)
		c.entry(&machine.Invoke{ID: id, Target: plain, Input: make([]byte, mebi), StartAt: 5000})
		timers = append(timers, machine.Timer{At: 5000, Kind: machine.TimerStart, ID: id})
	}
	_, effects, err := c.m.Apply(c.st, machine.Header{Epoch: 1, Time: 5000}, &machine.FireTimers{Timers: timers}, nil)
	require.NoError(t, err)
	loaded, runs := 0, 0
	for _, e := range effects {
		if run, ok := e.(*machine.Run); ok {
			runs++
			loaded += len(run.Input)
		}
	}
	require.Equal(t, 20, runs)
	require.Less(t, loaded, 6*mebi)
}
