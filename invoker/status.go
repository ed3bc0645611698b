package invoker

import (
	"time"

	"platform/internal/ids"
	"platform/invoker/protocol"
	"platform/partition/machine"
)

// AttemptStatus is what a leader knows of an invocation's attempts and nobody
// stores.
type AttemptStatus struct {
	InFlight    bool // an attempt is open
	RetryCount  int  // failed attempts since the invocation was admitted or resumed
	Unreported  int  // those of them that the invocation's record does not count yet
	LastStartAt time.Time
	NextRetryAt time.Time               // zero unless it is backing off
	LastFailure *machine.AttemptFailure // nil: none failed
	Awaiting    *protocol.Await         // what the handler says it waits for; nil: it does not say
	Deployment  ids.Deployment          // of the last attempt
	Protocol    uint8
	Server      string // what the endpoint calls itself; empty if it did not say
}

func (t *task) attemptStatus() AttemptStatus {
	t.mu.Lock()
	defer t.mu.Unlock()
	st := AttemptStatus{
		InFlight: t.phase == running || t.phase == settling, RetryCount: t.retry.total,
		Unreported: t.retry.total - t.retry.reported, LastStartAt: t.started,
		Deployment: t.deployed.Deployment, Protocol: t.deployed.Protocol, Server: t.server,
	}
	if t.phase == backingOff {
		st.NextRetryAt = t.due
	}
	if t.a != nil {
		st.Awaiting = t.a.awaiting
	}
	if t.last != nil {
		st.LastFailure = &t.last.AttemptFailure
	}
	return st
}
