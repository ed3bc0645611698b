package invoker

import "platform/partition/attempts"

func (t *task) attemptStatus() attempts.Status {
	t.mu.Lock()
	defer t.mu.Unlock()
	st := attempts.Status{
		InFlight: t.state.open() || t.state.settling(), RetryCount: t.retry.total,
		Unreported: t.retry.total - t.retry.reported, LastStartAt: t.started,
		Deployment: t.deployed.Deployment, Protocol: t.deployed.Protocol, Server: t.server,
	}
	switch t.state {
	case backingOff:
		st.NextRetryAt = t.due
	case waiting:
		st.ThrottledSince = t.s.iv.slots.startsThrottled()
	}
	if t.a != nil {
		st.Awaiting = t.a.handler.reported()
		st.ThrottledSince = t.a.activity.throttled
		if t.a.activity.overdue {
			st.NoResponseSince = t.a.activity.requestedAt
		}
		if t.state.open() && t.state != loading { // while loading, nothing is expected of the endpoint
			st.ActiveAt, st.SuspendAt, st.AbortAt = t.a.scheduleLocked()
		}
	}
	if t.last != nil {
		st.LastFailure, st.LastFailureAt = &t.last.AttemptFailure, t.lastAt
	}
	return st
}
