package query

import (
	"fmt"
	"net/http"
	"strings"

	"platform/internal/target"
	"platform/partition"
	"platform/partition/journal"
	"platform/partition/machine"
)

// shownStatuses maps statuses shown to users to stored ones.
var shownStatuses = map[string]machine.Status{
	"scheduled": machine.Scheduled, "pending": machine.Inboxed, "ready": machine.Invoked, "running": machine.Invoked,
	"backing-off": machine.Invoked, "suspended": machine.Suspended, "paused": machine.Paused, "completed": machine.Completed,
}

// storedStatuses maps the names in the tables to stored statuses.
var storedStatuses = map[string]machine.Status{
	"scheduled": machine.Scheduled, "inboxed": machine.Inboxed, "invoked": machine.Invoked,
	"suspended": machine.Suspended, "paused": machine.Paused, "completed": machine.Completed,
}

func storedStatus(s machine.Status) string {
	return [...]string{"", "scheduled", "inboxed", "invoked", "suspended", "paused", "completed"}[s]
}

// StatusOf returns the status shown to users: the stored one, refined by the leader's state of
// attempts.
func StatusOf(r partition.Record) string {
	switch {
	case r.Status == machine.Inboxed:
		return "pending"
	case r.Status != machine.Invoked:
		return storedStatus(r.Status)
	case r.Attempts != nil && r.Attempts.InFlight:
		return "running"
	case r.Attempts != nil && r.Attempts.RetryCount > 0:
		return "backing-off"
	}
	return "ready"
}

// ServiceType returns the type of the service of a target.
func ServiceType(t target.Type) string {
	switch {
	case t.Workflow():
		return "workflow"
	case t.Keyed():
		return "virtual_object"
	}
	return "service"
}

// failureNames are the names of codes in failure texts.
var failureNames = map[uint32]string{
	http.StatusBadRequest: "Bad Request", http.StatusNotFound: "Not Found", http.StatusConflict: "Aborted",
	http.StatusGone: "Gone", http.StatusUnsupportedMediaType: "Unsupported Media Type", 470: "Not Ready",
	http.StatusInternalServerError: "Internal", 570: "Journal Mismatch", 571: "Protocol Violation",
	572: "Awaiting Two Async Results", 573: "Unsupported Feature",
}

// FailureText returns "[code name] message", followed by the stack trace and metadata on separate
// lines.
func FailureText(code uint32, message, stacktrace string, metadata []journal.Metadata) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[%d", code)
	if name := failureNames[code]; name != "" {
		b.WriteString(" " + name)
	}
	b.WriteString("] " + message)
	if stacktrace != "" {
		b.WriteString("\n" + stacktrace)
	}
	if len(metadata) > 0 {
		b.WriteString("\nmetadata:")
		for _, m := range metadata {
			b.WriteString("\n" + m.Key + ": " + m.Value)
		}
	}
	return b.String()
}

// lastFailure returns the failure of the last attempt: for running invocations from the leader,
// for paused ones from the record.
func lastFailure(r partition.Record) *machine.AttemptFailure {
	if r.Attempts != nil {
		return r.Attempts.LastFailure
	}
	return r.Failure
}

func resultFailure(r *journal.Result) value {
	if r == nil || r.Failure == nil {
		return nil
	}
	return FailureText(r.Failure.Code, r.Failure.Message, "", r.Failure.Metadata)
}
