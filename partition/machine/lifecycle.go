package machine

import (
	"errors"
	"fmt"
	"slices"
)

// errTransition is wrapped when a status change is not in the lifecycle table. It means
// that the tables are damaged.
var errTransition = errors.New("no such transition")

var statusNames = [...]string{"new", "scheduled", "inboxed", "invoked", "suspended", "paused", "completed"}

// String returns the status in lower case; the zero value, of a record that is not stored
// yet, is "new".
func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return fmt.Sprintf("status(%d)", uint8(s))
}

// from lists the allowed source statuses of each status.
var from = [...][]Status{
	Scheduled: {0},
	Inboxed:   {0, Scheduled, Suspended, Paused},
	Invoked:   {0, Scheduled, Inboxed, Invoked, Suspended, Paused},
	Suspended: {Invoked},
	Paused:    {Invoked, Suspended, Inboxed},
	Completed: {Scheduled, Inboxed, Invoked, Suspended, Paused},
}

// move changes the status of inv and its modification time.
func (inv *Invocation) move(to Status, now int64) error {
	if !slices.Contains(from[to], inv.Status) {
		return fmt.Errorf("invocation %s: %s to %s: %w", inv.ID, inv.Status, to, errTransition)
	}
	if inv.Status == Paused && to != Completed {
		inv.recordResume(now)
	}
	inv.Status, inv.ModifiedAt = to, now
	return nil
}
