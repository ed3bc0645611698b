package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
	"platform/internal/units"
)

// jobOperations are the operations that a job can execute.
var jobOperations = []string{"cancel", "kill", "pause", "resume", "restart-as-new", "purge"}

const jobHint = "`platform jobs list` shows the jobs."

func (a *app) jobs() *cobra.Command {
	return command.Group(&cobra.Command{
		Use:     "jobs",
		Aliases: []string{"job"},
		Short:   "Run operations on many invocations in the cluster",
		Long: `A job applies an operation to all invocations that match a filter and were created before it. The
cluster executes it: it continues when this program ends or a node fails.`,
	}, a.jobsStart(), a.jobsList(), a.jobsShow(), a.jobsStop(), a.jobsWatch())
}

// checkServices warns of services that are not registered. Their invocations may still exist.
func (a *app) checkServices(ctx context.Context, names []string) error {
	for _, name := range names {
		if _, _, err := a.Client.Service(ctx, name); client.IsNotFound(err) {
			a.Say("There is no service %s. %s", term.Clean(name), a.nearestService(ctx, name, servicesHint))
		} else if err != nil {
			return err
		}
	}
	return nil
}

func (a *app) jobsStart() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "start <" + strings.Join(jobOperations, "|") + "> [invocation]...",
		Short: "Start a job",
		Long: `Starts a job on the invocations that match all filters, or on those with the given ids. Without
--status, those are selected on which the operation has an effect.`,
		Args: cobra.MinimumNArgs(1),
		Example: `  platform jobs start cancel --service Mailer
  platform jobs start resume --service Greeter --status paused --deployment latest --watch-job
  platform jobs start kill --filter deployment=dp_1…`,
	}
	r := client.JobRequest{Filter: map[string][]string{}}
	flags := cmd.Flags()
	flags.SortFlags = false
	named := map[string]*[]string{}
	for _, name := range []string{"service", "handler", "scope", "status"} {
		named[name] = flags.StringSlice(name, nil, "only those with these values (separated by commas)")
	}
	named["key"] = flags.StringArray("key", nil, "only these object keys or workflow ids (repeatable)")
	filters := flags.StringArray("filter", nil, "another filter of GET /invocations: <name>=<value> (repeatable)")
	flags.StringVar(&r.Deployment, "deployment", "", "for resume and restart-as-new: keep, latest or the id of a deployment")
	reasonFlag(cmd, &r.Reason)
	watch := flags.Bool("watch-job", false, "show the progress until the job ends")
	asJSON := command.JSONFlag(flags)
	cmd.RunE = command.Run(func(ctx context.Context, args []string) error {
		r.Operation, r.InvocationIDs = args[0], args[1:]
		for name, values := range named {
			r.Filter[name] = append(r.Filter[name], *values...)
		}
		if err := addFilters(r.Filter, *filters); err != nil {
			return err
		}
		if err := checkJob(&r); err != nil {
			return err
		}
		if err := a.checkServices(ctx, r.Filter["service"]); err != nil {
			return err
		}
		question := fmt.Sprintf("Start a job: %s %s%s?", r.Operation, jobTargets(r.Filter, len(r.InvocationIDs)), a.matching(ctx, &r))
		if err := a.Confirm(question); err != nil {
			return err
		}
		job, err := a.Client.StartJob(ctx, r)
		if err != nil {
			return err
		}
		if *asJSON && !*watch {
			return a.PrintJSON(job)
		}
		a.Say("Started job %s. `platform jobs watch %s` shows its progress, `platform jobs stop %[1]s` stops it.", job.ID, job.ID)
		if !*watch {
			return nil
		}
		return a.watchJob(ctx, job.ID, *asJSON)
	})
	return cmd
}

// jobStatuses are the statuses of the invocations that a job applies to if its filter has none.
func jobStatuses(operation string) []string {
	switch operation {
	case "restart-as-new", "purge":
		return []string{"completed"}
	case "resume":
		return []string{"paused", "backing-off"}
	case "pause":
		return pauseStatuses
	}
	return openStatuses
}

// matching describes how many invocations the filter of a job matches now; empty if that is not known.
func (a *app) matching(ctx context.Context, r *client.JobRequest) string {
	if len(r.Filter) == 0 {
		return ""
	}
	counts, err := a.Client.CountMatching(ctx, r.Filter)
	if err != nil || !counts.Complete {
		return "" // the server reports what is wrong with the filter when the job starts
	}
	n := 0
	for status, count := range counts.ByStatus {
		if len(r.Filter["status"]) > 0 || slices.Contains(jobStatuses(r.Operation), status) {
			n += count
		}
	}
	return fmt.Sprintf(" (%d now)", n)
}

// addFilters adds the values of --filter, and removes names without values.
func addFilters(filter map[string][]string, texts []string) error {
	for _, text := range texts {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return command.UsageError(fmt.Sprintf("--filter must be <name>=<value>, not %q", text))
		}
		filter[name] = append(filter[name], value)
	}
	maps.DeleteFunc(filter, func(_ string, values []string) bool { return len(values) == 0 })
	return nil
}

// checkJob validates the arguments of a new job.
func checkJob(r *client.JobRequest) error {
	if !slices.Contains(jobOperations, r.Operation) {
		return command.UsageError(fmt.Sprintf("%q is not an operation; use %s", r.Operation, strings.Join(jobOperations, ", ")))
	}
	if err := checkDeploymentFlag(r.Deployment); err != nil {
		return err
	}
	switch {
	case len(r.InvocationIDs) > 0 && len(r.Filter) > 0:
		return command.UsageError("give either ids of invocations or filters")
	case len(r.InvocationIDs) == 0 && len(r.Filter) == 0:
		return command.UsageError("give ids of invocations or filters such as --service")
	}
	return nil
}

// jobTargets describes what a job applies to.
func jobTargets(filter map[string][]string, count int) string {
	if len(filter) == 0 {
		return units.Counted(count, "invocation")
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(filter)) {
		parts = append(parts, name+" "+strings.Join(filter[name], " or "))
	}
	return "all invocations with " + term.Clean(strings.Join(parts, ", "))
}

func (a *app) jobsList() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List jobs, the newest first", Args: cobra.NoArgs, Example: "  platform jobs list",
	}
	asJSON := command.JSONFlag(cmd.Flags())
	a.Shows(cmd, func(ctx context.Context, _ []string) error {
		list, err := a.Client.Jobs(ctx)
		if err != nil {
			return err
		}
		if *asJSON {
			return a.PrintJSON(map[string]any{"jobs": append([]client.Job{}, list...)})
		}
		if len(list) == 0 {
			a.Say("No jobs. `platform jobs start` starts one.")
			return nil
		}
		rows := make([][]string, len(list))
		for i, j := range list {
			rows[i] = []string{j.ID, j.Operation, j.State, a.Print.Time(j.CreatedAt), decimal(j.Matched), decimal(j.Done), decimal(j.Failed), decimal(j.Skipped)}
		}
		a.Print.Table("", []string{"ID", "OPERATION", "STATE", "CREATED-AT", "MATCHED", "DONE", "FAILED", "SKIPPED"}, rows)
		return nil
	})
	return cmd
}

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }

func (a *app) jobsShow() *cobra.Command {
	cmd := &cobra.Command{
		Use: "show <job>", Aliases: []string{"get", "describe"}, Short: "Show a job and its progress", Args: cobra.ExactArgs(1), Example: "  platform jobs show job_…",
	}
	asJSON := command.JSONFlag(cmd.Flags())
	a.Shows(cmd, func(ctx context.Context, args []string) error {
		job, err := a.Client.Job(ctx, args[0])
		if err != nil {
			return hintNoJob(err)
		}
		if *asJSON {
			return a.PrintJSON(job)
		}
		a.showJob(&job)
		return nil
	})
	return cmd
}

func hintNoJob(err error) error {
	if client.IsNotFound(err) {
		return command.WithHint(err, jobHint)
	}
	return err
}

func (a *app) showJob(j *client.Job) {
	a.Print.Fields("",
		term.Field{Name: "ID", Value: j.ID},
		term.Field{Name: "Operation", Value: j.Operation},
		term.Field{Name: "State", Value: j.State},
		term.Field{Name: "Invocations", Value: jobTargets(j.Filter, int(j.Matched))},
		term.Field{Name: "Deployment", Value: term.Clean(j.Deployment)},
		term.Field{Name: "Reason", Value: term.Clean(j.Reason)},
		term.Field{Name: "Requested by", Value: term.Clean(j.By)},
		term.Field{Name: "Created", Value: a.Print.Time(j.CreatedAt)},
		term.Field{Name: "Last progress", Value: a.Print.Time(j.ModifiedAt)},
		term.Field{Name: "Progress", Value: jobProgress(j)},
		term.Field{Name: "Error", Value: term.Clean(j.Error)},
	)
	var failures, skips [][]string
	for _, f := range j.Failures {
		failures = append(failures, []string{f.ID, term.Clean(f.Error)})
	}
	for _, s := range j.Skips {
		skips = append(skips, []string{s.ID, term.Clean(s.Reason)})
	}
	a.jobSamples("Failures", "ERROR", failures)
	a.jobSamples("Skipped", "REASON", skips)
}

func (a *app) jobSamples(heading, column string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	a.Print.Println()
	a.Print.Heading(heading)
	a.Print.Table("", []string{"ID", column}, rows)
}

// jobProgress describes the progress of a job. While one with a filter runs, others may end what it has not
// reached yet: its total is an estimate.
func jobProgress(j *client.Job) string {
	processed := j.Done + j.Failed + j.Skipped
	text := fmt.Sprintf("%d of %d found, %d done, %d failed", processed, j.Matched, j.Done, j.Failed)
	switch {
	case !j.Running() || len(j.Filter) == 0:
	case j.Total > 0:
		text = fmt.Sprintf("%d of about %d, %d done, %d failed", processed, max(j.Total, j.Matched), j.Done, j.Failed)
	default:
		text = fmt.Sprintf("%d done, %d failed so far", j.Done, j.Failed)
	}
	if j.Skipped > 0 {
		text += fmt.Sprintf(", %d skipped", j.Skipped)
	}
	return text
}

func (a *app) jobsStop() *cobra.Command {
	cmd := &cobra.Command{
		Use: "stop <job>", Short: "Stop a job; operations that it has completed are not undone", Args: cobra.ExactArgs(1), Example: "  platform jobs stop job_…",
	}
	cmd.RunE = command.Run(func(ctx context.Context, args []string) error {
		job, err := a.Client.StopJob(ctx, args[0])
		if err != nil {
			return hintNoJob(err)
		}
		if job.State != "stopped" {
			a.Say("The job had already ended: it is %s.", job.State)
			return nil
		}
		a.Print.Printf("%s Stopped job %s (%s)\n", a.Print.Green("[OK]:"), job.ID, jobProgress(&job))
		return nil
	})
	return cmd
}

func (a *app) jobsWatch() *cobra.Command {
	cmd := &cobra.Command{
		Use: "watch <job>", Short: "Show the progress of a job until it ends", Args: cobra.ExactArgs(1), Example: "  platform jobs watch job_…",
	}
	asJSON := command.JSONFlag(cmd.Flags())
	cmd.RunE = command.Run(func(ctx context.Context, args []string) error { return a.watchJob(ctx, args[0], *asJSON) })
	return cmd
}

// jobInterval is the time between two requests for the progress of a job.
const jobInterval = 500 * time.Millisecond

// watchJob waits for the end of a job and reports its progress on stderr.
func (a *app) watchJob(ctx context.Context, id string, asJSON bool) error {
	last := ""
	for {
		job, err := a.Client.Job(ctx, id)
		if err != nil {
			return hintNoJob(err)
		}
		if text := jobProgress(&job); job.Running() && text != last {
			last = text
			a.Say("%s", text)
		}
		if !job.Running() {
			return a.endedJob(&job, asJSON)
		}
		select {
		case <-time.After(jobInterval):
		case <-ctx.Done():
			a.Say("The job continues. `platform jobs watch %s` shows its progress, `platform jobs stop %[1]s` stops it.", id)
			return ctx.Err()
		}
	}
}

// endedJob shows a job; an error if it has not succeeded for all invocations.
func (a *app) endedJob(job *client.Job, asJSON bool) error {
	if asJSON {
		if err := a.PrintJSON(job); err != nil {
			return err
		}
	} else {
		a.showJob(job)
	}
	switch {
	case job.State != "done":
		return errors.New("the job is " + job.State)
	case job.Failed > 0:
		return fmt.Errorf("the operation failed for %s", units.Counted(int(job.Failed), "invocation"))
	}
	return nil
}
