package invoker

import "platform/partition/machine"

// yield lets the invocation pause without repeating a step that is under way. An open
// attempt is asked to suspend: what it still delivers is stored, and its suspension or
// failure becomes the pause. It is cut only by the abort timeout. Without an attempt that
// has reached the endpoint the invocation pauses now.
func (t *task) yield() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pausing = true
	a := t.a
	switch {
	case t.phase == running && a.live:
		if !a.over && !a.halfClosed {
			a.closeWrite()
			a.touch()
			t.s.clock.wake(a.deadline())
		}
	case t.phase == running:
		a.over = true
		a.stream.Reset()
		t.pauseNow()
	case t.phase == waiting || t.phase == backingOff:
		t.pauseNow()
	}
}

// pauseNow proposes the pause; t.mu is held, and no attempt is open.
func (t *task) pauseNow() {
	t.phase = settling
	step := machine.Step{Kind: machine.StepYield}
	if t.last != nil {
		step.Failure = &t.last.AttemptFailure
	}
	p := &machine.Progress{ID: t.id, Attempt: t.number, Pin: t.pin, Steps: []machine.Step{step}, Errors: t.retry.report()}
	a := t.a
	t.pending++
	// Proposing may block, which the partition's goroutine must not.
	go t.s.guarded(func() {
		t.s.part.Propose(p, func(o machine.Outcome, err error) { t.answered(a, p, 0, true, o, err) })
	})
}
