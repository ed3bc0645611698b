package invoker

import (
	"context"
	"time"

	"platform/internal/errcode"
	"platform/internal/feature"
	"platform/metadata"
	"platform/partition/machine"
)

// proposed handles the outcome of a proposal. It is called by the partition.
func (t *task) proposed(a *attempt, p *machine.Progress, volume int, final bool, o machine.Outcome, err error) {
	t.mu.Lock()
	t.pending--
	t.volume -= volume
	if t.a == a && a != nil {
		a.state.settled += len(p.Steps)
		a.countLocked()
	}
	t.moved.Broadcast()
	if t.a != a || t.state == gone {
		t.mu.Unlock()
		return
	}
	var rejection *failure
	var slot *share
	own := t.state == reporting
	_, coded := errcode.Of(err)
	switch {
	case coded:
		rejection = failureOf(err)
	case err != nil, o.Code == machine.Stale:
		slot = t.endLocked(drop)
	case o.Code != machine.OK:
		rejection = failureOf(errcode.New(errcode.RT0012, "the server rejected a message of the handler"))
	case final:
		slot = t.endLocked(stored)
	default:
		t.storedLocked(p)
	}
	if rejection != nil && !own {
		if a.progress.rejected { // it fails already
			rejection = nil
		} else {
			a.progress.rejected = true
		}
	}
	conclude := t.state == failing && t.pending == 0
	t.mu.Unlock()
	t.s.iv.releaseSlot(slot)
	// Both may propose, which must not block the partition's goroutine.
	switch {
	case rejection == nil:
	case own:
		go t.s.guarded(func() { t.rejected(a, rejection) })
	default:
		go t.s.guarded(func() { a.fail(rejection) })
	}
	if conclude {
		go t.s.guarded(func() { t.conclude(a) })
	}
}

// storedLocked records that progress of the attempt is in the journal.
func (t *task) storedLocked(p *machine.Progress) {
	t.pin, t.input = p.Pin, nil
	for i := range p.Steps {
		if p.Steps[i].Kind == machine.StepCommand {
			t.retry.sinceEntry, t.recorded = 0, 0
			break
		}
	}
}

// fail ends the attempt. What it has achieved is proposed first, and the next one waits for
// the outcomes: it must find all of that in the journal.
func (a *attempt) fail(f *failure) {
	t := a.t
	t.mu.Lock()
	if t.a != a || !a.openLocked() && t.state != finishing {
		t.mu.Unlock()
		return
	}
	f.reached = t.state != loading
	a.failure = f
	t.moveLocked(fail)
	t.mu.Unlock()
	a.flush(true)
	t.mu.Lock()
	conclude := t.a == a && t.state == failing && t.pending == 0
	t.mu.Unlock()
	if conclude {
		t.conclude(a)
	}
}

// conclude decides what follows a failed attempt without pending proposals.
func (t *task) conclude(a *attempt) {
	t.mu.Lock()
	if t.a != a || t.state != failing || t.pending > 0 {
		t.mu.Unlock()
		return
	}
	f := a.failure
	t.reportLocked(f)
	delay, again, last := t.nextLocked(a)
	if again {
		p := t.retryRecordLocked(f)
		slot := t.backOffLocked(retry, delay)
		t.mu.Unlock()
		t.s.iv.releaseSlot(slot)
		if p != nil {
			t.s.part.Propose(p, t.retryRecorded)
		}
		return
	}
	t.moveLocked(report)
	if last != machine.StepYield {
		t.reportEndLocked(last)
	}
	step := machine.Step{Kind: last, Failure: &f.AttemptFailure, Cause: t.causeOfLocked(f)}
	level := t.s.iv.level()
	if last == machine.StepPause {
		step.Unretryable = f.behavior == pauseNow && level >= feature.Level3
	}
	if level >= feature.Level4 && last != machine.StepYield {
		step.Attempts = uint32(t.retry.total)
	}
	p := t.progressLocked(t.pin, step)
	t.pending++
	t.mu.Unlock()
	t.s.part.Propose(p, func(o machine.Outcome, err error) { t.proposed(a, p, 0, true, o, err) })
}

// backOffLocked makes a transition to backingOff. It returns the slot, which the caller releases
// after t.mu.
func (t *task) backOffLocked(e event, delay time.Duration) (slot *share) {
	slot = t.endLocked(e)
	t.input = nil // read again, since many may wait
	t.shedLocked()
	t.due = time.Now().Add(delay)
	t.s.timers.backOff(t)
	return slot
}

// rejected handles the rejection of a step of the server that ends the attempts: it is proposed
// again after a further attempt.
func (t *task) rejected(a *attempt, f *failure) {
	t.mu.Lock()
	if t.a != a || t.state != reporting {
		t.mu.Unlock()
		return
	}
	t.reportLocked(f)
	delay, _ := t.retry.next(f, &t.s.iv.defaults.Load().Retry)
	slot := t.backOffLocked(unstored, delay)
	t.mu.Unlock()
	t.s.iv.releaseSlot(slot)
}

// nextLocked returns the delay before the attempt after a failed one, or else the last step of
// the invocation.
func (t *task) nextLocked(a *attempt) (delay time.Duration, again bool, last machine.StepKind) {
	f, policy := a.failure, &t.s.iv.defaults.Load().Retry
	if a.plan != nil {
		policy = &a.plan.options.Retry
	}
	delay, again = t.retry.next(f, policy)
	if t.pausing {
		return 0, false, machine.StepYield
	}
	last = machine.StepPause
	if f.behavior == failNow || f.behavior != pauseNow && policy.OnMaxAttempts == metadata.Kill {
		last = machine.StepFail
	}
	// A cancel also resumes what would be paused; from feature level 4 on, the machine sees to that.
	if t.cancelled && (again || last == machine.StepPause && t.s.iv.level() < feature.Level4) {
		delay, again = 0, true
	}
	t.cancelled = false
	return delay, again, last
}

// resume starts the next attempt of a task whose backoff is over.
func (t *task) resume() {
	t.mu.Lock()
	// The timer queue may still contain a backoff that was cut short.
	over := !time.Now().Before(t.due) && t.moveLocked(due)
	key, resumed := t.queueLocked()
	t.mu.Unlock()
	if over {
		t.s.iv.enqueue(key, resumed, waiter{t: t})
	}
}

// settle waits while proposals decide the next state, at most until ctx ends, and reports
// whether there were any.
func (t *task) settle(ctx context.Context) (waited bool) {
	defer context.AfterFunc(ctx, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.moved.Broadcast()
	})()
	t.mu.Lock()
	defer t.mu.Unlock()
	for ; t.state.settling() && ctx.Err() == nil; t.moved.Wait() {
		waited = true
	}
	return waited
}

// hasten ends a backoff early and resets the retry policy. An open attempt that fails after
// a cancel may not have seen it, so another one follows. A requested pause is withdrawn.
func (t *task) hasten(cancel bool) {
	t.mu.Lock()
	t.pausing = false
	if cancel && (t.state.open() || t.state.settling()) {
		t.cancelled = true
	}
	early := t.moveLocked(due)
	if early {
		t.retry.renew()
	}
	key, resumed := t.queueLocked()
	t.mu.Unlock()
	if early {
		t.s.iv.enqueue(key, resumed, waiter{t: t})
	}
}
