package cli

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
	"platform/internal/units"
)

func (a *app) failures() *cobra.Command {
	return command.Group(&cobra.Command{
		Use:     "failures",
		Aliases: []string{"failure"},
		Short:   "Show failed invocations in groups of the same cause, and resume them",
		Long: `A failure group is the invocations of a handler that have ended with a failure, are paused after one
or are retried after one, if code and message of the failure agree. Numbers, ids and quoted values
in the message are ignored.`,
	}, a.failuresList(), a.failuresShow(), a.failuresResume(), a.failuresMute(true), a.failuresMute(false), a.failuresNote())
}

func (a *app) failuresList() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List failure groups, the latest failure first",
		Long:    "Lists failure groups, the latest failure first. Muted groups are marked as such.",
		Args:    cobra.NoArgs,
		Example: "  platform failures list\n  platform failures list --service Orders --status paused,backing-off",
	}
	var f client.Filter
	cmd.Flags().SortFlags = false
	filterFlags(cmd.Flags(), &f)
	limit := cmd.Flags().Int("limit", 100, "at most this many groups")
	return command.ViewResponse(a.App, cmd, func(ctx context.Context, _ []string) (page client.FailurePage, response *client.Response, err error) {
		f := f // --watch runs this repeatedly
		if *limit < 1 || *limit > largestPage {
			return page, nil, command.UsageError(fmt.Sprintf("--limit must be from 1 to %d", largestPage))
		}
		if err := a.completeFilter(ctx, &f); err != nil {
			return page, nil, err
		}
		return a.Client.Failures(ctx, f, *limit)
	}, func(_ context.Context, page client.FailurePage) error {
		a.failureTable(page)
		return nil
	})
}

func (a *app) failureTable(page client.FailurePage) {
	a.blockedTable(page.Blocked)
	for _, d := range page.DeadLetters {
		a.Say("%s has %s, see `platform subscriptions dead-letters list %s`.", term.Clean(d.Source), units.Counted(int(d.Records), "dead letter"), d.Subscription) //nolint:gosec // bounded
	}
	if len(page.Groups) == 0 {
		if len(page.Blocked)+len(page.DeadLetters) == 0 {
			a.Say("No failures.")
		}
		return
	}
	rows := make([][]string, len(page.Groups))
	for i, g := range page.Groups {
		rows[i] = []string{g.ID, strconv.Itoa(g.Count), term.Clean(g.Service + "/" + g.Handler), codeText(&g), a.Print.Time(g.LastSeen), markText(&g) + term.Clean(g.Message)}
	}
	a.Print.Table("", []string{"ID", "COUNT", "HANDLER", "CODE", "LAST-SEEN", "MESSAGE"}, rows)
	if page.Next != "" {
		a.Say("There are more than these; see --limit.")
	}
	if page.Other > 0 {
		a.Say("%d more failures belong to no group, because there are too many groups.", page.Other)
	}
}

// blockedTable shows the topic partitions whose next record cannot be delivered.
func (a *app) blockedTable(blocked []client.BlockedTopicPartition) {
	if len(blocked) == 0 {
		return
	}
	rows := make([][]string, len(blocked))
	for i, b := range blocked {
		rows[i] = []string{
			fmt.Sprintf("%s/%d", term.Clean(b.Topic), b.Partition), strconv.FormatInt(b.Position, 10), term.Clean(b.Service + "/" + b.Handler), b.Reason, a.Print.Time(b.Since), term.Clean(b.Message),
		}
	}
	a.Print.Table("", []string{"TOPIC-PARTITION", "OFFSET", "HANDLER", "REASON", "SINCE", "MESSAGE"}, rows)
	a.Say("These records block their topic partitions. `platform subscriptions describe %s` shows more, `platform subscriptions retry` and `skip` continue.", blocked[0].Subscription)
}

// markText formats the mark of a group: whether it is muted, and the note.
func markText(g *client.FailureGroup) (text string) {
	if g.Muted {
		text = "[muted] "
	}
	if g.Note != "" {
		text += "[" + term.Clean(strings.ReplaceAll(g.Note, "\n", " ")) + "] "
	}
	return text
}

func codeText(g *client.FailureGroup) string {
	return cmp.Or(g.ErrorCode, strconv.Itoa(g.Code))
}

func (a *app) failuresShow() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "show <group>",
		Short:   "Show a failure group",
		Args:    cobra.ExactArgs(1),
		Example: "  platform failures show fg_1f0c2a9b3d4e5f60",
	}
	return command.ViewResponse(a.App, cmd, func(ctx context.Context, args []string) (client.FailureGroup, *client.Response, error) {
		g, response, err := a.Client.Failure(ctx, args[0])
		if err != nil {
			err = command.HintNotFound(err, "`platform failures list` shows the current groups.")
		}
		return g, response, err
	}, func(_ context.Context, g client.FailureGroup) error {
		a.showFailure(&g)
		return nil
	})
}

func (a *app) showFailure(g *client.FailureGroup) {
	var statuses []string
	for _, status := range append(openStatuses[:len(openStatuses):len(openStatuses)], "completed") {
		if n := g.ByStatus[status]; n > 0 {
			statuses = append(statuses, fmt.Sprintf("%d %s", n, status))
		}
	}
	keys := ""
	if g.Keys > 0 {
		keys = strconv.Itoa(g.Keys)
	}
	a.Print.Fields("",
		term.Field{Name: "Group", Value: g.ID},
		term.Field{Name: "Handler", Value: term.Clean(g.Service + "/" + g.Handler)},
		term.Field{Name: "Code", Value: codeText(g)},
		term.Field{Name: "Message", Value: term.Clean(g.Message)},
		term.Field{Name: "Invocations", Value: fmt.Sprintf("%d (%s)", g.Count, strings.Join(statuses, ", "))},
		term.Field{Name: "Keys", Value: keys},
		term.Field{Name: "First seen", Value: a.Print.Time(g.FirstSeen)},
		term.Field{Name: "Last seen", Value: a.Print.Time(g.LastSeen)},
		term.Field{Name: "Deployments", Value: strings.Join(g.Deployments, ", ")},
		term.Field{Name: "Sample", Value: g.Sample},
		term.Field{Name: "Muted", Value: mutedText(g)},
		term.Field{Name: "Note", Value: term.Clean(g.Note)},
	)
	a.Say("`platform invocations list --failure-group %s` lists them, `platform invocations describe %s` shows the sample.", g.ID, g.Sample)
}

func (a *app) failuresResume() *cobra.Command {
	return a.resume(&cobra.Command{
		Use:   "resume <group>",
		Short: "Resume the paused invocations of a failure group, and retry those that are backing off",
		Long: `Resumes invocations that failed for the same cause. They keep the deployment that they started on,
unless --deployment names another one.`,
		Example: "  platform failures resume fg_1f0c2a9b3d4e5f60 --deployment latest",
	})
}
