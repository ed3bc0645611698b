package machine

import (
	"fmt"
	"slices"

	"platform/internal/feature"
	"platform/internal/target"
	"platform/partition/journal"
)

// canceled is the result of an invocation that is cancelled before it starts.
var canceled = journal.Result{Failure: &journal.Failure{Code: 409, Message: "canceled"}}

// sendSignal sends a signal to the invocation that a handler names. The sender does not
// learn whether that exists.
func (m *Machine) sendSignal(payload []byte) error {
	c, err := journal.ParseSendSignal(payload)
	if err != nil {
		return err
	}
	return m.send(c.Target, &Signal{Target: c.Target, ID: c.ID, Result: c.Result})
}

// completeAwakeable sends a signal to the invocation that created the awakeable.
func (m *Machine) completeAwakeable(payload []byte) error {
	c, err := journal.ParseCompleteAwakeable(payload)
	if err != nil {
		return err
	}
	return m.send(c.Target, &Signal{Target: c.Target, ID: c.ID, Result: c.Result})
}

// signal appends a signal to the journal of its target, even if that has not started.
func (m *Machine) signal(c *Signal) (Outcome, error) {
	if !c.ID.Signal {
		return Outcome{Code: Invalid}, nil // it would be taken for the completion of a command
	}
	inv, err := m.invocation(c.Target)
	if err != nil {
		return Outcome{}, err
	}
	cancel := c.ID == journal.NumberedSignal(journal.CancelSignal)
	switch {
	case inv == nil, inv.Target.Type == target.StateUpdate && !cancel:
		return Outcome{Code: NotFound}, nil
	case inv.Status == Completed:
		return describe(Ended, inv), nil
	case cancel && inv.Waiting():
		return m.endEarly(inv, &canceled)
	}
	if !inv.isNewSignal(c) {
		return describe(OK, inv), nil
	}
	if full, err := m.signalsFull(inv, c.ID); full || err != nil {
		return Outcome{Code: SignalsFull}, err
	}
	n := notification{journal.Signal, c.ID, journal.Succeeded, journal.NewSignal(c.ID, c.Result)}
	if c.Result != nil && c.Result.Failure != nil {
		n.settled = journal.Failed
	}
	was := inv.Status
	if cancel {
		inv.Failed.Counted = 0
		if err := m.recordCancel(inv); err != nil {
			return Outcome{}, err
		}
	}
	if cancel && was == Paused {
		if _, err := m.record(inv, n); err != nil {
			return Outcome{}, err
		}
		err = m.admit(inv, nil)
	} else {
		err = m.notify(inv, n)
	}
	if err != nil {
		return Outcome{}, err
	}
	if cancel && was == Invoked {
		m.emit(&Hasten{ID: inv.ID, Attempt: inv.Attempt, Cancel: true})
	}
	return describe(OK, inv), nil
}

// recordCancel records that the cancellation of a started invocation was requested. A
// cancel resumes, so it also withdraws a requested pause.
func (m *Machine) recordCancel(inv *Invocation) error {
	if m.level >= feature.Level3 {
		inv.CancelRequestedAt = m.now
	}
	if err := m.recordEvent(inv, Event{Kind: CancelRequested}); err != nil {
		return err
	}
	switch {
	case inv.Pausing:
		return m.withdrawPause(inv)
	case inv.Status == Paused:
		return m.leavePause(inv)
	}
	return nil
}

// Anybody who knows the ID of an invocation or of one of its awakeables can send signals to it,
// with numbers that its handler never uses, too. Which of them the handler will await is not
// known in advance, so their size in the journal is bounded instead. Cancels have some room of
// their own.
const (
	// MaxSignalBytes bounds the signals in a journal.
	MaxSignalBytes = 256 << 20
	// MinSignalBytes is what each of them counts at least.
	MinSignalBytes = 4 << 10
	// cancelBytes is the room for cancels beyond MaxSignalBytes.
	cancelBytes = 1 << 20
)

// countSignal adds a notification that is appended to a journal to the size of its signals.
func (m *Machine) countSignal(inv *Invocation, id journal.NotificationID, payload []byte) {
	if id.Signal && m.level >= feature.Level4 {
		inv.SignalBytes += uint64(max(len(payload), MinSignalBytes))
	}
}

// signalsFull reports whether the journal of inv may have no more signals. Another result for a
// completed awakeable is no further signal.
func (m *Machine) signalsFull(inv *Invocation, id journal.NotificationID) (bool, error) {
	most := uint64(MaxSignalBytes)
	if id == journal.NumberedSignal(journal.CancelSignal) {
		most += cancelBytes
	}
	if inv.SignalBytes < most || m.level < feature.Level4 {
		return false, nil
	}
	if id.Repeats() {
		return true, nil
	}
	how, err := m.st.Notified(inv.ID, id)
	if err != nil {
		return false, fmt.Errorf("look up notification %v of %s: %w", id, inv.ID, err)
	}
	return how == journal.Pending, nil
}

// signalHistory is how many requests of repeatable signals are kept to recognize retries.
const signalHistory = 8

// isNewSignal reports whether a signal is not a retry of a request whose outcome its sender
// did not learn, and records its request.
func (inv *Invocation) isNewSignal(c *Signal) bool {
	if c.Request == 0 || !c.ID.Repeats() {
		return true
	}
	if slices.Contains(inv.Requests, c.Request) {
		return false
	}
	kept := inv.Requests[max(0, len(inv.Requests)+1-signalHistory):]
	inv.Requests = append(slices.Clone(kept), c.Request)
	return true
}
