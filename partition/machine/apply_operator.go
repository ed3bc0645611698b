package machine

import (
	"fmt"
	"slices"

	"platform/internal/feature"
	"platform/internal/ids"
	"platform/partition/journal"
)

// KilledMessage is the message of the failure of a killed invocation.
const KilledMessage = "killed"

// killed is the result of a killed invocation.
var killed = journal.Result{Failure: &journal.Failure{Code: 409, Message: KilledMessage}}

// kill ends an invocation without involving its handler, and the calls that it waits for.
// One-way calls continue: they have no waiting caller.
func (m *Machine) kill(c *Kill) (Outcome, error) {
	inv, refusal, err := m.notEnded(c.Target)
	if err != nil || inv == nil {
		return refusal, err
	}
	if c.Sink != nil && !slices.Contains(inv.Sinks, *c.Sink) {
		return Outcome{Code: NotFound}, nil
	}
	return m.killFrom(inv, 0)
}

// notEnded returns the invocation that an operation is about. If it is unknown or has ended, inv is
// nil and refusal is the outcome.
func (m *Machine) notEnded(id ids.Invocation) (inv *Invocation, refusal Outcome, err error) {
	inv, err = m.invocation(id)
	switch {
	case err != nil:
		return nil, Outcome{}, err
	case inv == nil:
		return nil, Outcome{Code: NotFound}, nil
	case inv.Status == Completed:
		return nil, describe(Ended, inv), nil
	}
	return inv, Outcome{}, nil
}

// maxKills bounds the invocations of the partition that the commands of one log entry kill
// besides those that they name.
const maxKills = 256

// killCallee kills an invocation whose caller is killed. Once the entry has killed many, a
// timer does it, which is due immediately.
func (m *Machine) killCallee(id ids.Invocation, sink *Sink) error {
	if m.level < feature.Level4 {
		return m.send(id, &Kill{Target: id})
	}
	if m.shards.of(id.PartitionKey()) != m.shards.Self {
		return m.send(id, &Kill{id, sink})
	}
	if m.used.kills++; m.used.kills <= m.bounds.kills {
		return m.send(id, &Kill{Target: id})
	}
	m.setTimer(Timer{At: m.now, Kind: TimerKill, ID: id})
	return nil
}

// endEarly ends an invocation with a result that its handler did not produce.
func (m *Machine) endEarly(inv *Invocation, result *journal.Result) (Outcome, error) {
	switch inv.Status {
	case Scheduled:
		m.st.DeleteTimer(Timer{At: inv.StartAt, Kind: TimerStart, ID: inv.ID})
	case Inboxed:
		if err := m.dequeue(inv); err != nil {
			return Outcome{}, err
		}
	}
	inv.Killed = true
	if err := m.complete(inv, result); err != nil {
		return Outcome{}, err
	}
	return describe(OK, inv), nil
}

func (c *Pause) cause() PauseCause {
	if c.Repin != "" {
		return BeforeRepin
	}
	return PausedByOperator
}

func (c *Pause) reason() string {
	if c.Repin != "" {
		return string(c.Repin)
	}
	return c.Reason
}

// takesOver reports whether an operator requests this pause while the invocation is paused only to be resumed on another
// deployment. The invocation then stays paused until it is resumed by an operator.
func (c *Pause) takesOver(inv *Invocation) bool { return c.Repin == "" && inv.repinning() }

func (m *Machine) pauseByOperator(c *Pause) (Outcome, error) {
	inv, refusal, err := m.notEnded(c.Target)
	if err != nil || inv == nil {
		return refusal, err
	}
	switch {
	case inv.Status == Paused && c.takesOver(inv):
		m.recordPause(inv, c.cause(), c.By, c.reason())
		if err := m.recordEvent(inv, Event{Kind: EnteredPause, Failure: inv.Failure, Pause: inv.LastPause}); err != nil {
			return Outcome{}, err
		}
		m.st.PutInvocation(inv)
		return describe(OK, inv), nil
	case inv.Status == Paused:
		return describe(Existing, inv), nil
	case inv.Waiting():
		return describe(NotStarted, inv), nil
	case inv.Status == Invoked && m.level >= feature.Level2:
		if !inv.Pausing || c.takesOver(inv) {
			m.recordPause(inv, c.cause(), c.By, c.reason())
		}
		inv.Pausing = true
		m.st.PutInvocation(inv)
		m.emit(&Yield{inv.ID, inv.Attempt})
		return describe(OK, inv), nil
	}
	switch inv.Status {
	case Invoked:
		m.emit(&Abort{inv.ID, inv.Attempt})
	case Inboxed:
		if err := m.dequeue(inv); err != nil {
			return Outcome{}, err
		}
	}
	m.recordPause(inv, c.cause(), c.By, c.reason())
	if err := m.pause(inv, c.Failure); err != nil {
		return Outcome{}, err
	}
	return describe(OK, inv), nil
}

func (m *Machine) resume(c *Resume) (Outcome, error) {
	inv, refusal, err := m.notEnded(c.Target)
	if err != nil || inv == nil {
		return refusal, err
	}
	switch {
	case inv.Waiting():
		return describe(NotStarted, inv), nil
	case inv.Status == Invoked && c.Repin != nil:
		return describe(Running, inv), nil
	case inv.Status == Invoked:
		if err := m.hasten(inv); err != nil {
			return Outcome{}, err
		}
		return describe(OK, inv), nil
	}
	if c.Repin != nil {
		pin, refusal := c.Repin.pinFor(inv.Pin)
		if refusal != OK {
			return describe(refusal, inv), nil
		}
		inv.Pin = pin
	}
	if inv.Status == Inboxed { // already queued
		m.st.PutInvocation(inv)
		return describe(OK, inv), nil
	}
	if inv.Status == Paused {
		if err := m.leavePause(inv); err != nil {
			return Outcome{}, err
		}
	}
	if err := m.admit(inv, nil); err != nil {
		return Outcome{}, err
	}
	return describe(OK, inv), nil
}

// hasten makes the next attempt start if one is delayed, begins the retry policy again, and
// withdraws a pause that has not taken effect yet.
func (m *Machine) hasten(inv *Invocation) error {
	if inv.Pausing {
		if err := m.withdrawPause(inv); err != nil {
			return err
		}
	}
	inv.Failed.Counted = 0
	m.st.PutInvocation(inv)
	m.emit(&Hasten{ID: inv.ID, Attempt: inv.Attempt})
	return nil
}

// pinFor returns the new pin of an invocation that has one and keeps its journal, which
// fixes the protocol version.
func (r *Repin) pinFor(current Pin) (Pin, Code) {
	switch {
	case current == Pin{}:
		return current, NotPinned
	case current.Protocol < r.Min || current.Protocol > r.Max:
		return current, Incompatible
	}
	return Pin{r.Deployment, current.Protocol}, OK
}

func (m *Machine) purgeByOperator(c *Purge) (Outcome, error) {
	inv, err := m.invocation(c.Target)
	switch {
	case err != nil:
		return Outcome{}, err
	case inv == nil:
		return Outcome{Code: NotFound}, nil
	case inv.Status != Completed:
		return describe(NotEnded, inv), nil
	}
	outcome := describe(OK, inv)
	if err := m.dropTimer(Timer{At: inv.journalExpiresAt(), Kind: TimerPurgeJournal, ID: inv.ID}); err != nil {
		return Outcome{}, err
	}
	if c.Journal {
		pending, err := m.hasPendingSleeps(inv)
		switch {
		case pending:
			inv.Retention.Journal = 0 // its last pending sleep deletes it
		case inv.Length > 0:
			m.deleteJournal(inv)
		}
		m.st.PutInvocation(inv)
		return outcome, err
	}
	if err := m.dropTimer(Timer{At: inv.ExpiresAt, Kind: TimerPurge, ID: inv.ID}); err != nil {
		return Outcome{}, err
	}
	_, err = m.purge(inv)
	return outcome, err
}

// dropTimer deletes a timer if it is registered.
func (m *Machine) dropTimer(t Timer) error {
	registered, err := m.st.HasTimer(t)
	if err != nil {
		return fmt.Errorf("look up timer of %s: %w", t.ID, err)
	}
	if registered {
		m.st.DeleteTimer(t)
	}
	return nil
}
