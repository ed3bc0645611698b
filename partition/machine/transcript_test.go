package machine_test

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"platform/internal/feature"
	"platform/internal/ids"
	"platform/internal/target"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/partition/machine/machinetest"
)

// Each transcript is a list of commands and everything they cause. To regenerate them: go
// test ./partition/machine -run TestTranscripts -rewrite.
//
// Invocations are named a, b, c …; "b@1" is in partition 1.
func TestTranscripts(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			w := newWorld(1)
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
				return w.do(t, d)
			})
		})
	}
}

// world is a set of partitions and the clock of their proposers.
type world struct {
	names machinetest.Names
	ids   map[string]ids.Invocation
	parts []*part
	now   int64
	level feature.Level
}

type part struct {
	machine *machine.Machine
	state   *machinetest.State
	epoch   uint64
}

func newWorld(partitions uint32) *world {
	w := &world{names: machinetest.Names{}, ids: map[string]ids.Invocation{}, now: 1000}
	for self := range partitions {
		p := &part{machine.New(machine.Shards{Self: self, Count: partitions}), machinetest.NewStrict(), 1}
		p.machine.Tighten()
		*p.state.Meta() = machine.Meta{Epoch: 1, Clock: w.now}
		w.parts = append(w.parts, p)
	}
	return w
}

// id returns the ID for a name; partition keys follow the order of first use.
func (w *world) id(name string) ids.Invocation {
	id, known := w.ids[name]
	if !known {
		_, suffix, _ := strings.Cut(name, "@")
		owner, _ := strconv.ParseUint(suffix, 10, 32)
		first, _ := machine.KeyRange(uint32(owner), uint32(len(w.parts)))
		n := len(w.ids) + 1
		id = ids.NewInvocation(first+uint64(n), [16]byte{15: byte(n)})
		w.ids[name], w.names[id] = id, name
	}
	return id
}

func (w *world) owner(id ids.Invocation) int {
	return int(machine.PartitionOf(id.PartitionKey(), uint32(len(w.parts))))
}

// do carries out one line of a transcript. Beside the commands of the machine:
//
//	partitions 2    start again with two partitions
//	level 2         the feature level of log entries from here on; 1 at first
//	time 2000       what the proposers' clocks say from here on
//	restart         reload the tables
//	remove a        what removing an inboxed invocation does to the queue
//	dump            show everything
//	update …        change the state of an object, a key and value a line
func (w *world) do(t *testing.T, d *datadriven.TestData) string {
	a := arguments{t, d}
	if at := a.number("at", -1); at >= 0 {
		w.now = at
	}
	switch d.Cmd {
	case "partitions":
		*w = *newWorld(uint32(a.first()))
		return ""
	case "level":
		w.level = feature.Level(a.first())
		return ""
	case "time":
		w.now = a.first()
		return ""
	case "restart":
		for _, p := range w.parts {
			p.state = p.state.Reload()
		}
		return ""
	case "dump":
		var lines []string
		for _, p := range w.parts {
			for _, row := range p.state.Dump(w.names) {
				lines = append(lines, row.String())
			}
		}
		return joinLines(lines)
	case "remove":
		return w.remove(t, d.CmdArgs[0].Key)
	}
	p, c := w.command(a)
	return w.apply(t, p, machine.Header{Level: w.level, Epoch: uint64(a.number("epoch", int64(w.parts[p].epoch))), Time: w.now}, c)
}

// command parses a command of the machine, and the partition that it is for.
func (w *world) command(a arguments) (int, machine.Command) {
	switch a.d.Cmd {
	case "lead":
		p := int(a.number("p", 0))
		c := &machine.Lead{Epoch: uint64(a.number("to", 1)), Node: "n1", Recovered: a.number("recovered", 0) > 0}
		if c.Epoch > w.parts[p].epoch {
			w.parts[p].epoch = c.Epoch
		}
		return p, c
	case "rules":
		return int(a.number("p", 0)), w.rules(a)
	case "pause-queue", "resume-queue":
		return int(a.number("p", 0)), w.pauseQueue(a)
	case "invoke":
		c := w.invoke(a)
		return w.owner(c.ID), c
	case "progress":
		c := w.progress(a)
		return w.owner(c.ID), c
	case "fire":
		return int(a.number("p", 0)), w.fire(a)
	case "deliver":
		return int(a.number("to", 0)), w.deliver(a)
	case "ingest":
		return int(a.number("p", 0)), w.ingest(a)
	case "position":
		return int(a.number("p", 0)), w.position(a)
	case "set-aside":
		return int(a.number("p", 0)), w.setAside(a)
	case "drop":
		id := machine.DeadLetterID{Topic: "orders", Offset: a.number("offset", 0)}
		return int(a.number("p", 0)), &machine.DropDeadLetters{Subscription: "sub", Letters: []machine.DeadLetterID{id}}
	case "forget":
		return int(a.number("p", 0)), &machine.ForgetStreams{Subscription: a.text("subscription", "sub"), Before: uint64(a.number("before", 0)), Positions: a.number("positions", 0) > 0}
	case "deliver-none": // deliver-none from=0 to=1 first=3
		return int(a.number("to", 0)), &machine.Deliver{From: uint32(a.number("from", 0)), FirstSeq: uint64(a.number("first", 0))}
	case "acknowledge":
		return int(a.number("p", 0)), &machine.Acknowledge{To: uint32(a.number("to", 0)), Upto: uint64(a.number("upto", 0))}
	}
	c := w.operator(a)
	return w.owner(w.id(a.text("id", ""))), c
}

func (w *world) invoke(a arguments) *machine.Invoke {
	c := &machine.Invoke{
		ID:        w.id(a.text("id", "")),
		Target:    parseTarget(a.text("target", "Greeter/greet"), a.text("type", "service")),
		Input:     journal.NewInput(nil, []byte(a.text("input", ""))),
		StartAt:   a.number("start", 0),
		Retention: retention(a.text("retain", "")),
		LimitKey:  a.text("limit-key", ""),
		Priority:  uint8(a.number("priority", 0)),
	}
	if scope := a.text("scope", ""); scope != "" {
		c.Target.Scope = scope
	}
	if key := a.text("idempotency-key", ""); key != "" {
		c.IdempotencyKey = &key
	}
	if sink := a.text("sink", ""); sink != "" {
		caller, completion, _ := strings.Cut(sink, ":")
		c.Sink = &machine.Sink{Caller: w.id(caller), Life: w.life(caller), Completion: uint32(number(a, completion)), Type: journal.CallCompletion}
	}
	return c
}

func (w *world) stream(a arguments) machine.Stream {
	return machine.Stream{
		Subscription: "sub", Incarnation: uint64(a.number("incarnation", 1)), Topic: "orders", TopicID: [16]byte{byte(a.number("topic-id", 1))},
	}
}

// ingest parses records as words: offset, ID, target, type.
func (w *world) ingest(a arguments) *machine.Ingest {
	c := &machine.Ingest{Stream: w.stream(a), Generation: uint64(a.number("generation", 0)), Prev: a.number("prev", machine.NoOffset)}
	for _, line := range a.lines() {
		rec := machine.IngestRecord{Offset: number(a, line[0]), Invoke: machine.Invoke{
			ID: w.id(line[1]), Target: parseTarget(line[2], line[3]), Input: journal.NewInput(nil, nil),
			Source: machine.Source{Kind: machine.FromSubscription, Subscription: "sub"}, LimitKey: a.text("limit-key", ""),
		}}
		rec.Invoke.Target.Scope = a.text("scope", "")
		c.Records = append(c.Records, rec)
	}
	return c
}

func (w *world) position(a arguments) *machine.PutPosition {
	c := &machine.PutPosition{Position: machine.StreamPosition{Stream: w.stream(a), Next: a.number("next", 0), LeaderEpoch: -1}}
	if reason := a.text("blocked", ""); reason != "" {
		c.Position.Blocked = &machine.BlockedRecord{Offset: c.Position.Next, Reason: reason}
	}
	return c
}

func (w *world) setAside(a arguments) *machine.SetAside {
	s := w.stream(a)
	offset := a.number("offset", 0)
	return &machine.SetAside{
		Position: machine.StreamPosition{Stream: s, Next: offset + 1, LeaderEpoch: -1, DeadLettered: 1},
		Letter:   machine.DeadLetter{Stream: s, Offset: offset, Value: []byte(a.text("value", "v")), NoKey: true, Reason: "key_missing"},
		Most:     machine.DeadLetters{Records: 2, Bytes: uint64(a.number("bytes", 10_000))},
	}
}

// life returns the caller's Life, as its calls contain it.
func (w *world) life(name string) uint64 {
	id := w.id(name)
	if inv, err := w.parts[w.owner(id)].state.Invocation(id); err == nil && inv != nil {
		return inv.Life
	}
	return 0
}

func (w *world) fire(a arguments) *machine.FireTimers {
	c := &machine.FireTimers{}
	for _, line := range a.lines() { // a timer as words: sleep a 2 500
		t := machine.Timer{Kind: map[string]machine.TimerKind{
			"sleep": machine.TimerSleep, "start": machine.TimerStart, "purge": machine.TimerPurge, "purge-journal": machine.TimerPurgeJournal, "kill": machine.TimerKill, "update": machine.TimerUpdate,
			"queue": machine.TimerQueue,
		}[line[0]], ID: w.id(line[1]), Completion: uint32(number(a, line[2])), At: number(a, line[3])}
		c.Timers = append(c.Timers, t)
	}
	if c.Timers == nil { // all due timers
		for _, t := range w.parts[a.number("p", 0)].state.Timers() {
			if t.At <= w.now {
				c.Timers = append(c.Timers, t)
			}
		}
	}
	return c
}

// deliver reads messages from the sender's outbox.
func (w *world) deliver(a arguments) *machine.Deliver {
	from, to := uint32(a.number("from", 0)), uint32(a.number("to", 0))
	c := &machine.Deliver{From: from, FirstSeq: uint64(a.number("first", 1))}
	for seq := c.FirstSeq; ; seq++ {
		msg := w.parts[from].state.Outgoing(to, seq)
		if msg == nil || int64(len(c.Messages)) == a.number("count", -1) {
			return c
		}
		c.Messages = append(c.Messages, msg)
	}
}

// remove changes the tables as the removal of an inboxed invocation does.
func (w *world) remove(t *testing.T, name string) string {
	id := w.id(name)
	st := w.parts[w.owner(id)].state
	inv, err := st.Invocation(id)
	require.NoError(t, err)
	st.DeleteWaiting(inv.Target.Object(), inv.QueueSeq)
	st.DeleteJournal(id, inv.Length)
	st.DeleteInvocation(id)
	return ""
}

// apply formats the outcome, the effects, and the changed rows.
func (w *world) apply(t *testing.T, to int, h machine.Header, c machine.Command) string {
	p := w.parts[to]
	before := p.state.Dump(w.names)
	outcome, effects, err := p.machine.Apply(p.state, h, c, nil)
	if err != nil {
		return "error: " + err.Error()
	}
	lines := []string{machinetest.Outcome(outcome)}
	for _, e := range effects {
		lines = append(lines, "effect: "+w.names.Effect(e))
		if run, ok := e.(*machine.Run); ok {
			*run.Invocation = machine.Invocation{} // the receiver owns it
		}
	}
	for _, change := range machinetest.Changes(before, p.state.Dump(w.names)) {
		lines = append(lines, "state:  "+change)
	}
	require.Empty(t, p.state.Faults())
	require.Empty(t, p.state.Broken(w.names))
	return joinLines(lines)
}

func joinLines(lines []string) string { return strings.Join(lines, "\n") + "\n" }

// parseTarget parses "service/handler" or "service/key/handler", optionally preceded by
// "scope:".
func parseTarget(name, kind string) machine.Target {
	scope, rest, scoped := strings.Cut(name, ":")
	if !scoped {
		scope, rest = "", name
	}
	parts := strings.Split(rest, "/")
	t := machine.Target{Scope: scope, Service: parts[0], Handler: parts[len(parts)-1], Type: map[string]target.Type{
		"service": target.Service, "object": target.ObjectExclusive, "shared": target.ObjectShared,
		"workflow": target.WorkflowRun, "workflow-shared": target.WorkflowShared, "update": target.StateUpdate,
	}[kind]}
	if len(parts) == 3 {
		t.Key = parts[1]
	}
	return t
}

// retention parses "completion/journal", in milliseconds.
func retention(s string) (r machine.Retention) {
	if s != "" {
		if _, err := fmt.Sscanf(s, "%d/%d", &r.Completion, &r.Journal); err != nil {
			panic(err)
		}
	}
	return r
}

// arguments parses the arguments of a transcript's command.
type arguments struct {
	t *testing.T
	d *datadriven.TestData
}

func (a arguments) text(key, otherwise string) string {
	for _, arg := range a.d.CmdArgs {
		if arg.Key == key && len(arg.Vals) > 0 {
			return arg.Vals[0]
		}
	}
	return otherwise
}

func (a arguments) number(key string, otherwise int64) int64 {
	if s := a.text(key, ""); s != "" {
		return number(a, s)
	}
	return otherwise
}

func (a arguments) first() int64 { return number(a, a.d.CmdArgs[0].Key) }

// lines returns the words of the command's input lines.
func (a arguments) lines() (lines [][]string) {
	for line := range strings.Lines(a.d.Input) {
		if words := strings.Fields(line); len(words) > 0 {
			lines = append(lines, words)
		}
	}
	return lines
}

func number(a arguments, s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		a.d.Fatalf(a.t, "%v", err)
	}
	return n
}
