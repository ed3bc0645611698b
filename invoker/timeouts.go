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

// touchLocked records that something was sent or received.
func (a *attempt) touchLocked() { a.activity.last = time.Now() }

// deadlineLocked returns when the attempt has been silent for too long.
func (a *attempt) deadlineLocked() time.Time {
	switch {
	case a.activity.held:
		return time.Now().Add(a.plan.options.InactivityTimeout)
	case a.t.state == refused:
		return a.activity.last.Add(refusalTimeout)
	case a.t.state == halfClosed:
		rest := a.activity.remainingInactivity
		return a.activity.last.Add(rest + min(a.plan.options.AbortTimeout, maxHold-rest)) // the sum may overflow
	}
	hold, computing := a.maxSilenceLocked()
	if a.activity.suspendPostponed {
		hold = computing
	}
	return a.activity.last.Add(min(a.plan.options.InactivityTimeout, hold))
}

// maxSilenceLocked returns how long the attempt may keep its slot while silent, and how long if it
// seems to compute.
func (a *attempt) maxSilenceLocked() (hold, computing time.Duration) {
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

// nextCheckLocked returns when an attempt with that deadline has to be checked.
func (a *attempt) nextCheckLocked(at time.Time) time.Time {
	if silent, ok := a.silentAtLocked(); ok && silent.Before(at) {
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
	if !a.openLocked() {
		t.mu.Unlock()
		return time.Time{}, false
	}
	a.checkSilenceLocked(now)
	a.checkProbeLocked(now)
	a.activity.suspendPostponed, a.activity.noRoom = false, false
	at := a.deadlineLocked()
	if !at.After(now) {
		if f := a.expireLocked(now); f != nil {
			t.mu.Unlock()
			a.fail(f)
			return time.Time{}, false
		}
		if !a.activity.noRoom {
			at = a.deadlineLocked()
		}
	}
	defer t.mu.Unlock()
	if !a.openLocked() {
		return time.Time{}, false
	}
	return a.nextCheckLocked(at), a.activity.noRoom
}

// expireLocked handles a deadline that has passed; it returns the failure if the attempt is to be aborted.
func (a *attempt) expireLocked(now time.Time) *failure {
	if a.t.state == streaming && !a.suspendsLocked(now) || a.t.moveLocked(suspend) {
		return nil
	}
	if f := a.refusal.take(); f != nil {
		return f
	}
	return a.abortedLocked()
}

// abortedLocked returns the failure of an attempt that the abort timeout ended.
func (a *attempt) abortedLocked() *failure {
	what := "nothing"
	if !a.activity.responded {
		what = "no response headers since the request, and nothing"
	}
	return failureOf(errcode.New(errcode.RT0001, "the endpoint sent %s for %s after it was asked to suspend", what, a.plan.options.AbortTimeout))
}

// abortAtLocked returns when the attempt is aborted if the endpoint sends nothing.
func (a *attempt) abortAtLocked() time.Time {
	at := a.deadlineLocked()
	if a.t.state == streaming {
		at = at.Add(a.plan.options.AbortTimeout)
	}
	return at
}

// scheduleLocked returns when something was last sent or received, and when the attempt is asked to
// suspend and is aborted if the endpoint sends nothing; zero for what is not planned.
func (a *attempt) scheduleLocked() (active, suspend, abort time.Time) {
	if a.activity.held { // the server itself delays the endpoint
		return a.activity.last, time.Time{}, time.Time{}
	}
	if a.t.state == streaming {
		suspend = a.deadlineLocked()
	}
	return a.activity.last, suspend, a.abortAtLocked()
}
