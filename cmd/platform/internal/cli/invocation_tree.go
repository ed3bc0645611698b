package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
)

func (a *app) invocationsDescribe() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "describe <id>",
		Aliases: []string{"get"},
		Short:   "Show one invocation and its journal",
		Args:    cobra.ExactArgs(1),
		Example: "  platform invocations describe inv_1…",
	}
	request := func(ctx context.Context, args []string) (client.Invocation, *client.Response, error) {
		if err := wantInvocationID(args[0]); err != nil {
			return client.Invocation{}, nil, err
		}
		inv, response, err := a.client.Invocation(ctx, args[0])
		return inv, response, hintNotFound(err, "It may have completed without its result being kept. `platform invocations list` shows the existing ones.")
	}
	return viewResponse(a, cmd, request, func(ctx context.Context, inv client.Invocation) error {
		a.describeInvocation(inv)
		if events, err := a.client.Events(ctx, inv.ID); err == nil { // older servers have none
			a.history(events)
		}
		return nil
	})
}

// wantInvocationID fails if an argument is not an invocation id, but perhaps a target.
func wantInvocationID(arg string) error {
	if strings.HasPrefix(arg, "inv_") {
		return nil
	}
	return &hintedError{fmt.Errorf("%q is not the id of an invocation", arg),
		"`platform invocations list " + word(strings.TrimSuffix(arg, "/")) + "` shows invocations with their ids, inv_1…"}
}

func (a *app) describeInvocation(inv client.Invocation) {
	a.print.Heading("Invocation Information")
	fields := append([]term.Field{{Name: "ID", Value: inv.ID}}, a.invocationFields(inv)...)
	fields = append(fields,
		term.Field{Name: "Created", Value: a.print.Time(inv.CreatedAt)},
		term.Field{Name: "Started", Value: a.print.Time(inv.RunningAt)},
		term.Field{Name: "Latest attempt", Value: a.print.Time(laterStart(inv))},
		term.Field{Name: "Completed", Value: a.print.Time(inv.CompletedAt)},
	)
	if inv.PinnedProtocolVersion > 0 {
		fields = append(fields, term.Field{Name: "Protocol version", Value: strconv.Itoa(inv.PinnedProtocolVersion)})
	}
	a.print.Fields("  ", fields...)
	if inv.PinnedDeploymentID != "" && inv.Status != "completed" {
		a.print.Printf("\n%s It started on this deployment and requires it until it has completed.\n", a.print.Bold("TIP:"))
	}
	a.print.Println()
	a.print.Heading("Invocation Progress")
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
	a.print.Println(caller)
	a.print.Printf(" └──(this)─> %s\n", a.print.Bold(term.Clean(inv.Target)))
	for _, entry := range inv.Journal {
		a.print.Printf("     ├── %s\n", a.entryLine(entry))
	}
	if dropped := inv.JournalSize - len(inv.Journal); dropped > 0 {
		a.print.Printf("     ├── %s\n", a.print.Dim(fmt.Sprintf("(%d entries not shown)", dropped)))
	}
	a.print.Printf("     └── %s\n", a.statusText(inv))
}

// entryLine is one entry of the journal on one line.
func (a *app) entryLine(e client.Entry) string {
	line := fmt.Sprintf("#%d ", e.Index)
	if when := a.print.Time(e.AppendedAt); when != "" {
		line += a.print.Dim("["+when+"]") + " "
	}
	line += e.Type
	for _, word := range []string{term.Clean(e.Name), term.Clean(e.InvokedTarget), e.InvokedID} {
		if word != "" {
			line += " " + word
		}
	}
	if !e.WakeupAt.IsZero() {
		line += " until " + a.print.Time(e.WakeupAt)
	}
	if e.RawLength > 0 {
		line += a.print.Dim(fmt.Sprintf(" (%d bytes)", e.RawLength))
	}
	return line
}
