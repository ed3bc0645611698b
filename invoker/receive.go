package invoker

import (
	"platform/internal/errcode"
	"platform/invoker/endpoint"
	"platform/invoker/protocol"
	"platform/partition/journal"
	"platform/partition/machine"
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
	if !a.openLocked() {
		return
	}
	a.touchLocked()
	a.activity.responded = true
	a.endSilenceLocked()
	if t.state == streaming && a.s.iv.slots.short.Load() {
		a.s.timers.wake(a.deadlineLocked()) // earlier than before the response
	}
	if server := first(h.Header["X-Restate-Server"]); server != "" {
		t.server = server
	}
	f := a.checkHead(&h)
	if f == nil {
		return
	}
	a.refusal.failure = f
	t.moveLocked(refuse)
	a.s.timers.wake(a.deadlineLocked())
}

// Data decodes messages and proposes the commands in them.
func (a *attempt) Data(p []byte) {
	if !a.enter() {
		return
	}
	defer a.leave()
	token, f := a.read(p)
	for {
		if f != nil {
			a.fail(f)
			return
		}
		a.flush(false)
		a.throttle()
		if token == nil {
			return
		}
		a.awaitAction(token)
		token, f = a.messages()
	}
}

// read consumes bytes. A failure ends the attempt. A token is what to wait for before the next message
// may be read.
func (a *attempt) read(p []byte) (token *actionWaiter, f *failure) {
	t := a.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if !a.openLocked() {
		return nil, nil
	}
	a.touchLocked()
	if t.state == refused {
		if a.refusal.read(p) {
			return nil, nil
		}
		return nil, a.refusal.take()
	}
	a.decoder.Feed(p)
	if !a.countLocked() {
		return nil, a.tooLarge()
	}
	return a.messagesLocked()
}

// messages is read without further bytes.
func (a *attempt) messages() (token *actionWaiter, f *failure) {
	a.t.mu.Lock()
	defer a.t.mu.Unlock()
	return a.messagesLocked()
}

// messagesLocked handles the complete messages.
func (a *attempt) messagesLocked() (token *actionWaiter, f *failure) {
	t := a.t
	for a.openLocked() {
		if token = a.actionTokenLocked(); token != nil {
			break
		}
		m, ok, err := a.decoder.Next()
		if err != nil {
			return nil, failureOf(err)
		}
		if !ok {
			break
		}
		if f := a.messageLocked(&m); f != nil {
			return nil, f
		}
	}
	if t.a != a {
		return nil, nil
	}
	a.countLocked()
	if t.state.open() && a.handler.idle() && a.s.iv.slots.short.Load() {
		a.s.timers.wake(a.deadlineLocked()) // which is now earlier than at the last check
	}
	return token, nil
}

// End is the last event of the stream.
func (a *attempt) End(err error) {
	if !a.enter() {
		return
	}
	defer a.leave()
	a.t.mu.Lock()
	open := a.openLocked()
	f := a.refusal.take()
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

// messageLocked handles one message.
func (a *attempt) messageLocked(m *protocol.Message) *failure {
	if warn := a.s.iv.cfg.MessageSizeWarning; warn > 0 && len(m.Payload) >= warn {
		a.s.log.Warn("large message from endpoint", "invocation_id", a.t.id, "message", protocol.Name(m.Type), "bytes", len(m.Payload))
	}
	a.probeAnsweredLocked(m.Type)
	switch m.Type {
	case protocol.ProposeRunCompletion:
		return a.proposeLocked(m)
	case protocol.End:
		return a.endedLocked()
	case protocol.Suspension:
		await, err := protocol.ParseSuspension(a.plan.version, m.Payload)
		if err == nil {
			err = protocol.CheckDepth(await, a.s.iv.cfg.MaxAwaitDepth)
		}
		if err != nil {
			return failureOf(err)
		}
		a.finishLocked(machine.Step{Kind: machine.StepSuspend, Await: await})
		return nil
	case protocol.Error:
		e, err := protocol.ParseError(a.plan.version, m.Payload)
		if err != nil {
			return failureOf(err)
		}
		return failureFrom(&e)
	case protocol.AwaitingOn:
		if a.plan.version >= protocol.V7 {
			return a.awaitsLocked(m)
		}
	}
	if !m.Type.IsCommand() {
		return failureOf(errcode.New(errcode.RT0012, "unexpected message %s", protocol.Name(m.Type)))
	}
	return a.commandLocked(m)
}

// awaitsLocked records the reported await, for operators.
func (a *attempt) awaitsLocked(m *protocol.Message) *failure {
	await, err := protocol.ParseAwaitingOn(m.Payload)
	if err == nil {
		err = protocol.CheckDepth(await.On, a.s.iv.cfg.MaxAwaitDepth)
	}
	if err != nil {
		return failureOf(err)
	}
	a.handler.awaits(&await)
	return nil
}

func (a *attempt) proposeLocked(m *protocol.Message) *failure {
	completion, notification, err := protocol.ParseRunProposal(m.Payload)
	if err != nil {
		return failureOf(err)
	}
	if m.WantAck && a.plan.version >= protocol.V7 {
		a.notifications.wantAck(completion)
	}
	a.progress.add(machine.Step{
		Kind: machine.StepRunCompletion, Type: journal.RunCompletion, Completion: completion, Payload: notification,
	}, false)
	a.span.RunEnded(completion)
	a.handler.runs--
	return nil
}

func (a *attempt) endedLocked() *failure {
	if !a.handler.output {
		return failureOf(errcode.New(errcode.RT0012, "the handler ended without an output"))
	}
	a.finishLocked(machine.Step{Kind: machine.StepEnd})
	return nil
}

// finishLocked adds the step that ends the attempt, and half-closes immediately: endpoints wait
// for that before they end the response.
func (a *attempt) finishLocked(last machine.Step) {
	a.progress.add(last, false)
	a.lastStep = last.Kind
	a.t.moveLocked(finish)
	if a.decoder.Partial() {
		a.s.log.Debug("endpoint sent data after it ended the attempt", "invocation_id", a.t.id, "code", errcode.RT0012)
	}
}

func (a *attempt) commandLocked(m *protocol.Message) *failure {
	step, c, err := a.s.iv.step(a.t.inv, a.handler.commands, m, &a.handler.completions)
	if err == nil {
		err = a.changesStateLocked(m.Type, &c)
	}
	if !a.openLocked() {
		return nil // it was aborted while the state was measured
	}
	if err != nil {
		f := failureOf(err)
		index := a.handler.commands
		f.RelatedIndex, f.RelatedCommand = &index, m.Type
		return f
	}
	a.progress.add(step, passive(m.Type))
	a.traceCommandLocked(m)
	a.handler.sent(m.Type)
	return nil
}
