package invoker

import (
	"time"

	"platform/invoker/protocol"
	"platform/partition/journal"
)

// A handler that has sent no command is either computing or waiting for an event that the
// server does not know of, such as an awakeable: only protocol 7 announces what is awaited.
// Asking it to suspend tells them apart, since one that waits suspends immediately. One that
// computes continues, but suspends at its next await and then computes again, so the number
// of such requests adapts to the responses.

const (
	// initialProbes is how many silent attempts of a handler may be asked to suspend
	// before the first of them has responded.
	initialProbes = 4
	// maxProbes bounds the pending requests to suspend of a handler.
	maxProbes = 256
	// probeTimeout is how long a handler that waits may take to suspend. It is also how
	// long an attempt without response headers must be silent before a probe.
	probeTimeout = time.Second
)

// probes limits the concurrent requests to suspend to silent attempts of one handler.
// It is covered by the mutex of the slots.
type probes struct {
	limit     int
	pending   int  // without a result yet
	postponed bool // a probe was not sent because of the limit
}

// probe is a pending request to suspend, sent to a silent attempt.
type probe struct {
	of   *probes
	at   time.Time // when it was sent
	late bool      // it has timed out and is not pending
}

// probe returns a new probe of a handler of a service, nil if the limit is reached.
func (q *slots) probe(s *share, handler string, now time.Time) *probe {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := s.probes[handler]
	if p == nil {
		if s.probes == nil {
			s.probes = map[string]*probes{}
		}
		p = &probes{limit: initialProbes}
		s.probes[handler] = p
	}
	if p.pending >= p.limit {
		p.postponed = true
		return nil
	}
	p.pending++
	return &probe{of: p, at: now}
}

// probeResult is the result of a probe.
type probeResult uint8

const (
	attemptEnded probeResult = iota // without a response
	waits                           // the attempt suspended
	computes                        // the attempt sent something else, or nothing for probeTimeout
)

// probed ends a probe. It reports whether probes that were postponed may be sent now.
func (q *slots) probed(p *probe, r probeResult) (more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	of := p.of
	switch {
	case r == computes:
		of.limit = max(of.limit/2, 1)
	case r == waits && p.late:
		of.limit = min(of.limit+1, maxProbes)
	case r == waits:
		of.limit = min(of.limit+2, maxProbes)
	}
	if !p.late {
		of.pending--
	}
	more = of.postponed && of.pending < of.limit
	of.postponed = of.postponed && !more
	return more
}

// suspendsLocked decides whether to request a silent attempt to suspend. Before the
// inactivity timeout, the reason is a lack of slots.
func (a *attempt) suspendsLocked(now time.Time) bool {
	silence := now.Sub(a.activity.last)
	left := a.plan.options.InactivityTimeout - silence
	if left <= 0 {
		return true
	}
	if a.handler.idle() && !a.makesRoomLocked(now) {
		return false
	}
	if _, computing := a.maxSilenceLocked(); silence < computing && !a.handler.idle() {
		a.activity.probe = a.s.iv.slots.probe(a.t.slot, a.t.inv.Target.Handler, now)
		if a.activity.suspendPostponed = a.activity.probe == nil; a.activity.suspendPostponed {
			return false
		}
	}
	a.activity.remainingInactivity = left
	return true
}

// makesRoomLocked decides whether an idle attempt may be asked to suspend.
func (a *attempt) makesRoomLocked(now time.Time) (ok bool) {
	q, s := &a.s.iv.slots, a.t.slot
	if _, over := q.pressure(s.service); over {
		return true
	}
	a.room, ok = q.makeRoom(s, now)
	a.activity.noRoom = !ok
	return ok
}

// probeAnsweredLocked processes the first message of a silent attempt after a probe.
func (a *attempt) probeAnsweredLocked(t journal.Type) {
	switch {
	case a.activity.probe == nil:
	case t == protocol.Suspension:
		a.endProbeLocked(waits)
	case a.activity.probe.late:
		a.activity.probe = nil
	default:
		a.endProbeLocked(computes)
	}
}

// checkProbeLocked ends the probe after probeTimeout.
func (a *attempt) checkProbeLocked(now time.Time) {
	if p := a.activity.probe; p != nil && !p.late && now.Sub(p.at) >= probeTimeout {
		a.endProbeLocked(computes)
		p.late = true
		a.activity.probe = p
	}
}

// endProbeLocked ends the probe, if there is one.
func (a *attempt) endProbeLocked(r probeResult) {
	p := a.activity.probe
	if p == nil {
		return
	}
	a.activity.probe = nil
	if a.s.iv.slots.probed(p, r) {
		a.s.iv.scanOpen(time.Now())
	}
}
