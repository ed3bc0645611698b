package invoker

import (
	"time"

	"platform/internal/errcode"
)

// activity is what the timeouts of an attempt depend on.
type activity struct {
	last                time.Time     // when something was last sent or received
	requestedAt         time.Time     // when the request was made
	remainingInactivity time.Duration // what was left of the inactivity timeout when it was asked to suspend
	probe               *probe        // after it was asked to suspend while silent
	responded           bool          // the response headers have arrived
	overdue             bool          // they are overdue, see silence.go
	held                bool          // the server itself delays the endpoint
	throttled           time.Time     // from when it waits for a token for its next command; zero: it does not
	suspendPostponed    bool          // it is not asked to suspend since too many are
	noRoom              bool          // it is idle, but not asked to make room since nothing would start earlier
}

// touch records that something was sent or received; t.mu is held.
func (a *attempt) touch() { a.activity.last = time.Now() }

// deadline returns when the attempt has been silent for too long; t.mu is held.
func (a *attempt) deadline() time.Time {
	switch {
	case a.activity.held:
		return time.Now().Add(a.plan.options.InactivityTimeout)
	case a.t.state == rejected:
		return a.activity.last.Add(refusalTimeout)
	case a.t.state == halfClosed:
		rest := a.activity.remainingInactivity
		return a.activity.last.Add(rest + min(a.plan.options.AbortTimeout, maxHold-rest)) // the sum may overflow
	}
	hold, computing := a.maxSilence()
	if a.activity.suspendPostponed {
		hold = computing
	}
	return a.activity.last.Add(min(a.plan.options.InactivityTimeout, hold))
}

// maxSilence returns how long the attempt may keep its slot while silent, and how long if it
// seems to compute.
func (a *attempt) maxSilence() (hold, computing time.Duration) {
	if a.handler.runs > 0 || a.t.slot == nil {
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
	if a.handler.idle() || a.activity.responded {
		return idleTimeout, computing
	}
	return probeTimeout, computing
}

// nextCheck returns when an attempt with that deadline has to be checked; t.mu is held.
func (a *attempt) nextCheck(at time.Time) time.Time {
	if silent, ok := a.silentAt(); ok && silent.Before(at) {
		at = silent
	}
	if p := a.activity.probe; p != nil && !p.late && p.at.Add(probeTimeout).Before(at) {
		at = p.at.Add(probeTimeout)
	}
	return at
}

// watch handles an overdue attempt, and returns the time of the next check. noRoom means that it is
// idle, but was not asked to make room.
func (a *attempt) watch(now time.Time) (next time.Time, noRoom bool) {
	t := a.t
	t.mu.Lock()
	if !a.open() {
		t.mu.Unlock()
		return time.Time{}, false
	}
	a.checkSilence(now)
	a.checkProbe(now)
	a.activity.suspendPostponed, a.activity.noRoom = false, false
	at := a.deadline()
	if !at.After(now) {
		if f := a.expire(now); f != nil {
			t.mu.Unlock()
			a.fail(f)
			return time.Time{}, false
		}
		if !a.activity.noRoom {
			at = a.deadline()
		}
	}
	defer t.mu.Unlock()
	if !a.open() {
		return time.Time{}, false
	}
	return a.nextCheck(at), a.activity.noRoom
}

// expire handles a deadline that has passed; it returns the failure if the attempt is to be aborted.
// t.mu is held.
func (a *attempt) expire(now time.Time) *failure {
	if a.t.state == streaming && !a.suspends(now) || a.t.move(suspend) {
		return nil
	}
	if f := a.refusal.take(); f != nil {
		return f
	}
	return a.aborted()
}

// aborted returns the failure of an attempt that the abort timeout ended; t.mu is held.
func (a *attempt) aborted() *failure {
	what := "nothing"
	if !a.activity.responded {
		what = "no response headers since the request, and nothing"
	}
	return failureOf(errcode.New(errcode.RT0001, "the endpoint sent %s for %s after it was asked to suspend", what, a.plan.options.AbortTimeout))
}

// abortAt returns when the attempt is aborted if the endpoint sends nothing; t.mu is held.
func (a *attempt) abortAt() time.Time {
	at := a.deadline()
	if a.t.state == streaming {
		at = at.Add(a.plan.options.AbortTimeout)
	}
	return at
}

// schedule returns when something was last sent or received, and when the attempt is asked to
// suspend and is aborted if the endpoint sends nothing; zero for what is not planned. t.mu is held.
func (a *attempt) schedule() (active, suspend, abort time.Time) {
	if a.activity.held { // the server itself delays the endpoint
		return a.activity.last, time.Time{}, time.Time{}
	}
	if a.t.state == streaming {
		suspend = a.deadline()
	}
	return a.activity.last, suspend, a.abortAt()
}
