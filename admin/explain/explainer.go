package explain

import (
	"fmt"
	"regexp"
	"slices"
	"time"
)

// explainer builds an explanation.
type explainer struct {
	reader Reader
	now    time.Time
	row    Row // of sys_invocation
	Explanation

	callees     int    // other invocations whose results are awaited
	combination string // firstOf or allOf, if the results of WaitingFor are combined like that
}

func (e *explainer) summary(format string, args ...any) { e.Summary = fmt.Sprintf(format, args...) }

func (e *explainer) detail(title, format string, args ...any) {
	e.Details = append(e.Details, Detail{title, fmt.Sprintf(format, args...)})
}

// earlier adds a detail before the one about the journal, which introduces the list of what the invocation waits for.
func (e *explainer) earlier(title, format string, args ...any) {
	at := slices.IndexFunc(e.Details, func(d Detail) bool { return d.Title == journalDetail })
	if at < 0 {
		at = len(e.Details)
	}
	e.Details = slices.Insert(e.Details, at, Detail{title, fmt.Sprintf(format, args...)})
}

// journalDetail is the title of the detail about commands without a completion.
const journalDetail = "Journal"

func (e *explainer) waits(kind WaitKind, id, format string, args ...any) {
	e.WaitingFor = append(e.WaitingFor, Wait{Kind: kind, Text: fmt.Sprintf(format, args...), ID: id})
}

// next adds a step. The first text in backquotes is its command.
func (e *explainer) next(format string, args ...any) {
	step := Step{Text: fmt.Sprintf(format, args...)}
	if command := quotedCommand.FindStringSubmatch(step.Text); command != nil {
		step.Command = command[1]
	}
	for _, known := range e.NextSteps {
		if known == step {
			return
		}
	}
	e.NextSteps = append(e.NextSteps, step)
}

var quotedCommand = regexp.MustCompile("`(platform [^`]*)`")
