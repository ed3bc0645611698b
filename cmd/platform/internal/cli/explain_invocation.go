package cli

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"platform/admin/explain"
	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
	"platform/internal/ids"
)

func (a *app) explainInvocation(ctx context.Context, id string, asJSON bool) error {
	e, err := a.explained(ctx, id)
	if err != nil {
		return err
	}
	if asJSON {
		return a.PrintJSON(e)
	}
	a.Print.Printf("%s %s\n", a.Print.Bold(e.ID), term.Clean(e.Target))
	a.Print.Printf("%s\n\n", a.colourStatus(e.Status, ""))
	a.Print.Heading("Why")
	for _, line := range a.reasons(e) {
		a.Print.Printf("  %s\n", line)
	}
	if len(e.NextSteps) == 0 {
		return nil
	}
	a.Print.Println()
	a.Print.Heading("What to do")
	for _, step := range e.NextSteps {
		a.Print.Printf("  %s\n", a.explanationText(step.Text))
	}
	return nil
}

// explained requests the explanation of an invocation.
func (a *app) explained(ctx context.Context, id string) (*explain.Explanation, error) {
	e, err := a.Client.Explain(ctx, id)
	_, malformed := ids.ParseInvocation(id)
	switch {
	case malformed != nil && (client.HasStatus(err, http.StatusBadRequest) || client.HasStatus(err, http.StatusNotFound)):
		return nil, command.WithHint(fmt.Errorf("%q is not the id of an invocation: %w", id, malformed),
			"`platform invocations list` shows invocations with their ids.")
	case !client.HasStatus(err, http.StatusNotFound):
		return e, err
	case strings.Contains(err.Error(), "there is no route"):
		return nil, a.withoutExplanations(ctx)
	}
	return nil, command.WithHint(fmt.Errorf("there is no invocation %s", term.Clean(id)),
		"It may have been purged: results are kept for the retention of their service. `platform invocations list` shows the existing ones.")
}

// withoutExplanations is the error of a server that is too old to explain invocations.
func (a *app) withoutExplanations(ctx context.Context) error {
	server, err := a.Client.Version(ctx)
	if err != nil {
		return err
	}
	return command.WithHint(fmt.Errorf("the server, version %s, cannot explain invocations", term.Clean(server.Version)),
		"Upgrade the server, or use the command-line client of its version.")
}

// reasons are the lines of an explanation, apart from what to do.
func (a *app) reasons(e *explain.Explanation) []string {
	lines := []string{a.explanationText(e.Summary)}
	for _, detail := range e.Details {
		lines = append(lines, a.explanationText(detail.Text))
	}
	waits := e.WaitingFor
	if len(waits) == 1 && !waits[0].Cycle && slices.ContainsFunc(lines, func(line string) bool { return strings.HasSuffix(line, a.explanationText(waits[0].Text)+".") }) {
		return append(lines, a.reasonsOf(&waits[0], "- ")...) // it has been named
	}
	return append(lines, a.waitLines(waits, "- ")...)
}

// waitLines are what an invocation waits for, and below each what that waits for.
func (a *app) waitLines(waits []explain.Wait, bullet string) (lines []string) {
	for i := range waits[:min(len(waits), maxWaitLines)] {
		wait := &waits[i]
		line := bullet + a.explanationText(wait.Text)
		if wait.Cycle {
			line += " (a cycle: they wait for each other)"
		}
		lines = append(append(lines, line), a.reasonsOf(wait, "  "+bullet)...)
	}
	if more := len(waits) - maxWaitLines; more > 0 {
		lines = append(lines, bullet+"and "+strconv.Itoa(more)+" more")
	}
	return lines
}

// maxWaitLines limits how many of the things that an invocation waits for are printed.
const maxWaitLines = 10

// reasonsOf are the lines of what an awaited invocation waits for or, if that is unknown, its status.
func (a *app) reasonsOf(wait *explain.Wait, bullet string) []string {
	if wait.Summary != "" && len(wait.WaitingFor) == 0 {
		return []string{bullet + a.explanationText(wait.Summary)}
	}
	return a.waitLines(wait.WaitingFor, bullet)
}

// explanationText is a text of an explanation in the format of this client: all but its first line
// are indented, and times are in the user's format.
func (a *app) explanationText(text string) string {
	text = timeInText.ReplaceAllStringFunc(term.Clean(text), func(point string) string {
		t, err := time.Parse(time.RFC3339, point)
		if err != nil {
			return point
		}
		return a.Print.Time(t)
	})
	return strings.ReplaceAll(text, "\n", "\n    ")
}

var timeInText = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`)

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}
