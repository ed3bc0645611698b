package invoker

import (
	"platform/internal/feature"
	"platform/internal/limits"
	"platform/partition/journal"
	"platform/partition/machine"
)

// progressBuffer accumulates the steps of an attempt until they are proposed.
type progressBuffer struct {
	steps     []machine.Step
	bytes     int  // of them
	lingering bool // they may wait a moment for more
	rejected  bool // a proposal was rejected: the journal must not have gaps, so no other follows
}

// add appends a step. passive means that it may wait for the next one.
func (b *progressBuffer) add(step machine.Step, passive bool) {
	b.lingering = passive && (b.lingering || len(b.steps) == 0)
	b.steps = append(b.steps, step)
	b.bytes += stepSize(&step)
}

// take removes and returns the steps.
func (b *progressBuffer) take() (steps []machine.Step, bytes int) {
	steps, bytes = b.steps, b.bytes
	b.steps, b.bytes, b.lingering = nil, 0, false
	return steps, bytes
}

// flush proposes the accumulated steps, as one command or, if they are large, as several.
// Lingering ones are kept for a moment unless forced or large.
func (a *attempt) flush(force bool) {
	t := a.t
	t.sending.Lock()
	defer t.sending.Unlock()
	t.mu.Lock()
	if a.progress.rejected {
		a.progress.take()
	}
	if t.a != a || len(a.progress.steps) == 0 {
		t.mu.Unlock()
		return
	}
	if a.progress.lingering && !force && a.progress.bytes < limits.ProgressBatch {
		t.mu.Unlock()
		a.s.timers.linger(a)
		return
	}
	steps, volume := a.progress.take()
	a.state.proposed += len(steps)
	p := t.progressLocked(a.plan.pin, steps...)
	final := t.state == finishing
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
		part := &machine.Progress{ID: p.ID, Attempt: p.Attempt, Pin: p.Pin, Steps: steps, Errors: p.Errors, Failed: p.Failed}
		p.Errors, p.Failed = 0, machine.FailedAttempts{} // reported once
		volume, final := stepsSize(steps), final && i == len(parts)-1
		a.s.part.Propose(part, func(o machine.Outcome, err error) { t.proposed(a, part, volume, final, o, err) })
	}
}

// progressLocked returns progress that also reports the attempts that have failed.
func (t *task) progressLocked(pin machine.Pin, steps ...machine.Step) *machine.Progress {
	p := &machine.Progress{ID: t.id, Attempt: t.number, Pin: pin, Steps: steps, Errors: t.retry.report()}
	if p.Errors > 0 && t.s.iv.level() >= feature.Level4 {
		p.Failed = t.retry.counts()
	}
	return p
}

// dropped reports whether a proposal of the attempt was rejected. Then the remaining parts of its
// progress, which were counted as pending, are not proposed.
func (t *task) dropped(a *attempt, parts [][]machine.Step) bool {
	t.mu.Lock()
	if t.a != a || !a.progress.rejected {
		t.mu.Unlock()
		return false
	}
	t.pending -= len(parts)
	for _, steps := range parts {
		t.volume -= stepsSize(steps)
	}
	a.countLocked()
	t.moved.Broadcast()
	conclude := t.state == failing && t.pending == 0
	t.mu.Unlock()
	if conclude {
		go t.s.guarded(func() { t.conclude(a) })
	}
	return true
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

// smallStep is the size up to which a step joins the previous one regardless of its size,
// so that a large output and the following end are one log command.
const smallStep = 1 << 10

// batches splits steps into runs of about limits.ProgressBatch bytes, each of which becomes
// one log command. A larger step gets a separate command, possibly with small ones.
func batches(steps []machine.Step) [][]machine.Step {
	var out [][]machine.Step
	first, size, small := 0, 0, 0
	for i := range steps {
		n := stepSize(&steps[i])
		if n <= smallStep {
			small += n
		}
		joins := size+n <= limits.ProgressBatch || n <= smallStep && small <= limits.ProgressBatch
		if i > first && !joins {
			out = append(out, steps[first:i:i])
			first, size, small = i, 0, 0
		}
		size += n
	}
	return append(out, steps[first:])
}

// stepSize returns the approximate size of a step in a log command. A step without a payload counts as
// well: an endpoint may send any number of them.
func stepSize(s *machine.Step) int {
	size := 64 + len(s.Payload)
	if s.Failure != nil {
		size += len(s.Failure.Message) + len(s.Failure.Stacktrace)
	}
	if s.Await != nil {
		for id := range s.Await.Leaves() {
			size += 8 + len(id.Name)
		}
	}
	return size
}

// stepsSize returns the approximate size of steps in a log command.
func stepsSize(steps []machine.Step) (size int) {
	for i := range steps {
		size += stepSize(&steps[i])
	}
	return size
}

// namesSize returns the bytes of the strings that identify the target of a call. They are
// part of every record and message about it.
func namesSize(r *journal.Request) int {
	size := len(r.Service) + len(r.Handler) + len(r.Key)
	for _, s := range []*string{r.Scope, r.LimitKey, r.IdempotencyKey} {
		if s != nil {
			size += len(*s)
		}
	}
	return size
}
