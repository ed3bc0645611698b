package invoker

import "platform/partition/machine"

// yield pauses the invocation without repeating a step in progress. An open attempt is
// asked to suspend: what it still delivers is stored, and its suspension or failure becomes
// the pause. Only the abort timeout aborts it. Without an attempt that has reached the
// endpoint the invocation pauses immediately.
func (t *task) yield() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pausing = true
	if !t.moveLocked(yield) || t.state != reporting {
		return
	}
	step := machine.Step{Kind: machine.StepYield}
	if t.last != nil {
		step.Failure = &t.last.AttemptFailure
	}
	p := t.progressLocked(t.pin, step)
	a := t.a
	t.pending++
	// Proposing may block, which the partition's goroutine must not.
	go t.s.guarded(func() {
		t.s.part.Propose(p, func(o machine.Outcome, err error) { t.proposed(a, p, 0, true, o, err) })
	})
}
