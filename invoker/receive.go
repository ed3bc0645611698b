package invoker

import (
	"fmt"
	"strings"
	"time"

	"platform/internal/errcode"
	"platform/internal/limits"
	"platform/invoker/endpoint"
	"platform/invoker/protocol"
	"platform/partition/journal"
	"platform/partition/machine"
)

const (
	// refusalTimeout is how long to wait for the body of an error status; some endpoints
	// send it only after the request has ended.
	refusalTimeout = 2 * time.Second
	refusalBody    = 1 << 10
	// openVolume bounds the bytes of an attempt in transit to the log.
	openVolume = 2 << 20
)

// Response checks the status.
func (a *attempt) Response(h endpoint.Head) {
	a.s.iv.responded(a.opening)
	if !a.enter() {
		return
	}
	defer a.leave()
	t := a.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if !a.open() {
		return
	}
	a.touch()
	a.responded = true
	a.endSilence()
	if t.state == streaming && a.s.iv.slots.short.Load() {
		a.s.timers.wake(a.deadline()) // earlier than before the response
	}
	if server := first(h.Header["X-Restate-Server"]); server != "" {
		t.server = server
	}
	f := a.checkHead(&h)
	if f == nil {
		return
	}
	a.refusal = f
	t.move(refuse)
	a.s.timers.wake(a.deadline())
}

// Data decodes messages and proposes the commands in them.
func (a *attempt) Data(p []byte) {
	if !a.enter() {
		return
	}
	defer a.leave()
	if f := a.read(p); f != nil {
		a.fail(f)
		return
	}
	a.flush(false)
	a.throttle()
}

// read consumes bytes. A failure ends the attempt.
func (a *attempt) read(p []byte) *failure {
	t := a.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if !a.open() {
		return nil
	}
	a.touch()
	if t.state == rejected {
		if a.body = append(a.body, p[:min(len(p), refusalBody-len(a.body))]...); len(a.body) == refusalBody {
			return a.refused()
		}
		return nil
	}
	a.decoder.Feed(p)
	if !a.count() {
		return a.tooLarge()
	}
	for a.open() {
		m, ok, err := a.decoder.Next()
		if err != nil {
			return failureOf(err)
		}
		if !ok {
			break
		}
		if f := a.message(&m); f != nil {
			return f
		}
	}
	if t.a != a {
		return nil
	}
	a.count()
	if t.state.open() && a.idle() && a.s.iv.slots.short.Load() {
		a.s.timers.wake(a.deadline()) // which is now earlier than at the last check
	}
	return nil
}

// count updates the budget with the data that the attempt has received and that is not in
// the log; t.mu is held. It returns false if that is too much.
func (a *attempt) count() bool {
	holds := a.undelivered + a.decoder.Size() + a.unproposed + a.t.volume
	if holds == a.counted {
		return true
	}
	a.counted = holds
	return a.memory.received(holds)
}

// tooLarge returns the failure of an attempt that holds more than the limit.
func (a *attempt) tooLarge() *failure {
	return failureOf(errcode.New(errcode.RT0001,
		"the attempt exceeds its memory limit of %d bytes (worker.invoker.per-invocation-memory-limit)", a.s.iv.cfg.InvocationMemoryLimit))
}

// End is the last event of the stream.
func (a *attempt) End(err error) {
	if !a.enter() {
		return
	}
	defer a.leave()
	a.t.mu.Lock()
	open := a.open()
	f := a.refused()
	partial := a.decoder.Partial()
	a.t.mu.Unlock()
	switch {
	case !open:
		return
	case f != nil:
	case err != nil:
		f = broken(err)
	case partial:
		f = failureOf(errcode.New(errcode.RT0010, "the response ended in the middle of a message"))
	default:
		f = failureOf(errcode.New(errcode.RT0007, "the response ended without an end, a suspension or an error"))
	}
	a.fail(f)
}

// message handles one message; t.mu is held.
func (a *attempt) message(m *protocol.Message) *failure {
	if warn := a.s.iv.cfg.MessageSizeWarning; warn > 0 && len(m.Payload) >= warn {
		a.s.log.Warn("large message from endpoint", "invocation_id", a.t.id, "message", protocol.Name(m.Type), "bytes", len(m.Payload))
	}
	a.probeAnswered(m.Type)
	switch m.Type {
	case protocol.ProposeRunCompletion:
		return a.propose(m)
	case protocol.End:
		return a.ended()
	case protocol.Suspension:
		await, err := protocol.ParseSuspension(a.plan.version, m.Payload)
		if err == nil {
			err = protocol.CheckDepth(await, a.s.iv.cfg.MaxAwaitDepth)
		}
		if err != nil {
			return failureOf(err)
		}
		a.finish(machine.Step{Kind: machine.StepSuspend, Await: await})
		return nil
	case protocol.Error:
		e, err := protocol.ParseError(a.plan.version, m.Payload)
		if err != nil {
			return failureOf(err)
		}
		return failureFrom(&e)
	case protocol.AwaitingOn:
		if a.plan.version >= protocol.V7 {
			return a.awaits(m)
		}
	}
	if !m.Type.IsCommand() {
		return failureOf(errcode.New(errcode.RT0012, "unexpected message %s", protocol.Name(m.Type)))
	}
	return a.command(m)
}

// awaits records the reported await, for operators.
func (a *attempt) awaits(m *protocol.Message) *failure {
	await, err := protocol.ParseAwaitingOn(m.Payload)
	if err == nil {
		err = protocol.CheckDepth(await.On, a.s.iv.cfg.MaxAwaitDepth)
	}
	if err != nil {
		return failureOf(err)
	}
	a.awaiting, a.announces = &await, true
	return nil
}

func (a *attempt) propose(m *protocol.Message) *failure {
	completion, notification, err := protocol.ParseRunProposal(m.Payload)
	if err != nil {
		return failureOf(err)
	}
	if m.WantAck && a.plan.version >= protocol.V7 {
		if a.acks == nil {
			a.acks = map[uint32]struct{}{}
		}
		a.acks[completion] = struct{}{}
	}
	a.steps = append(a.steps, machine.Step{
		Kind: machine.StepRunCompletion, Type: journal.RunCompletion, Completion: completion, Payload: notification,
	})
	a.unproposed += len(notification)
	a.span.RunEnded(completion)
	a.runs--
	a.lingering = false
	return nil
}

func (a *attempt) ended() *failure {
	if !a.output {
		return failureOf(errcode.New(errcode.RT0012, "the handler ended without an output"))
	}
	a.finish(machine.Step{Kind: machine.StepEnd})
	return nil
}

// finish adds the step that ends the attempt, and half-closes immediately: endpoints wait
// for that before they end the response.
func (a *attempt) finish(last machine.Step) {
	a.steps = append(a.steps, last)
	a.lingering, a.last = false, last.Kind
	a.t.move(finish)
	if a.decoder.Partial() {
		a.s.log.Debug("endpoint sent data after it ended the attempt", "invocation_id", a.t.id, "code", errcode.RT0012)
	}
}

func (a *attempt) command(m *protocol.Message) *failure {
	step, c, err := a.s.iv.step(a.t.inv, a.commands, m, &a.used)
	if err == nil {
		err = a.changesState(m.Type, &c)
	}
	if !a.open() {
		return nil // it was aborted while the state was measured
	}
	if err != nil {
		f := failureOf(err)
		index := a.commands
		f.RelatedIndex, f.RelatedCommand = &index, m.Type
		return f
	}
	if len(a.steps) == 0 {
		a.lingering = true
	}
	a.lingering = a.lingering && passive(m.Type)
	a.steps = append(a.steps, step)
	a.unproposed += len(step.Payload)
	a.traceCommand(m)
	a.commands++
	switch m.Type {
	case journal.Run:
		a.runs++
	case journal.Output:
		a.output = true
	}
	return nil
}

// passive reports whether a command is only recorded, so that it may wait for the next one:
// if it is lost, the handler sends it again.
func passive(t journal.Type) bool {
	switch t {
	case journal.Run, journal.Output, journal.SetState, journal.ClearState, journal.ClearAllState,
		journal.GetEagerState, journal.GetEagerStateKeys:
		return true
	}
	return false
}

// flush proposes the accumulated steps, as one command or, if they are large, as several.
// Lingering ones are kept for a moment unless forced or large.
func (a *attempt) flush(force bool) {
	t := a.t
	t.sending.Lock()
	defer t.sending.Unlock()
	t.mu.Lock()
	if a.unstored {
		a.steps, a.unproposed = nil, 0
	}
	if t.a != a || len(a.steps) == 0 {
		t.mu.Unlock()
		return
	}
	if a.lingering && !force && a.unproposed < limits.ProgressBatch {
		t.mu.Unlock()
		a.s.timers.linger(a)
		return
	}
	p := &machine.Progress{ID: t.id, Attempt: t.number, Pin: a.plan.pin, Steps: a.steps, Errors: t.retry.report()}
	final, volume := t.state == finishing, a.unproposed
	a.state.proposed += len(a.steps)
	a.steps, a.unproposed, a.lingering = nil, 0, false
	if volume <= limits.ProgressBatch { // the usual case
		t.pending++
		t.volume += volume
		t.mu.Unlock()
		a.s.part.Propose(p, func(o machine.Outcome, err error) { t.proposed(a, p, volume, final, o, err) })
		return
	}
	parts := batches(p.Steps)
	t.pending += len(parts)
	t.volume += volume
	t.mu.Unlock()
	for i, steps := range parts {
		if i > 0 && t.dropped(a, parts[i:]) {
			return
		}
		part := &machine.Progress{ID: p.ID, Attempt: p.Attempt, Pin: p.Pin, Steps: steps, Errors: p.Errors}
		p.Errors = 0 // counted once
		volume, final := payloadSize(steps), final && i == len(parts)-1
		a.s.part.Propose(part, func(o machine.Outcome, err error) { t.proposed(a, part, volume, final, o, err) })
	}
}

// dropped reports whether a proposal of the attempt was rejected. Then the remaining parts of its
// progress, which were counted as pending, are not proposed.
func (t *task) dropped(a *attempt, parts [][]machine.Step) bool {
	t.mu.Lock()
	if t.a != a || !a.unstored {
		t.mu.Unlock()
		return false
	}
	t.pending -= len(parts)
	for _, steps := range parts {
		t.volume -= payloadSize(steps)
	}
	a.count()
	t.moved.Broadcast()
	conclude := t.state == failing && t.pending == 0
	t.mu.Unlock()
	if conclude {
		go t.s.guarded(func() { t.conclude(a) })
	}
	return true
}

// throttle blocks the stream while too much data of this attempt, or of all attempts, is in
// transit to the log.
func (a *attempt) throttle() {
	t := a.t
	t.mu.Lock()
	defer t.mu.Unlock()
	for a.open() && t.volume >= openVolume {
		a.held = true
		t.moved.Wait()
	}
	if a.open() {
		if turn := a.memory.read(); turn != nil {
			a.held = true
			t.mu.Unlock()
			<-turn // granted at the latest when the attempt ends
			t.mu.Lock()
		}
	}
	if a.held {
		a.held = false
		a.touch()
	}
}

// checkHead returns the failure of an unexpected response, or nil.
func (a *attempt) checkHead(h *endpoint.Head) *failure {
	code := errcode.RT0012
	switch h.Status {
	case 502, 504:
		code = errcode.RT0010
	case 429, 503:
		code = errcode.RT0023
	case 415:
		code = errcode.RT0015
	case 413:
		code = errcode.RT0019
	}
	if h.Status < 200 || h.Status > 299 {
		f := failureOf(errcode.New(code, "the endpoint responded with status %d", h.Status))
		if code == errcode.RT0023 {
			f.nextDelay = retryAfter(first(h.Header["Retry-After"]), time.Now())
		}
		return f
	}
	if got, want := first(h.Header["Content-Type"]), a.plan.version.ContentType(); got != want {
		return failureOf(errcode.New(code, "the endpoint responded with content type %q instead of %q", got, want))
	}
	return nil
}

// refused returns the failure of a response with an error status, with the part of its body
// that has arrived; t.mu is held.
func (a *attempt) refused() *failure {
	f := a.refusal
	if f == nil {
		return nil
	}
	a.refusal = nil
	if text := strings.TrimSpace(strings.ToValidUTF8(string(a.body), "�")); text != "" {
		f.Message = fmt.Sprintf("%s: %s", f.Message, text)
	}
	return f
}

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}
