package machine

import (
	"platform/internal/feature"
	"platform/internal/ids"
)

// An invocation with an idempotency key and the run of a workflow have an id that
// follows from their key, so the id is used again once the retention is over. Callers
// then find nothing, and start another life of the id. A retry of the request that
// started the earlier life still must not start a third one: it is told the result of
// its own, which is kept for MinRetention in a record that nothing else finds.

// reusable reports whether another invocation may follow under the same id.
func (t *Target) reusable(idempotencyKey *string) bool {
	return idempotencyKey != nil || t.Type == WorkflowRun
}

func (inv *Invocation) reusable() bool { return inv.Target.reusable(inv.IdempotencyKey) }

// Forgotten reports whether callers must no longer find a completed invocation, though
// its record is still there. now is the partition time.
func (inv *Invocation) Forgotten(now int64) bool {
	return inv.Status == Completed && inv.reusable() && inv.ExpiresAt <= now
}

// forgotten is Forgotten as of this command, from the level on that has short retentions.
func (m *Machine) forgotten(inv *Invocation) bool {
	return m.level >= feature.Level2 && inv.Forgotten(m.now)
}

// ownEarlier answers a retry of a request whose invocation has ended and is forgotten.
// Only a request with a short retention can have been forgotten so early.
func (m *Machine) ownEarlier(c *Invoke) (outcome Outcome, found bool, err error) {
	if m.level < feature.Level2 || c.Request == 0 || c.Retention.Completion >= MinRetention || !c.Target.reusable(c.IdempotencyKey) {
		return Outcome{}, false, nil
	}
	earlier, err := m.invocation(ids.Earlier(c.ID, c.Request))
	if earlier == nil || err != nil {
		return Outcome{}, false, err
	}
	outcome = describe(Existing, earlier)
	outcome.Own = true
	return outcome, true, nil
}

// forget purges an invocation whose retention is over, and keeps its result for a retry
// of the request that made it.
func (m *Machine) forget(inv *Invocation) error {
	until := after(inv.CompletedAt, MinRetention)
	if m.level >= feature.Level2 && inv.reusable() && inv.Request != 0 && until > m.now {
		earlier := &Invocation{
			ID: ids.Earlier(inv.ID, inv.Request), Request: inv.Request, Life: inv.Life, Target: inv.Target, Status: Completed, Source: inv.Source,
			ServerVersion: inv.ServerVersion, CreatedAt: inv.CreatedAt, ModifiedAt: m.now, RunningAt: inv.RunningAt, CompletedAt: inv.CompletedAt,
			Attempt: inv.Attempt, Result: inv.Result, ExpiresAt: until,
		}
		earlier.Target.Type = StateUpdate // which nobody lists, attaches to or restarts
		m.st.PutInvocation(earlier)
		m.setTimer(Timer{At: until, Kind: TimerPurge, ID: earlier.ID})
	}
	return m.purge(inv)
}

// followed makes room for another life of an id. It returns nil, or the earlier life if that
// still owes answers: a new record would drop those who wait, so it is found a moment longer.
func (m *Machine) followed(inv *Invocation) (*Invocation, error) {
	if owes, err := m.owes(inv); err != nil || owes {
		return inv, err
	}
	return nil, m.forgetNow(inv)
}

// forgetNow does what the timers of a forgotten invocation are about to do.
func (m *Machine) forgetNow(inv *Invocation) error {
	if err := m.dropTimer(Timer{At: inv.journalExpiresAt(), Kind: TimerPurgeJournal, ID: inv.ID}); err != nil {
		return err
	}
	if err := m.dropTimer(Timer{At: inv.ExpiresAt, Kind: TimerPurge, ID: inv.ID}); err != nil {
		return err
	}
	return m.forget(inv)
}
