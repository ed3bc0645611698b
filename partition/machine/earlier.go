package machine

import (
	"platform/internal/feature"
	"platform/internal/ids"
	"platform/internal/target"
)

// An invocation with an idempotency key and a workflow run have an ID derived from their
// key, so the ID is reused once the retention is over. Callers then find nothing, and
// create a new invocation with the same ID. A retry of the request that created the earlier
// invocation still must not create a third one: it receives the result of its own, which is
// kept for MinRetention in a separate record.

// reusable reports whether another invocation may later have the same ID.
func (t *Target) reusable(idempotencyKey *string) bool {
	return idempotencyKey != nil || t.Type == target.WorkflowRun
}

// DerivedID reports whether the ID of an invocation follows from its keys, so that requests share it.
func (c *Invoke) DerivedID() bool { return c.Target.reusable(c.IdempotencyKey) }

func (inv *Invocation) reusable() bool { return inv.Target.reusable(inv.IdempotencyKey) }

// Expired reports whether a completed invocation must no longer be visible to callers,
// though its record still exists. now is the partition time.
func (inv *Invocation) Expired(now int64) bool {
	return inv.Status == Completed && inv.reusable() && inv.ExpiresAt <= now
}

// expired is Expired as of this command; below the level that introduced short retentions
// it is false.
func (m *Machine) expired(inv *Invocation) bool {
	return m.level >= feature.Level2 && inv.Expired(m.now)
}

// ShortRetention reports whether the result may be forgotten for callers while a retry of
// the request can still find it.
func (c *Invoke) ShortRetention() bool {
	return c.Retention.Completion < MinRetention && c.Target.reusable(c.IdempotencyKey)
}

// ownEarlier answers a retry of a request whose invocation has ended and expired. Only
// requests with a short retention can have expired so early.
func (m *Machine) ownEarlier(c *Invoke) (outcome Outcome, found bool, err error) {
	if m.level < feature.Level2 || c.Request == 0 || !c.ShortRetention() {
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

// expire purges an invocation whose retention is over, and keeps its result for a retry of
// the request that created it.
func (m *Machine) expire(inv *Invocation) (gone bool, err error) {
	until := after(inv.CompletedAt, MinRetention)
	if m.level >= feature.Level2 && inv.reusable() && inv.Request != 0 && until > m.now {
		earlier := &Invocation{
			ID: ids.Earlier(inv.ID, inv.Request), Request: inv.Request, Life: inv.Life, Target: inv.Target, Status: Completed, Source: inv.Source,
			ServerVersion: inv.ServerVersion, CreatedAt: inv.CreatedAt, ModifiedAt: m.now, RunningAt: inv.RunningAt, CompletedAt: inv.CompletedAt,
			Attempt: inv.Attempt, Result: inv.Result, ExpiresAt: until,
		}
		earlier.Target.Type = target.StateUpdate // never listed, attached to or restarted
		m.st.PutInvocation(earlier)
		m.setTimer(Timer{At: until, Kind: TimerPurge, ID: earlier.ID})
	}
	return m.purge(inv)
}

// reuseID makes an ID available for a new invocation. It returns nil, or the earlier
// invocation if that still has pending answers or sleeps: a new record would drop the waiters
// and be woken by the sleeps, so it stays visible until then.
func (m *Machine) reuseID(inv *Invocation) (*Invocation, error) {
	pending, err := m.isNeeded(inv)
	if err != nil || pending {
		return inv, err
	}
	gone, err := m.expireNow(inv)
	if err != nil || gone {
		return nil, err
	}
	return m.invocation(inv.ID)
}

// expireNow does what the timers of an expired invocation are about to do.
func (m *Machine) expireNow(inv *Invocation) (gone bool, err error) {
	if err := m.dropTimer(Timer{At: inv.journalExpiresAt(), Kind: TimerPurgeJournal, ID: inv.ID}); err != nil {
		return false, err
	}
	if err := m.dropTimer(Timer{At: inv.ExpiresAt, Kind: TimerPurge, ID: inv.ID}); err != nil {
		return false, err
	}
	return m.expire(inv)
}
