package machine

import (
	"fmt"

	"platform/internal/feature"
	"platform/internal/ids"
	"platform/partition/journal"
)

// Pending sleeps of an invocation that ends are found in its journal, from the end on. To
// bound what one log entry reads, the rest is left to a timer that is due immediately and
// contains the number of entries that have not been read. Until then the invocation keeps
// its journal, and is not purged. Below feature level 4 the journal is read in one entry.

// dropSleeps deletes the timers of the pending sleeps in the first entries of the journal,
// or schedules the rest.
func (m *Machine) dropSleeps(inv *Invocation, entries uint32) error {
	for ; entries > 0 && inv.Sleeps > 0; entries-- {
		if !m.mayRead() {
			m.setTimer(Timer{At: m.now, Kind: TimerDropSleeps, ID: inv.ID, Completion: entries})
			return nil
		}
		e, err := m.st.Entry(inv.ID, entries-1)
		if err != nil {
			return fmt.Errorf("read entry %d of %s: %w", entries-1, inv.ID, err)
		}
		m.used.journalReads += entryOverhead + len(e.Payload)
		if e.Type != journal.Sleep {
			continue
		}
		c, err := journal.ParseSleep(e.Payload)
		if err != nil {
			return fmt.Errorf("entry %d of %s: %w", entries-1, inv.ID, err)
		}
		if err := m.deleteSleeps(inv, c); err != nil {
			return err
		}
	}
	if m.level >= feature.Level4 {
		inv.Sleeps = 0 // two sleeps with one completion ID have one timer
	}
	return nil
}

// dropMoreSleeps continues dropSleeps when its timer fires, and then deletes a journal whose
// retention is over.
func (m *Machine) dropMoreSleeps(inv *Invocation, entries uint32) error {
	if err := m.dropSleeps(inv, min(entries, inv.Length)); err != nil {
		return err
	}
	if inv.Sleeps == 0 && inv.Length > 0 && inv.journalExpiresAt() <= m.now {
		m.deleteJournal(inv)
	}
	m.st.PutInvocation(inv)
	return nil
}

// hasPendingSleeps reports whether timers of a completed invocation are still to be deleted.
func (m *Machine) hasPendingSleeps(inv *Invocation) (bool, error) {
	if m.level < feature.Level4 || inv.Sleeps == 0 {
		return false, nil
	}
	err := m.dropSleeps(inv, inv.Length)
	m.st.PutInvocation(inv)
	return inv.Sleeps > 0, err
}

// needsJournal reports whether sleeps of a completed invocation are still to be found in its
// journal.
func (m *Machine) needsJournal(inv *Invocation) bool {
	return m.level >= feature.Level4 && inv.Sleeps > 0
}

// deleteSleeps deletes the timers of those sleeps that are pending.
func (m *Machine) deleteSleeps(inv *Invocation, sleeps ...journal.SleepCommand) error {
	for _, c := range sleeps {
		if inv.Sleeps == 0 {
			break
		}
		t := sleepTimer(inv.ID, c)
		pending, err := m.st.HasTimer(t)
		if err != nil {
			return fmt.Errorf("look up timer of %s: %w", inv.ID, err)
		}
		if pending {
			m.st.DeleteTimer(t)
			inv.Sleeps--
		}
	}
	return nil
}

// wakeUp completes a sleep.
func (m *Machine) wakeUp(inv *Invocation, sleep uint32) error {
	if inv.Status != Completed {
		inv.Sleeps--
		return m.notify(inv, sleepCompletion(sleep))
	}
	if m.level >= feature.Level4 && inv.Sleeps > 0 {
		inv.Sleeps--
		m.st.PutInvocation(inv)
	}
	return nil
}

func sleepCompletion(sleep uint32) notification {
	return completion(journal.SleepCompletion, sleep, journal.NewVoid(sleep))
}

func sleepTimer(id ids.Invocation, c journal.SleepCommand) Timer {
	return Timer{At: c.WakeUpTime, Kind: TimerSleep, ID: id, Completion: c.Completion}
}
