package machine

import (
	"fmt"
	"maps"
	"slices"

	"platform/internal/target"
	"platform/partition/journal"
)

// restart creates a new invocation from a prefix of the journal of a completed one. A
// repeated command finds the invocation that the first one created.
func (m *Machine) restart(c *Restart) (Outcome, error) {
	existing, err := m.invocation(c.New)
	if err != nil || existing != nil {
		return describeExisting(existing), err
	}
	old, err := m.invocation(c.Target)
	if err != nil {
		return Outcome{}, err
	}
	if refusal := restartable(old, c.From); refusal != OK {
		if refusal == NotFound {
			return Outcome{Code: refusal}, nil
		}
		return describe(refusal, old), nil
	}
	pin, refusal := c.pin(old.Pin)
	if refusal != OK {
		return Outcome{Code: refusal}, nil
	}
	entries, complete, err := m.prefix(old, c.From)
	if err != nil {
		return Outcome{}, err
	}
	if !complete {
		return Outcome{Code: Unanswered}, nil
	}
	inv := &Invocation{
		ID: c.New, Life: m.meta.Attempt, Target: old.Target, Source: Source{Kind: FromRestart, Caller: old.ID},
		LimitKey: old.LimitKey, Trace: old.Trace, Retention: old.Retention, RestartedFrom: old.ID,
		ServerVersion: c.ServerVersion, CreatedAt: m.now, Pin: pin, Priority: old.Priority,
	}
	inv.initFlow()
	if c.From > 0 {
		inv.Seed = old.RandomSeed() // values drawn from it are in the journal
	}
	if err := m.copyEntries(inv, entries); err != nil {
		return Outcome{}, err
	}
	if err := m.admit(inv, entries[0].Payload); err != nil {
		return Outcome{}, err
	}
	return describe(OK, inv), nil
}

func describeExisting(inv *Invocation) Outcome {
	if inv == nil {
		return Outcome{}
	}
	return describe(OK, inv)
}

// restartable returns OK if a new invocation can be created from inv, and the reason
// otherwise.
func restartable(inv *Invocation, from uint32) Code {
	switch {
	case inv == nil || inv.Target.Type == target.StateUpdate:
		return NotFound
	case inv.Target.Type.Workflow():
		return Unsupported
	case inv.Waiting():
		return NotStarted
	case inv.Status != Completed:
		return NotEnded
	case inv.Length == 0:
		return NoInput
	case from >= inv.Length:
		return OutOfRange
	}
	return OK
}

// pin returns the deployment of the new invocation. Copied commands fix the protocol
// version; the input alone does not.
func (c *Restart) pin(old Pin) (Pin, Code) {
	switch {
	case c.Repin != nil && c.From == 0:
		return Pin{c.Repin.Deployment, c.Repin.Max}, OK
	case c.Repin != nil:
		return c.Repin.pinFor(old)
	case c.Keep || c.From > 0:
		return old, OK
	}
	return Pin{}, OK
}

// prefix returns the journal up to and including entry last, and the completions of its
// commands wherever they are. complete is false if a command has no completion.
func (m *Machine) prefix(inv *Invocation, last uint32) (entries []journal.Entry, complete bool, err error) {
	pending := map[uint32]bool{} // completions of the commands so far
	for i := range last + 1 {
		e, completion, err := m.entry(inv, i)
		if err != nil {
			return nil, false, err
		}
		entries = append(entries, e)
		if e.Type.IsCommand() {
			for _, id := range journal.CompletionsOf(e) {
				pending[id] = true
			}
		} else if !completion.Signal {
			delete(pending, completion.Index)
		}
	}
	// The rest may be long, and is read only for completions that are in it.
	if missing, err := m.anyPending(inv, pending); err != nil || missing {
		return nil, false, err
	}
	for i := last + 1; i < inv.Length && len(pending) > 0; i++ {
		e, completion, err := m.entry(inv, i)
		if err != nil {
			return nil, false, err
		}
		if !e.Type.IsCommand() && !completion.Signal && pending[completion.Index] {
			entries = append(entries, e)
			delete(pending, completion.Index)
		}
	}
	return entries, len(pending) == 0, nil
}

// entry reads an entry and, of a notification, its ID.
func (m *Machine) entry(inv *Invocation, i uint32) (e journal.Entry, id journal.NotificationID, err error) {
	if e, err = m.st.Entry(inv.ID, i); err != nil {
		return e, id, fmt.Errorf("read entry %d of %s: %w", i, inv.ID, err)
	}
	if e.Type.IsCommand() {
		return e, id, nil
	}
	n, err := journal.ParseNotification(e.Payload)
	if err != nil {
		return e, id, fmt.Errorf("entry %d of %s: %w", i, inv.ID, err)
	}
	return e, n.ID, nil
}

// anyPending reports whether one of the completions is not in the journal.
func (m *Machine) anyPending(inv *Invocation, completions map[uint32]bool) (missing bool, err error) {
	for _, id := range slices.Sorted(maps.Keys(completions)) {
		how, err := m.st.Notified(inv.ID, journal.Completion(id))
		if err != nil {
			return false, fmt.Errorf("look up completion %d of %s: %w", id, inv.ID, err)
		}
		if how == journal.Pending {
			return true, nil
		}
	}
	return false, nil
}

// copyEntries starts the journal of inv with entries of another invocation.
func (m *Machine) copyEntries(inv *Invocation, entries []journal.Entry) error {
	for i, e := range entries {
		m.append(inv, e.Type, e.Payload)
		if e.Type.IsCommand() {
			inv.Commands++
			if e.Type == journal.Output {
				inv.Output = uint32(i)
			}
			continue
		}
		n, err := journal.ParseNotification(e.Payload)
		if err != nil {
			return fmt.Errorf("entry %d of %s: %w", i, inv.RestartedFrom, err)
		}
		m.countSignal(inv, n.ID, e.Payload)
		if _, err := m.index(inv, n.ID, n.Settled()); err != nil {
			return err
		}
	}
	return nil
}

// RandomSeed is the seed of the handler's random numbers, the same for each attempt.
func (inv *Invocation) RandomSeed() uint64 {
	if inv.Seed != 0 {
		return inv.Seed
	}
	return inv.ID.RandomSeed()
}
