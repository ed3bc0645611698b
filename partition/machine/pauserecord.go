package machine

import "platform/internal/feature"

// PauseCause describes why an invocation was paused.
type PauseCause uint8

// The causes of pauses.
const (
	PausedByOperator  PauseCause = iota + 1 // requested by an operator
	AttemptsUsedUp                          // the retry policy allows no further attempt
	FailedUnretryably                       // the last attempt failed with an error that is not retried
	BeforeRepin                             // to be resumed on another deployment immediately, whose ID is the reason
)

// PauseRecord says who paused an invocation, when and why. Times are partition time in
// milliseconds since 1970, 0 if it has not happened.
type PauseRecord struct {
	Cause PauseCause
	By    string // network address of the client that requested it; empty: unknown
	// Reason is the one that the operator gave; empty below feature level 4.
	Reason string
	// Attempts is the number of attempts that had failed since the invocation was admitted;
	// 0 if an operator paused it, and below feature level 4.
	Attempts uint32
	At       int64 // when it was requested or decided
	// ResumedAt is when the pause ended, or was withdrawn before it took effect.
	ResumedAt int64
}

// recordPause records a pause that was requested or decided.
func (m *Machine) recordPause(inv *Invocation, cause PauseCause, by, reason string) {
	if m.level >= feature.Level3 {
		if m.level < feature.Level4 {
			reason = ""
		}
		inv.LastPause = &PauseRecord{Cause: cause, By: by, Reason: reason, At: m.now}
	}
}

// repinning reports whether an open pause lasts only until the invocation is resumed on another
// deployment.
func (inv *Invocation) repinning() bool {
	p := inv.LastPause
	return p != nil && p.Cause == BeforeRepin && p.ResumedAt == 0
}

// repinned reports whether the invocation is on the deployment for which its last pause was
// requested. That pause must be one with the cause BeforeRepin.
func (inv *Invocation) repinned() bool { return string(inv.Pin.Deployment) == inv.LastPause.Reason }

// leavePause adds the end of the last pause, which is about to be recorded, to the history; not if
// the pause was for another deployment that did not become that of the invocation.
func (m *Machine) leavePause(inv *Invocation) error {
	if inv.LastPause == nil || inv.LastPause.ResumedAt != 0 {
		return nil
	}
	if inv.repinning() && !inv.repinned() {
		return nil
	}
	ended := *inv.LastPause
	ended.ResumedAt = m.now
	return m.recordEvent(inv, Event{Kind: LeftPause, Pause: &ended})
}

// withdrawPause withdraws a requested pause. The caller must store inv.
func (m *Machine) withdrawPause(inv *Invocation) error {
	if err := m.leavePause(inv); err != nil {
		return err
	}
	inv.Pausing = false
	inv.recordResume(m.now)
	return nil
}

// recordResume records the end of the last pause. One for another deployment that did not become
// that of the invocation is forgotten.
func (inv *Invocation) recordResume(now int64) {
	if inv.repinning() && !inv.repinned() {
		inv.LastPause = nil
		return
	}
	if inv.LastPause != nil && inv.LastPause.ResumedAt == 0 {
		ended := *inv.LastPause
		ended.ResumedAt = now
		inv.LastPause = &ended
	}
}
