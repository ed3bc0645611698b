package history

import (
	"errors"
	"fmt"
	"time"
)

// Entry is an entry of a ledger.
type Entry struct {
	ID string    `json:"id"`
	At time.Time `json:"at"` // when Ledger/stamp ran, by the service's clock
}

// Relay is the input of Ledger/relay.
type Relay struct {
	ID   string `json:"id"`
	Call string `json:"call"` // key of the ledger that the entry is added to by a call
	Send string `json:"send"` // key of the ledger that the entry is added to by a send
}

// Add is a client's record of one addition to a ledger.
type Add struct {
	ID       string
	Span     Span
	Outcome  Outcome
	Position int           // position in the response, -1 if unknown
	Async    bool          // an acknowledgement means that it will be added eventually
	Delay    time.Duration // earliest time of the addition, after Span.Start
}

// clockTolerance is the allowed difference between the clocks of server and service,
// which includes the truncation to milliseconds.
const clockTolerance = 2 * time.Millisecond

// CheckLedger checks a ledger after all additions have ended. It returns an error for
// acknowledged entries that are missing, duplicate entries, entries that were never
// added or were rejected, positions that differ from the response, and entries that
// contradict the real-time order of additions.
func CheckLedger(adds []Add, entries []Entry) error {
	position := make(map[string]int, len(entries))
	var errs []error
	for i, e := range entries {
		if first, duplicate := position[e.ID]; duplicate {
			errs = append(errs, fmt.Errorf("duplicate: %s is entry %d and entry %d", e.ID, first, i))
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
	var latest Add // the addition before entry i that started last
	for i, e := range entries {
		a, ok := known[e.ID]
		if !ok {
			errs = append(errs, fmt.Errorf("phantom: entry %d, %s, was never added", i, e.ID))
			continue
		}
		if !a.Async && a.Span.end(a.Outcome).Before(latest.Span.Start) {
			errs = append(errs, fmt.Errorf("out of order: %s ended before %s started but follows it", a.ID, latest.ID))
		}
		if a.Span.Start.After(latest.Span.Start) {
			latest = a
		}
		if early := a.Span.Start.Add(a.Delay - clockTolerance).Sub(e.At); a.Delay > 0 && early > 0 {
			errs = append(errs, fmt.Errorf("early: %s was added %s too early", a.ID, early))
		}
	}
	return errors.Join(errs...)
}

// check compares an addition with its entry in the ledger.
func (a Add) check(at int, present bool) error {
	switch {
	case a.Outcome == OK && !present:
		return fmt.Errorf("lost: %s was acknowledged and is missing", a.ID)
	case a.Outcome == Failed && present:
		return fmt.Errorf("phantom: %s was rejected and is entry %d", a.ID, at)
	case a.Outcome == OK && a.Position >= 0 && a.Position != at:
		return fmt.Errorf("position: %s was acknowledged as entry %d and is entry %d", a.ID, a.Position, at)
	}
	return nil
}
