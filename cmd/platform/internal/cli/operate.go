package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
	"platform/internal/units"
)

// operation is an operation on invocations, by its name in the admin API.
type operation struct {
	name     string
	verb     string   // in the confirmation, as in "Cancel 3 invocations?"
	done     string   // in the report
	statuses []string // of the invocations that it applies to
	limit    int
	// deployment to run on: latest, keep or an id; empty is usual for the operation.
	deployment string
	reason     string   // of a pause, may be empty
	scopes     []string // empty: all, and what has none
	asJSON     *bool
}

const operationQuery = `The query is an invocation id, the id of a failure group, or selects the invocations of a
service, object or handler: <service>, <service>/<handler>, <object>/<key>, <object>/<key>/<handler>.`

// Statuses of the invocations that can be paused and resumed.
var (
	pauseStatuses  = []string{"ready", "running", "backing-off", "suspended"}
	resumeStatuses = []string{"paused", "suspended", "backing-off"}
)

// groupPrefix is the beginning of the ids of failure groups.
const groupPrefix = "fg_"

// command returns the command of an operation. adjust reads the operation's own flags.
func (op *operation) command(a *app, cmd *cobra.Command, adjust func()) *cobra.Command {
	cmd.Args = cobra.ExactArgs(1)
	cmd.Long += "\n\n" + operationQuery
	cmd.Flags().IntVar(&op.limit, "limit", 500, "at most this many invocations")
	cmd.Flags().StringSliceVar(&op.scopes, "scope", nil, "only those in these scopes")
	op.asJSON = cmd.Flags().Bool("json", false, "print the outcome for each invocation as JSON")
	cmd.RunE = command.Run(func(ctx context.Context, args []string) error {
		if adjust != nil {
			adjust()
		}
		if err := checkDeploymentFlag(op.deployment); err != nil {
			return err
		}
		if op.limit < 1 {
			return command.UsageError("--limit must be at least 1")
		}
		return a.operate(ctx, op, args[0])
	})
	return cmd
}

func (a *app) invocationsCancel() *cobra.Command {
	op := &operation{name: "cancel", verb: "Cancel", done: "Cancelled", statuses: openStatuses}
	cmd := &cobra.Command{
		Use:   "cancel <query>",
		Short: "Request the cancellation of invocations and of the calls they wait for",
		Long: `Cancels invocations. A running handler gets a terminal error at its next await point and can clean
up; the calls it waits for are cancelled as well. Invocations that have not started end immediately.`,
		Example: "  platform invocations cancel inv_1…\n  platform invocations cancel Greeter/greet\n  platform invocations cancel Counter/alice --yes",
	}
	kill := cmd.Flags().Bool("kill", false, "end them immediately, without cleanup")
	return op.command(a, cmd, func() {
		if *kill {
			op.name, op.verb, op.done = "kill", "Kill", "Killed"
		}
	})
}

func (a *app) invocationsKill() *cobra.Command {
	op := &operation{name: "kill", verb: "Kill", done: "Killed", statuses: openStatuses}
	return op.command(a, &cobra.Command{
		Use:   "kill <query>",
		Short: "End invocations immediately",
		Long: `Kills invocations and the calls that they wait for. Handlers cannot clean up: the effects of
executed steps remain. Prefer cancel.`,
		Example: "  platform invocations kill inv_1…",
	}, nil)
}

func (a *app) invocationsPause() *cobra.Command {
	op := &operation{name: "pause", verb: "Pause", done: "Paused", statuses: pauseStatuses}
	cmd := &cobra.Command{
		Use:   "pause <query>",
		Short: "Stop invocations until they are resumed",
		Long: `Pauses invocations. Their journals are kept. A running handler is asked to suspend: its current step
finishes and is stored first. If the handler sends nothing for the abort timeout, the attempt is aborted.`,
		Example: "  platform invocations pause Greeter\n  platform invocations pause Mailer/send --reason 'provider is down, ask Ada'",
	}
	reasonFlag(cmd, &op.reason)
	return op.command(a, cmd, nil)
}

func (a *app) invocationsResume() *cobra.Command {
	return a.resume(&cobra.Command{
		Use:   "resume <query>",
		Short: "Resume paused invocations, and immediately retry those that are backing off",
		Long: `Resumes invocations. They keep the deployment that they started on, unless --deployment names
another one, whose code must execute the same steps as those in the journal. Suspended invocations
are included: an attempt replays their journal, and they suspend again if what they wait for has not happened.`,
		Example: "  platform invocations resume inv_1…\n  platform invocations resume Greeter --deployment latest",
	})
}

// resume makes cmd resume invocations.
func (a *app) resume(cmd *cobra.Command) *cobra.Command {
	op := &operation{name: "resume", verb: "Resume", done: "Resumed", statuses: resumeStatuses}
	cmd.Flags().StringVar(&op.deployment, "deployment", "", "deployment to continue on: keep, latest or the id of a deployment (default keep)")
	return op.command(a, cmd, nil)
}

func (a *app) invocationsPurge() *cobra.Command {
	op := &operation{name: "purge", verb: "Purge", done: "Purged", statuses: []string{"completed"}}
	cmd := &cobra.Command{
		Use:     "purge <query>",
		Aliases: []string{"rm"},
		Short:   "Delete completed invocations",
		Long: `Purges completed invocations: deletes result, journal and idempotency key. Purging the run of a
workflow also deletes its state and promises, so that the same key can run again.`,
		Example: "  platform invocations purge inv_1…\n  platform invocations purge Mailer --journal-only",
	}
	journal := cmd.Flags().Bool("journal-only", false, "delete the journal only, keep the result")
	return op.command(a, cmd, func() {
		if *journal {
			op.name, op.verb, op.done = "purge-journal", "Purge the journals of", "Purged the journals of"
		}
	})
}

func (a *app) invocationsRestart() *cobra.Command {
	op := &operation{name: "restart-as-new", verb: "Restart", done: "Restarted", statuses: []string{"completed"}}
	cmd := &cobra.Command{
		Use:     "restart-as-new <query>",
		Aliases: []string{"restart"},
		Short:   "Restart completed invocations under new ids",
		Long: `Restarts completed invocations with the same input. With --from, for a single invocation, the new
one keeps the journal up to that entry and continues from there; 'platform invocations describe'
shows the entries.`,
		Example: "  platform invocations restart-as-new inv_1…\n  platform invocations restart-as-new inv_1… --from 4 --deployment latest",
	}
	from := cmd.Flags().Int("from", 0, "index of the last journal entry to keep (a single invocation id only)")
	cmd.Flags().StringVar(&op.deployment, "deployment", "", "where to run: keep, latest or the id of a deployment (default latest)")
	op.command(a, cmd, nil)
	several := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *from == 0 {
			return several(cmd, args)
		}
		for _, selects := range []string{"scope", "limit"} {
			if cmd.Flags().Changed(selects) {
				return command.UsageError("--" + selects + " selects among several invocations; --from takes a single id")
			}
		}
		return command.Run(func(ctx context.Context, args []string) error {
			return a.restartFrom(ctx, op, args[0], *from)
		})(cmd, args)
	}
	return cmd
}

// restartFrom restarts one invocation with a part of its journal.
func (a *app) restartFrom(ctx context.Context, op *operation, id string, from int) error {
	if err := checkDeploymentFlag(op.deployment); err != nil {
		return err
	}
	switch {
	case from < 0:
		return command.UsageError("--from is the index of a journal entry, from 0")
	case !strings.HasPrefix(id, "inv_"):
		return command.UsageError("--from needs the id of an invocation, got " + id)
	}
	if err := a.checkRestart(ctx, op, id, from); err != nil {
		return err
	}
	if err := a.Confirm(fmt.Sprintf("Restart %s with its journal up to entry %d?", id, from)); err != nil {
		return err
	}
	made, err := a.Client.Restart(ctx, id, from, op.deployment)
	if err != nil {
		return command.HintNotFound(err, "`platform invocations list --status completed` shows those that can be restarted.")
	}
	return a.reportBatch(op, client.Batch{Succeeded: []client.BatchSuccess{{ID: id, New: made}}})
}

// operate shows what a query selects, requests a confirmation, and executes the operation.
func (a *app) operate(ctx context.Context, op *operation, query string) error {
	selected, more, err := a.query(ctx, op, query)
	if err != nil {
		return err
	}
	if len(selected) == 1 {
		if err := checkOperable(op, &selected[0]); err != nil {
			return err
		}
	}
	if len(selected) == 0 {
		return a.noSelection(ctx, op, query)
	}
	a.selectionTable(op, selected)
	if more {
		a.Hint.Box("More invocations match than "+units.Counted(len(selected), "invocation")+".", "Repeat the command, use --limit, or start a job for all of them"+a.jobCommand(ctx, op, query)+".")
	}
	if err := a.Confirm(fmt.Sprintf("%s %s?", op.verb, units.Counted(len(selected), "invocation"))); err != nil {
		return err
	}
	var all client.Batch
	for batch := range slices.Chunk(selected, client.MaxBatch) {
		done, err := a.Client.Operate(ctx, op.name, batch.ids(), client.OperateOptions{Deployment: op.deployment, Reason: op.reason})
		if err != nil && len(all.Succeeded) > 0 {
			return fmt.Errorf("%w (%d of %s before)", err, len(all.Succeeded), units.Counted(len(selected), "invocation"))
		}
		if err != nil {
			return err
		}
		all.Succeeded, all.Failed = append(all.Succeeded, done.Succeeded...), append(all.Failed, done.Failed...)
	}
	if op.name == "pause" && !*op.asJSON {
		return a.reportPause(ctx, all)
	}
	return a.reportBatch(op, all)
}

// jobCommand returns the command of a job for all that a query selects; a reference to its options if
// the job cannot be given the query or the operation.
func (a *app) jobCommand(ctx context.Context, op *operation, query string) string {
	const help = ": see `platform jobs start --help`"
	if !slices.Contains(jobOperations, op.name) {
		return ""
	}
	flags := []string{}
	if strings.HasPrefix(query, groupPrefix) {
		flags = append(flags, "--filter", "failure_group="+query)
	} else {
		q, err := a.queryOf(ctx, query)
		if err != nil {
			return help
		}
		for _, f := range []struct {
			name   string
			values []string
		}{{"service", q.Service}, {"handler", q.Handler}, {"key", q.Key}, {"scope", op.scopes}} {
			for _, value := range f.values {
				flags = append(flags, "--"+f.name, shellWord(value))
			}
		}
	}
	if !slices.Equal(op.statuses, jobStatuses(op.name)) {
		flags = append(flags, "--status", strings.Join(op.statuses, ","))
	}
	if op.deployment != "" {
		flags = append(flags, "--deployment", op.deployment)
	}
	return fmt.Sprintf(": `platform jobs start %s %s`", op.name, strings.Join(flags, " "))
}

// shellWord quotes a word for a shell, if it needs quotes.
func shellWord(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@%+,", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(term.Clean(word), "'", `'\''`) + "'"
}

// service returns the service that a query selects.
func service(query string) string {
	name, _, _ := strings.Cut(query, "/")
	return name
}

// resumable reports whether resuming has an effect. It has none if an attempt is running or
// about to start.
func resumable(inv *client.Invocation) bool {
	return inv.Status != "running" && inv.Status != "ready" || inv.PauseRequested
}

// checkDeploymentFlag reports a value of --deployment that the server would refuse after the confirmation.
func checkDeploymentFlag(choice string) error {
	if choice == "" || strings.EqualFold(choice, "keep") || strings.EqualFold(choice, "latest") || strings.HasPrefix(choice, "dp_1") {
		return nil
	}
	return command.UsageError(fmt.Sprintf("--deployment takes keep, latest or the id of a deployment (dp_1…), got %q; `platform deployments list` shows the ids", choice))
}

// reasonFlag adds the flag with the reason of a pause.
func reasonFlag(cmd *cobra.Command, reason *string) {
	cmd.Flags().StringVar(reason, "reason", "", "why, for other operators: stored and shown with the pause")
}

// selected are the invocations that an operation applies to.
type selected []client.Invocation

func (s selected) ids() []string {
	list := make([]string, len(s))
	for i, inv := range s {
		list[i] = inv.ID
	}
	return list
}

// query returns the invocations that a query selects. The server validates ids.
func (a *app) query(ctx context.Context, op *operation, query string) (list selected, more bool, err error) {
	if strings.HasPrefix(query, "inv_") {
		inv, _, err := a.Client.Invocation(ctx, query)
		if err != nil {
			return nil, false, command.HintNotFound(err, "`platform invocations list` shows the existing ones.")
		}
		if len(op.scopes) > 0 && !slices.Contains(op.scopes, inv.Scope) {
			return nil, false, nil
		}
		return selected{inv}, false, nil
	}
	q := client.Query{Filter: client.Filter{FailureGroup: query}}
	if !strings.HasPrefix(query, groupPrefix) {
		if q, err = a.queryOf(ctx, query); err != nil {
			return nil, false, err
		}
	}
	q.Status, q.Limit, q.Scope = op.statuses, op.limit, op.scopes
	found, more, err := a.collect(ctx, q, nil)
	for _, f := range found {
		list = append(list, f.Invocation)
	}
	return list, more, err
}

// queryOf parses service[/key][/handler]; the type of the service distinguishes keys from
// handlers.
func (a *app) queryOf(ctx context.Context, query string) (client.Query, error) {
	name, rest, deep := strings.Cut(query, "/")
	q := client.Query{Filter: client.Filter{Service: []string{name}}}
	if !deep {
		return q, nil
	}
	service, _, err := a.Client.Service(ctx, name)
	if err != nil {
		return q, a.serviceNotFound(ctx, err, name, servicesHint)
	}
	if service.Type == "Service" {
		q.Handler = []string{rest}
		return q, nil
	}
	if at := strings.LastIndexByte(rest, '/'); at >= 0 && slices.ContainsFunc(service.Handlers, func(h client.Handler) bool { return h.Name == rest[at+1:] }) {
		q.Key, q.Handler = []string{rest[:at]}, []string{rest[at+1:]} // keys may contain slashes
		return q, nil
	}
	q.Key = []string{rest}
	return q, nil
}

// inScope is a name and the scope that it belongs to, if any.
func inScope(name, scope string) string {
	if scope == "" {
		return name
	}
	return name + " in scope " + scope
}

// selectionTable shows the invocations that an operation applies to; with --json on stderr.
func (a *app) selectionTable(op *operation, list selected) {
	out := a.Print
	if *op.asJSON {
		out = a.Hint
	}
	rows := make([][]string, len(list))
	for i, inv := range list {
		rows[i] = []string{inv.ID, term.Clean(inScope(inv.Target, inv.Scope)), a.colourStatus(inv.Status, inv.CompletionResult), a.Print.Time(inv.CreatedAt), command.OrDash(inv.PinnedDeploymentID)}
	}
	out.Table("", []string{"ID", "TARGET", "STATUS", "CREATED-AT", "DEPLOYMENT"}, rows)
}

// reportBatch reports the outcome; it fails if an invocation refused the operation.
func (a *app) reportBatch(op *operation, done client.Batch) error {
	if *op.asJSON {
		return a.batchJSON(done)
	}
	if len(done.Succeeded) > 0 && op.name == "restart-as-new" {
		a.restarted(done.Succeeded)
	} else {
		a.succeeded(op, done.Succeeded)
	}
	return a.refusals(done)
}

// refusals reports which invocations refused an operation and why; it fails if any did.
func (a *app) refusals(done client.Batch) error {
	if len(done.Failed) == 0 {
		return nil
	}
	rows := make([][]string, len(done.Failed))
	for i, f := range done.Failed {
		rows[i] = []string{f.ID, term.Clean(f.Error)}
	}
	a.Print.Table("", []string{"ID", "REFUSED-BECAUSE"}, rows)
	return refusedError(done)
}

// succeeded distinguishes invocations that have ended from those whose cancellation was only
// requested.
func (a *app) succeeded(op *operation, list []client.BatchSuccess) {
	requested := 0
	for _, s := range list {
		if s.Requested {
			requested++
		}
	}
	if requested > 0 {
		a.Print.Printf("%s Requested the cancellation of %s: the handler gets it at its next await point\n", a.Print.Green("[OK]:"), units.Counted(requested, "invocation"))
	}
	if ended := len(list) - requested; ended > 0 {
		a.Print.Printf("%s %s %s\n", a.Print.Green("[OK]:"), op.done, units.Counted(ended, "invocation"))
	}
}

func refusedError(done client.Batch) error {
	return fmt.Errorf("%s refused", units.Counted(len(done.Failed), "invocation"))
}

func (a *app) batchJSON(done client.Batch) error {
	err := a.PrintJSON(map[string]any{"succeeded": append([]client.BatchSuccess{}, done.Succeeded...), "failed": append([]client.BatchFailure{}, done.Failed...)})
	if err == nil && len(done.Failed) > 0 {
		err = refusedError(done)
	}
	return err
}

func (a *app) restarted(list []client.BatchSuccess) {
	rows := make([][]string, len(list))
	for i, s := range list {
		rows[i] = []string{s.ID, s.New}
	}
	a.Print.Table("", []string{"OLD-ID", "NEW-ID"}, rows)
	a.Print.Printf("%s Restarted %s\n", a.Print.Green("[OK]:"), units.Counted(len(list), "invocation"))
}
