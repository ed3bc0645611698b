package invoker

import (
	"errors"
	"time"

	"platform/internal/errcode"
	"platform/internal/tracing"
	"platform/invoker/endpoint"
	"platform/invoker/protocol"
	"platform/partition/attempts"
	"platform/partition/journal"
	"platform/partition/machine"
)

// attempt is one request to the endpoint. It is the receiver of its stream, whose events
// are delivered one at a time. Its fields are guarded by the task's mutex, except those
// that only the stream's events use.
type attempt struct {
	t       *task
	s       *Session
	stream  Stream
	memory  account
	opening *opening // until the endpoint responds
	room    *opening // after it was asked to suspend for others of its service

	// Used only by the stream's events.
	plan    *plan
	decoder protocol.Decoder

	reading             bool              // the journal is being read; notifications that arrive now may not be in it
	early               []*machine.Notify // arrived while reading
	next                uint32            // lower bound of the next notification's index
	commands            uint32            // in the journal or in transit to it
	output              bool              // one of them is an output
	runs                int               // runs that have started and have no result
	acks                map[uint32]struct{}
	used                completions
	awaiting            *journal.Await // as reported by the handler (protocol 7); nil: not reported, or partly arrived
	announces           bool           // it has reported an await (protocol 7)
	steps               []machine.Step // not proposed yet
	unproposed          int            // payload bytes in them
	unstored            bool           // a proposal was rejected: the journal must not have gaps, so no other follows
	state               stateSize
	counted             int  // received bytes that the budget has counted
	undelivered         int  // bytes of the response of a function that are held for the stream
	lingering           bool // steps may wait a moment for more
	failure             *failure
	refusal             *failure  // error status; the body may contain details
	body                []byte    // of the refusal
	requestedAt         time.Time // when the request was made
	responded           bool      // the response headers have arrived
	silent              bool      // it is overdue, see silence.go
	held                bool      // the server itself delays the endpoint
	activity            time.Time
	probe               *probe           // after it was asked to suspend while silent
	suspendPostponed    bool             // it is not asked to suspend since too many are
	span                *tracing.Attempt // nil: not traced
	last                machine.StepKind // the step that ended it, while finishing
	remainingInactivity time.Duration    // what was left of the inactivity timeout when it was asked to suspend
}

func (a *attempt) enter() bool { return a.s.enter() }
func (a *attempt) leave()      { a.s.gate.RUnlock() }

// Begin reads the journal and writes it to the stream.
func (a *attempt) Begin() *endpoint.Request {
	a.s.iv.processPauses.check() // may close the session of a lost leadership
	if !a.enter() {
		return nil
	}
	defer a.leave()
	t := a.t
	t.mu.Lock()
	if t.a != a {
		t.mu.Unlock()
		return nil
	}
	inv, input, pin := t.inv, t.input, t.pin
	need := max(len(input), t.size)
	t.mu.Unlock()
	a.decoder.Limit = a.s.iv.cfg.MessageSizeLimit
	if inv != nil {
		if err := a.decide(inv, pin); err != nil {
			a.fail(failureOf(err))
			return nil
		}
	}
	replay, err := a.take(inv, need)
	if planning, ok := errors.AsType[*planError](err); ok {
		a.fail(failureOf(planning.error))
		return nil
	}
	if err != nil {
		a.unreadable(err)
		return nil
	}
	if !a.replay(replay) {
		return nil
	}
	return a.plan.request(replay.Invocation, a.traceparent(replay.Invocation))
}

// decide makes the plan of the attempt.
func (a *attempt) decide(inv *machine.Invocation, pin machine.Pin) error {
	p, err := a.s.iv.plan(inv, pin)
	if err != nil {
		return err
	}
	a.plan = p
	if !p.bidirectional {
		a.s.iv.responded(a.opening) // the endpoint responds only at the end of the attempt
	}
	return nil
}

// planError means that an attempt cannot be planned, although its journal can be read.
type planError struct{ error }

// stateLimit returns how much state to read with a journal. An invocation that waited without its
// record is planned now that the record has been read.
func (a *attempt) stateLimit(inv *machine.Invocation) (int, error) {
	if a.plan == nil {
		a.t.mu.Lock()
		a.t.inv, a.t.pin = inv, inv.Pin
		a.t.mu.Unlock()
		if err := a.decide(inv, inv.Pin); err != nil {
			return 0, &planError{err}
		}
	}
	return a.plan.stateLimit, nil
}

// unreadable ends an attempt whose invocation could not be read.
func (a *attempt) unreadable(err error) {
	if errors.Is(err, attempts.ErrGone) {
		a.t.abandon()
		return
	}
	if _, known := errcode.Of(err); !known {
		err = errcode.New(errcode.RT0006, "read the journal: %w", err)
	}
	a.fail(failureOf(err))
}

// take reads the journal once there is memory for it.
func (a *attempt) take(inv *machine.Invocation, need int) (*attempts.Replay, error) {
	for {
		a.setReading(false)
		if turn := a.memory.begin(need); turn != nil {
			a.dropInput()
			<-turn // granted at the latest when the attempt ends
		}
		r, err := a.load(inv, max(need, unreservedLoad), a.setReading(true))
		if large, ok := errors.AsType[*attempts.TooLargeError](err); ok {
			need = large.Size
		} else if err != nil {
			return nil, err
		} else {
			need = r.Size()
		}
		if most := a.s.iv.memory.ceiling; most > 0 && need > most {
			return nil, errcode.New(errcode.RT0001,
				"the journal and the state, %d bytes, exceed the limit of an attempt, %d bytes (worker.invoker.per-invocation-memory-limit)", need, most)
		}
		if r == nil {
			a.memory.unload()
		} else if a.memory.loaded(need) {
			return r, nil
		}
	}
}

// unreservedLoad is how many bytes of a journal of unknown size are read before memory is
// reserved. If it has more, the attempt waits for memory first.
const unreservedLoad = 1 << 20

// dropInput drops a long input before the attempt waits for memory: it is read from the tables
// then.
func (a *attempt) dropInput() {
	a.t.mu.Lock()
	defer a.t.mu.Unlock()
	if len(a.t.input) > keptInput {
		a.t.input = nil
	}
}

// setReading starts or ends keeping the notifications that arrive: those that arrive before
// the journal is read are in it. It returns the input if the journal is known to contain
// nothing else.
func (a *attempt) setReading(reading bool) (input []byte) {
	a.t.mu.Lock()
	defer a.t.mu.Unlock()
	a.reading, a.early = reading, nil
	return a.t.input
}

func (a *attempt) load(inv *machine.Invocation, most int, input []byte) (*attempts.Replay, error) {
	if input == nil {
		a.s.iv.loads <- struct{}{}
		defer func() { <-a.s.iv.loads }()
		return a.s.part.Load(a.t.id, a.t.number, most, a.stateLimit)
	}
	limit := a.plan.stateLimit
	if limit > 0 {
		a.s.iv.loads <- struct{}{}
		defer func() { <-a.s.iv.loads }()
	}
	r := &attempts.Replay{Invocation: inv, Entries: []journal.Entry{{Type: journal.Input, Payload: input}}, Partial: true}
	if limit == 0 {
		return r, nil
	}
	var err error
	r.State, r.Partial, err = a.s.part.State(inv.Target.Object(), limit)
	return r, err
}

// keptInput is the size up to which a task keeps its input for further attempts; a longer
// one is read from the tables again.
const keptInput = 16 << 10

// replay writes the start and all entries, and allows notifications to follow. It returns
// false if the attempt was abandoned meanwhile.
func (a *attempt) replay(r *attempts.Replay) bool {
	t := a.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.a != a || t.state != loading {
		return false
	}
	t.inv = r.Invocation
	t.deployed = a.plan.pin
	t.size = r.Size()
	a.state.partial, a.state.known, a.state.bound = r.Partial, !r.Partial, r.StateSize()
	for i := range r.Entries {
		e := &r.Entries[i]
		if e.Type.IsCommand() {
			a.commands++
			a.use(e)
		}
		switch e.Type {
		case journal.Run:
			a.runs++
		case journal.RunCompletion:
			a.runs--
		case journal.Output:
			a.output = true
		}
	}
	a.startSpan(r.Invocation)
	a.reportStart()
	a.stream.Write(a.plan.replay(r, &t.retry)...)
	t.move(replayed)
	a.next = uint32(len(r.Entries))
	for _, n := range a.early {
		a.notify(n)
	}
	a.early = nil
	if len(t.input) > keptInput {
		t.input = nil
	}
	a.touch()
	a.requestedAt = a.activity
	a.s.timers.opened(a)
	if !a.plan.bidirectional {
		t.move(suspend)
	}
	return true
}

// use records the completion IDs of a command in the journal.
func (a *attempt) use(e *journal.Entry) {
	if e.Type == journal.Input {
		return
	}
	c, err := protocol.ParseCommand(e.Type, e.Payload)
	if err != nil {
		return // stored by a server that could parse it
	}
	for _, id := range c.Completions {
		a.used.add(id)
	}
}

// notify writes a notification, once and in order; t.mu is held.
func (a *attempt) notify(n *machine.Notify) {
	if a.t.state == loading {
		if a.reading {
			a.early = append(a.early, n)
		}
		return
	}
	if n.Index < a.next || a.t.state != streaming {
		return // already replayed, or left to the next attempt's replay
	}
	if !a.memory.send(len(n.Entry.Payload)) {
		a.t.move(suspend) // the endpoint does not read; the next attempt replays the notification
		return
	}
	a.next = n.Index + 1
	a.touch()
	a.arrived(n)
	if n.Entry.Type == journal.RunCompletion && len(a.acks) > 0 && a.acknowledge(n.Entry.Payload) {
		return
	}
	b := make([]byte, 0, protocol.HeaderLen+min(len(n.Entry.Payload), smallPayload))
	a.stream.Write(appendEntry(b, nil, a.plan.wire(&n.Entry))...)
}

// arrived clears the reported await once a part of it has arrived.
func (a *attempt) arrived(n *machine.Notify) {
	if a.awaiting == nil {
		return
	}
	if content, err := journal.ParseNotification(n.Entry.Payload); err == nil && a.awaiting.On.Has(content.ID) {
		a.awaiting = nil
	}
}

// acknowledge sends an ack for a proposal of this attempt that requested only that.
func (a *attempt) acknowledge(payload []byte) bool {
	n, err := journal.ParseNotification(payload)
	if err != nil {
		return false
	}
	if _, proposed := a.acks[n.ID.Index]; !proposed {
		return false
	}
	delete(a.acks, n.ID.Index)
	a.stream.Write(protocol.AppendRunAck(nil, n.ID.Index))
	return true
}

// Sent implements endpoint.Sender.
func (a *attempt) Sent(n int) { a.memory.sent(n) }

// Hold implements endpoint.Memory: the response of a function waits for memory as a whole,
// since the part of a response that has arrived cannot be stored.
func (a *attempt) Hold(n int) error {
	if !a.enter() {
		return errEnded
	}
	defer a.leave()
	a.t.mu.Lock()
	if !a.open() {
		a.t.mu.Unlock()
		return errEnded
	}
	turn, ok := a.memory.hold(n)
	if !ok {
		f := a.tooLarge()
		a.t.mu.Unlock()
		a.fail(f)
		return errEnded
	}
	defer a.t.mu.Unlock()
	if a.touch(); turn != nil {
		a.held = true
		a.t.mu.Unlock()
		<-turn // granted at the latest when the attempt ends
		a.t.mu.Lock()
		a.held = false
		a.touch()
	}
	a.undelivered += n
	a.counted += n
	if !a.open() {
		return errEnded
	}
	return nil
}

// Release implements endpoint.Memory.
func (a *attempt) Release(n int) {
	a.t.mu.Lock()
	defer a.t.mu.Unlock()
	a.undelivered -= n
	a.count()
}

// errEnded is returned to the stream of an attempt that has ended.
var errEnded = errors.New("the attempt has ended")

// open reports whether data from the endpoint is still relevant; t.mu is held.
func (a *attempt) open() bool { return a.t.a == a && a.t.state.open() }

func (a *attempt) touch() { a.activity = time.Now() }

// deadline returns when the attempt has been silent for too long; t.mu is held.
func (a *attempt) deadline() time.Time {
	switch {
	case a.held:
		return time.Now().Add(a.plan.options.InactivityTimeout)
	case a.t.state == rejected:
		return a.activity.Add(refusalTimeout)
	case a.t.state == halfClosed:
		rest := a.remainingInactivity
		return a.activity.Add(rest + min(a.plan.options.AbortTimeout, maxHold-rest)) // the sum may overflow
	}
	hold, computing := a.maxSilence()
	if a.suspendPostponed {
		hold = computing
	}
	return a.activity.Add(min(a.plan.options.InactivityTimeout, hold))
}

// maxSilence returns how long the attempt may keep its slot while silent, and how long if it
// seems to compute.
func (a *attempt) maxSilence() (hold, computing time.Duration) {
	if a.runs > 0 || a.t.slot == nil {
		return maxHold, maxHold
	}
	own, over := a.s.iv.slots.pressure(a.t.slot.service)
	if !own && !over {
		return maxHold, maxHold
	}
	computing = maxHold
	if over {
		computing = silentTimeout
	}
	if a.idle() || a.responded {
		return idleTimeout, computing
	}
	return probeTimeout, computing
}

// idle reports whether the handler seems to wait for an external event: it executes no run,
// and has reported an await or, if it does not report awaits, has sent a command.
func (a *attempt) idle() bool {
	return a.runs <= 0 && (a.awaiting != nil || !a.announces && a.commands > 1)
}

// expire handles a deadline that has passed.
func (a *attempt) expire() {
	t := a.t
	t.mu.Lock()
	switch {
	case !a.open() || time.Now().Before(a.deadline()),
		t.state == streaming && !a.suspends(time.Now()),
		t.move(suspend):
		t.mu.Unlock()
		return
	}
	f := a.refused()
	if f == nil {
		f = a.aborted()
	}
	t.mu.Unlock()
	a.fail(f)
}
