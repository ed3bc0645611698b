package machine

import (
	"fmt"
	"math"

	"platform/internal/feature"
	"platform/partition/journal"
)

// MinRetention is how long, in milliseconds, a result is kept at least for the request that
// created the invocation. After a failover the ingress retries with the same ID: if the
// result were gone by then, the handler would run again. Other callers find nothing once
// the retention is over, see earlier.go.
const MinRetention = 60_000

// minSharedResult is the size of a result from which the record of the invocation refers to the
// journal for it, instead of storing it once more.
const minSharedResult = 4 << 10

// end completes an invocation with the last result of its handler.
func (m *Machine) end(inv *Invocation, steps []Step) error {
	result, err := m.lastOutput(inv, steps)
	if err != nil {
		return err
	}
	inv.ResultInJournal = m.level >= feature.Level4 && len(result.Value) >= minSharedResult
	return m.complete(inv, result)
}

// complete ends an invocation: the waiters receive the result, the next invocation in the
// queue gets the key, and the record stays for its retention.
func (m *Machine) complete(inv *Invocation, result *journal.Result) error {
	if err := inv.move(Completed, m.now); err != nil {
		return err
	}
	if err := m.dropSleeps(inv, inv.Length); err != nil {
		return err
	}
	rest, err := m.answerSome(inv.Sinks, result, m.mayAnswer)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		m.scheduleAnswers(inv)
	}
	held := inv.HoldsLock
	inv.Sinks, inv.Await, inv.AwaitReduced, inv.Failure, inv.HoldsLock, inv.Pausing = rest, nil, false, nil, false, false
	inv.Result, inv.CompletedAt = result, m.now
	m.retain(inv)
	m.emit(&Finish{
		ID: inv.ID, Request: inv.Request, Target: inv.Target, Source: inv.Source, Trace: inv.Trace,
		Result: *result, Stopped: inv.Stopped(), ExpiresAt: inv.ExpiresAt, DueAt: max(inv.CreatedAt, inv.StartAt), EndedAt: m.now,
	})
	object := inv.Target.Object()
	if err := m.put(inv); err != nil {
		return err
	}
	if held {
		return m.release(object)
	}
	return nil
}

// retain sets the expiry of the record and of the journal.
func (m *Machine) retain(inv *Invocation) {
	kept := max(inv.Retention.Completion, MinRetention)
	if m.level >= feature.Level2 && inv.reusable() {
		kept = max(inv.Retention.Completion, 0)
	}
	inv.ExpiresAt = after(m.now, kept)
	switch {
	case inv.Retention.Journal <= 0 && m.needsJournal(inv): // deleted with its last sleep
	case inv.Retention.Journal <= 0:
		m.deleteJournal(inv)
	case inv.Retention.Journal < kept:
		m.setTimer(Timer{At: inv.journalExpiresAt(), Kind: TimerPurgeJournal, ID: inv.ID})
	}
	m.setTimer(Timer{At: inv.ExpiresAt, Kind: TimerPurge, ID: inv.ID})
}

// journalExpiresAt is when the journal of a completed invocation is deleted, if that is
// before the record.
func (inv *Invocation) journalExpiresAt() int64 { return after(inv.CompletedAt, inv.Retention.Journal) }

// after returns t plus a duration, or math.MaxInt64 on overflow.
func after(t, while int64) int64 {
	if while > math.MaxInt64-t {
		return math.MaxInt64
	}
	return t + while
}

func (m *Machine) deleteJournal(inv *Invocation) {
	m.st.DeleteJournal(inv.ID, inv.Length)
	m.deleteHistory(inv)
	inv.Length, inv.Commands, inv.Output, inv.Signalled, inv.Seen, inv.SignalBytes = 0, 0, 0, false, 0, 0
	inv.ResultInJournal = false
}

// lastOutput returns the last result of the handler: usually from the steps that end it,
// otherwise from the journal.
func (m *Machine) lastOutput(inv *Invocation, steps []Step) (*journal.Result, error) {
	var payload []byte
	for i := len(steps) - 1; i >= 0 && payload == nil; i-- {
		if steps[i].Kind == StepCommand && steps[i].Type == journal.Output {
			payload = steps[i].Payload
		}
	}
	if payload == nil {
		e, err := m.st.Entry(inv.ID, inv.Output)
		if err != nil {
			return nil, fmt.Errorf("read output of %s: %w", inv.ID, err)
		}
		payload = e.Payload
	}
	result, err := journal.ParseOutput(payload)
	if err != nil {
		return nil, fmt.Errorf("output of %s: %w", inv.ID, err)
	}
	return &result, nil
}
