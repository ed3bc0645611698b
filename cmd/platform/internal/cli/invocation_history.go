package cli

import (
	"fmt"
	"strings"

	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
	"platform/internal/units"
)

// history prints the failed attempts, pauses and cancels of an invocation.
func (a *app) history(events []client.Event) {
	heading, attempts := false, 0
	for _, e := range events {
		text := eventText(e)
		if text == "" {
			continue
		}
		if !heading {
			heading = true
			a.Print.Println()
			a.Print.Heading("Invocation History")
			if e.Sequence != nil && *e.Sequence > 0 {
				a.Print.Printf("  %s\n", a.Print.Dim("("+units.Counted(*e.Sequence, "older event")+" no longer kept)"))
			}
		}
		switch e.Type {
		case "TransientError":
			if n := e.Content.Attempts; n > 0 && n <= attempts {
				a.Print.Printf("  %s\n", a.Print.Dim("(attempts are counted from 1 again: it was suspended or cancelled in between)"))
			}
			attempts = e.Content.Attempts
		case "Resumed":
			attempts = 0
		}
		a.Print.Printf("  %s %s\n", a.Print.Dim("["+a.Print.Time(e.At)+"]"), text)
	}
}

// eventText is an event in one line; empty for those that the status shows.
func eventText(e client.Event) string {
	switch e.Type {
	case "TransientError":
		text := "attempt failed"
		if n := e.Content.Attempts; n > 0 { // a failure that repeats the one before it is no event of its own
			text = fmt.Sprintf("attempt %d failed", n)
		}
		return text + failureSuffix(&e.Content.Failure)
	case "Paused":
		text := "paused" + pausedBy(&client.Pause{Cause: e.Content.Cause, By: e.Content.By, Reason: e.Content.Reason, Attempts: e.Content.Attempts})
		if e.Content.LastFailure != nil {
			text += failureSuffix(e.Content.LastFailure)
		}
		return text
	case "Resumed":
		if e.Content.Cause == "deployment-change" {
			return "continued on deployment " + term.Clean(e.Content.Reason)
		}
		return "resumed"
	case "CancelRequested":
		return "cancellation requested"
	}
	return ""
}

// failureSuffix is the code and the first line of a failure, and the command that it concerns.
func failureSuffix(f *client.Failure) string {
	message, _, _ := strings.Cut(f.Message, "\n")
	text := fmt.Sprintf(": [%d] %s", f.Code, term.Clean(message))
	if f.RelatedIndex == nil && f.RelatedType == "" {
		return text
	}
	text += " ("
	if f.RelatedType != "" {
		text += f.RelatedType
	} else {
		text += "command"
	}
	if f.RelatedName != "" {
		text += " " + term.Clean(f.RelatedName)
	}
	if f.RelatedIndex != nil {
		text += fmt.Sprintf(", command %d", *f.RelatedIndex)
	}
	return text + ")"
}
