package history

import (
	"errors"
	"fmt"
	"time"
)

// Entry is one line of a ledger.
type Entry struct {
	ID string    `json:"id"`
	At time.Time `json:"at"` // when Ledger/stamp ran, on the service's clock
}

// Relay is the input of Ledger/relay.
type Relay struct {
	ID   string `json:"id"`
	Call string `json:"call"` // key of the ledger that gets an entry by a call
	Send string `json:"send"` // key of the ledger that gets an entry by a send
}

// Add is what a client knows of one addition to a ledger.
type Add struct {
	ID       string
	Span     Span
	Outcome  Outcome
	Position int           // where the answer said the entry is, -1: it did not say
	Late     bool          // an acknowledgement says that it will be added, not that it is
	Delay    time.Duration // it must not be added before this has passed since the start
}

// earliness is what the server's clock may differ from the service's, in
// milliseconds cut off.
const earliness = 2 * time.Millisecond

// CheckLedger tells what is wrong with a ledger that nobody adds to any more:
// acknowledged entries that are missing, entries that are there twice, that nobody
// has added or that were refused, and positions that contradict the answers or the
// order in which additions came one after the other.
func CheckLedger(adds []Add, entries []Entry) error {
	position := make(map[string]int, len(entries))
	var errs []error
	for i, e := range entries {
		if first, twice := position[e.ID]; twice {
			errs = append(errs, fmt.Errorf("doubled: %s is entry %d and again entry %d", e.ID, first, i))
			continue
		}
		position[e.ID] = i
	}
	known := make(map[string]Add, len(adds))
	for _, a := range adds {
		known[a.ID] = a
		at, present := position[a.ID]
		errs = append(errs, a.check(at, present))
	}
	var latest Add // of those before, the one that started last
	for i, e := range entries {
		a, ok := known[e.ID]
		if !ok {
			errs = append(errs, fmt.Errorf("phantom: entry %d, %s, was added by nobody", i, e.ID))
			continue
		}
		if !a.Late && a.Span.end(a.Outcome).Before(latest.Span.Start) {
			errs = append(errs, fmt.Errorf("disorder: %s ended before %s began but comes after it", a.ID, latest.ID))
		}
		if a.Span.Start.After(latest.Span.Start) {
			latest = a
		}
		if early := a.Span.Start.Add(a.Delay - earliness).Sub(e.At); a.Delay > 0 && early > 0 {
			errs = append(errs, fmt.Errorf("early: %s came %s before its time", a.ID, early))
		}
	}
	return errors.Join(errs...)
}

// check compares an addition with its place in the ledger.
func (a Add) check(at int, present bool) error {
	switch {
	case a.Outcome == OK && !present:
		return fmt.Errorf("lost: %s was acknowledged and is missing", a.ID)
	case a.Outcome == Failed && present:
		return fmt.Errorf("phantom: %s was refused and is entry %d", a.ID, at)
	case a.Outcome == OK && a.Position >= 0 && a.Position != at:
		return fmt.Errorf("changed: %s was answered position %d and is entry %d", a.ID, a.Position, at)
	}
	return nil
}
