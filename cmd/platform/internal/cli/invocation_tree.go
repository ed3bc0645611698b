package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
)

func (a *app) invocationsDescribe() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "describe <id | target>",
		Aliases: []string{"get"},
		Short:   "Show one invocation and its journal",
		Long: `Shows one invocation and its journal. A target, such as <object>/<key>, selects its only unfinished
invocation or, if it has none, the only one that is kept.`,
		Args:    cobra.ExactArgs(1),
		Example: "  platform invocations describe inv_1…\n  platform invocations describe Signup/ada/run",
	}
	request := func(ctx context.Context, args []string) (client.Invocation, *client.Response, error) {
		id, err := a.invocationID(ctx, args[0])
		if err != nil {
			return client.Invocation{}, nil, err
		}
		inv, response, err := a.Client.Invocation(ctx, id)
		return inv, response, command.HintNotFound(err, "It may have completed without its result being kept. `platform invocations list` shows the existing ones.")
	}
	return command.ViewResponse(a.App, cmd, request, func(ctx context.Context, inv client.Invocation) error {
		a.describeInvocation(inv)
		if events, err := a.Client.Events(ctx, inv.ID); err == nil { // older servers have none
			a.history(events)
		}
		return nil
	})
}

// invocationID returns the id of an invocation that is given by its id or its target. A target must have one
// unfinished invocation or, if it has none, one that is kept.
func (a *app) invocationID(ctx context.Context, arg string) (string, error) {
	if strings.HasPrefix(arg, "inv_") {
		return arg, nil
	}
	target := strings.TrimSuffix(arg, "/")
	list := func(flags string) string {
		return "`platform invocations list " + word(target) + flags + "` shows invocations with their ids, inv_1…"
	}
	if !strings.Contains(target, "/") {
		return "", command.WithHint(fmt.Errorf("%q is not the id of an invocation", arg), list(""))
	}
	q, err := a.queryOf(ctx, target)
	if err != nil {
		return "", err
	}
	q.Limit = 2
	for _, among := range []struct {
		statuses []string
		flags    string
	}{{openStatuses, " --active"}, {nil, ""}} {
		q.Status = among.statuses
		found, _, err := a.collect(ctx, q, nil)
		switch {
		case err != nil:
			return "", err
		case len(found) == 1:
			return found[0].ID, nil
		case len(found) > 1:
			return "", command.WithHint(fmt.Errorf("%s has several invocations", term.Clean(target)), list(among.flags))
		}
	}
	return "", command.WithHint(fmt.Errorf("%s has no invocations", term.Clean(target)), "Completed invocations are deleted after their retention time.")
}

func (a *app) describeInvocation(inv client.Invocation) {
	a.Print.Heading("Invocation Information")
	fields := append([]term.Field{{Name: "ID", Value: inv.ID}}, a.invocationFields(inv)...)
	fields = append(fields,
		term.Field{Name: "Created", Value: a.Print.Time(inv.CreatedAt)},
		term.Field{Name: "Started", Value: a.Print.Time(inv.RunningAt)},
		term.Field{Name: "Latest attempt", Value: a.Print.Time(laterStart(inv))},
		term.Field{Name: "Completed", Value: a.Print.Time(inv.CompletedAt)},
	)
	if inv.PinnedProtocolVersion > 0 {
		fields = append(fields, term.Field{Name: "Protocol version", Value: strconv.Itoa(inv.PinnedProtocolVersion)})
	}
	a.Print.Fields("  ", fields...)
	if inv.PinnedDeploymentID != "" && inv.Status != "completed" {
		a.Print.Printf("\n%s It started on this deployment and requires it until it has completed.\n", a.Print.Bold("TIP:"))
	}
	a.Print.Println()
	a.Print.Heading("Invocation Progress")
	a.progress(inv)
}

// progress prints the journal as a tree below the caller.
func (a *app) progress(inv client.Invocation) {
	caller := "[Ingress]"
	if inv.InvokedByID != "" {
		caller = term.Clean(inv.InvokedByTarget) + " " + inv.InvokedByID
	} else if inv.InvokedBy != "" && inv.InvokedBy != "ingress" {
		caller = "[" + inv.InvokedBy + "]"
	}
	a.Print.Println(caller)
	a.Print.Printf(" └──(this)─> %s\n", a.Print.Bold(term.Clean(inv.Target)))
	for _, entry := range inv.Journal {
		a.Print.Printf("     ├── %s\n", a.entryLine(entry))
	}
	if dropped := inv.JournalSize - len(inv.Journal); dropped > 0 {
		a.Print.Printf("     ├── %s\n", a.Print.Dim(fmt.Sprintf("(%d entries not shown)", dropped)))
	}
	if inv.Status == "completed" && inv.JournalSize == 0 {
		a.Print.Printf("     ├── %s\n", a.Print.Dim("(the journal is no longer kept)"))
	}
	a.Print.Printf("     └── %s\n", a.statusText(inv))
}

// entryLine is one entry of the journal on one line.
func (a *app) entryLine(e client.Entry) string {
	line := fmt.Sprintf("#%d ", e.Index)
	if when := a.Print.Time(e.AppendedAt); when != "" {
		line += a.Print.Dim("["+when+"]") + " "
	}
	line += e.Type
	for _, word := range []string{term.Clean(e.Name), term.Clean(e.InvokedTarget), e.InvokedID} {
		if word != "" {
			line += " " + word
		}
	}
	if !e.WakeupAt.IsZero() {
		line += " until " + a.Print.Time(e.WakeupAt)
	}
	if e.RawLength > 0 {
		line += a.Print.Dim(fmt.Sprintf(" (%d bytes)", e.RawLength))
	}
	return line
}
