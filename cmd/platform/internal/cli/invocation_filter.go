package cli

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
	"platform/internal/units"
)

// filterFlags adds the flags that select invocations.
func filterFlags(flags *pflag.FlagSet, f *client.Filter) {
	flags.StringSliceVar(&f.Service, "service", nil, "only these services")
	flags.StringSliceVar(&f.Handler, "handler", nil, "only these handlers")
	flags.StringArrayVar(&f.Key, "key", nil, "only these object keys or workflow ids (repeatable)")
	flags.StringSliceVar(&f.Scope, "scope", nil, "only these scopes")
	flags.StringSliceVar(&f.LimitKey, "limit-key", nil, "only these limit keys")
	flags.StringArrayVar(&f.IdempotencyKey, "idempotency-key", nil, "only these idempotency keys (repeatable)")
	flags.StringSliceVar(&f.Deployment, "deployment", nil, "only those pinned to these deployments (ids or addresses)")
	flags.StringSliceVar(&f.Deployment, "dp", nil, "")
	_ = flags.MarkHidden("dp")
	flags.StringSliceVar(&f.InvokedBy, "invoked-by", nil, "only those created by these: ingress, service, subscription, restart_as_new")
	flags.StringSliceVar(&f.Status, "status", nil, "only these: "+strings.Join(openStatuses, ", ")+", completed")
	flags.StringSliceVar(&f.Result, "result", nil, "only those that have ended with success, failure, cancelled or killed")
	flags.StringSliceVar(&f.ErrorCode, "error-code", nil, "only those with these codes of a failure, such as RT0007 or 500")
	flags.StringVar(&f.FailureGroup, "failure-group", "", "only those of this failure group (see failures list)")
	for _, t := range timeFlags(f) {
		flags.StringVar(t.value, t.name, "", t.help+": a time, or a duration before now such as 1h")
	}
}

// timeFlag is a flag with a time.
type timeFlag struct {
	name, help string
	value      *string
}

func timeFlags(f *client.Filter) []timeFlag {
	return []timeFlag{
		{"created-after", "only those created then or later", &f.CreatedAfter}, {"created-before", "only those created before", &f.CreatedBefore},
		{"modified-after", "only those that changed their status then or later", &f.ModifiedAfter}, {"modified-before", "only those that last changed their status before", &f.ModifiedBefore},
		{"completed-after", "only those that ended then or later", &f.CompletedAfter}, {"completed-before", "only those that ended before", &f.CompletedBefore},
	}
}

// completeFilter resolves the addresses of deployments and converts durations to times.
func (a *app) completeFilter(ctx context.Context, f *client.Filter) error {
	f.Deployment = slices.Clone(f.Deployment)
	for i, name := range f.Deployment {
		id, err := a.deploymentID(ctx, name)
		if err != nil {
			return err
		}
		f.Deployment[i] = id
	}
	for _, t := range timeFlags(f) {
		if *t.value == "" {
			continue
		}
		if d, err := units.ParseDuration(*t.value); err == nil {
			*t.value = time.Now().Add(-d).UTC().Format(time.RFC3339)
		} else if _, err := time.Parse(time.RFC3339, *t.value); err != nil {
			return command.UsageError("--" + t.name + " takes a time such as 2026-01-31T15:04:05Z or a duration before now such as 1h, got " + *t.value)
		}
	}
	return nil
}

func (a *app) invocationsCount() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "count [target]",
		Short: "Count invocations by handler, status and result",
		Long: `Counts invocations: those that have not completed, and completed ones as long as they are kept. The
target is as for list.`,
		Args:    cobra.MaximumNArgs(1),
		Example: "  platform invocations count\n  platform invocations count Counter --created-after 1h\n  platform invocations count --result failure --json",
	}
	var s selection
	cmd.Flags().SortFlags = false
	filterFlags(cmd.Flags(), &s.Filter)
	return command.ViewResponse(a.App, cmd, func(ctx context.Context, args []string) (n client.Counts, response *client.Response, err error) {
		s := s // --watch runs this repeatedly
		if err = a.narrow(ctx, &s, args); err == nil {
			err = a.completeFilter(ctx, &s.Filter)
		}
		if err != nil {
			return n, nil, err
		}
		return a.Client.Count(ctx, s.Filter)
	}, func(_ context.Context, n client.Counts) error {
		a.countTable(n)
		return nil
	})
}

// countTable shows counts; columns without invocations are left out.
func (a *app) countTable(n client.Counts) {
	header := []string{"SERVICE", "HANDLER"}
	rows := make([][]string, len(n.ByService)+1)
	for i, h := range n.ByService {
		rows[i] = []string{term.Clean(h.Service), term.Clean(h.Handler)}
	}
	rows[len(n.ByService)] = []string{"TOTAL", "-"}
	column := func(name string, total int, of func(*client.HandlerCounts) int) {
		if total == 0 {
			return
		}
		header = append(header, strings.ToUpper(name))
		for i := range n.ByService {
			rows[i] = append(rows[i], strconv.Itoa(of(&n.ByService[i])))
		}
		rows[len(n.ByService)] = append(rows[len(n.ByService)], strconv.Itoa(total))
	}
	for _, status := range openStatuses {
		column(status, n.ByStatus[status], func(h *client.HandlerCounts) int { return h.ByStatus[status] })
	}
	for _, result := range []string{"success", "failure", "cancelled", "killed"} {
		column(result, n.ByResult[result], func(h *client.HandlerCounts) int { return h.ByResult[result] })
	}
	if n.Total == 0 {
		a.Say("No invocations.")
		return
	}
	a.Print.Table("", header, rows)
	if !n.Complete {
		a.Say("The oldest invocations are not counted: the memory for lists (admin.listing-memory) does not suffice.")
	}
}
