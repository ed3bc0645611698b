package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
	"platform/internal/suggest"
)

const queueHint = "`platform vqueues list` shows the vqueues there are."

func (a *app) vqueues() *cobra.Command {
	return command.Group(&cobra.Command{
		Use:     "vqueues",
		Aliases: []string{"vqueue", "vq"},
		Short:   "Show and pause the queues of flow control",
		Long: `A vqueue holds the invocations of one service that share a scope and a limit key. They
start in order of arrival, as the rules for scope and limit key allow.

While flow control is enabled, the queues for the keys of objects without a scope are shown
as well, with the object in the column LOCK. They cannot be paused or limited by rules.

A vqueue is named by its id, or by its service, --scope and --limit-key; the queue of an object
by <object>/<key>.`,
	}, a.vqueuesList(), a.vqueuesDescribe(), a.vqueuesSwitch(true), a.vqueuesSwitch(false))
}

func (a *app) vqueuesList() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List vqueues, the longest first",
		Args:    cobra.NoArgs,
		Example: "  platform vqueues list\n  platform vqueues list --service Mailer --scope acme\n  platform vqueues list --watch",
	}
	asJSON := command.JSONFlag(cmd.Flags())
	limit := cmd.Flags().Int("limit", 100, "at most this many")
	var f client.VQueueFilter
	cmd.Flags().StringVar(&f.Service, "service", "", "only those of this service")
	cmd.Flags().StringVar(&f.Scope, "scope", "", "only those of this scope")
	cmd.Flags().Var(limitKeyFlag{&f}, "limit-key", "only those of this limit key; '' selects those without")
	a.Shows(cmd, func(ctx context.Context, _ []string) error {
		if *limit < 1 {
			return command.UsageError("--limit must be at least 1")
		}
		list, err := a.Client.VQueues(ctx, f, *limit+1)
		if err != nil {
			return err
		}
		more := len(list) > *limit
		list = list[:min(len(list), *limit)]
		if *asJSON {
			return a.PrintJSON(map[string]any{"vqueues": append([]client.VQueue{}, list...)})
		}
		pauses, err := a.Client.ScopePauses(ctx, f.Scope, mostScopes+1)
		if err != nil {
			return err
		}
		if len(list) == 0 && f != (client.VQueueFilter{}) {
			a.Say("No such vqueues. Without --service, --scope and --limit-key, all are listed.")
			a.sayScopePauses(pauses)
			return nil
		}
		if len(list) == 0 {
			a.Say("No vqueues. Invocations with a scope wait in vqueues: POST <ingress>/platform/scope/{scope}/send/…")
			a.sayFlowControlOff(ctx, "calls with a scope are refused")
			a.sayScopePauses(pauses)
			return nil
		}
		a.queueTable(list)
		if more {
			a.Say("There are more than these; see --limit.")
		}
		a.sayScopePauses(pauses)
		return nil
	})
	return cmd
}

func (a *app) queueTable(list []client.VQueue) {
	rows := make([][]string, len(list))
	for i, q := range list {
		rows[i] = []string{
			q.ID, term.Clean(q.Service), command.OrDash(q.Scope), command.OrDash(q.LimitKey), command.OrDash(term.Clean(q.Lock)), a.pausedText(q.Paused),
			countOfEntries(q.Inbox), countOfEntries(q.Running), countOfEntries(q.Suspended), countOfEntries(q.Held), countOfEntries(q.Finished),
		}
	}
	header := []string{"ID", "SERVICE", "SCOPE", "LIMIT-KEY", "LOCK", "QUEUE-PAUSED", "INBOX", "RUNNING", "SUSPENDED", "PAUSED-ENTRIES", "FINISHED"}
	a.Print.Table("", header, rows)
}

func (a *app) pausedText(paused bool) string {
	if paused {
		return a.Print.Yellow("yes")
	}
	return "no"
}

func countOfEntries(n uint64) string { return strconv.FormatUint(n, 10) }

func (a *app) vqueuesDescribe() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "describe <id | service | object/key>",
		Aliases: []string{"get"},
		Short:   "Show a vqueue, what blocks it, and its invocations",
		Long: fmt.Sprintf(`Shows a vqueue or the queue of an object, what blocks it, and its entries: first those that
run, then those that wait, in order of arrival, and those that have ended last. For a queue of
more than %d entries, an arbitrary selection of those that have not ended is shown, since sorting
requires reading all of them; --newest-first does that.`, mostSorted),
		Args:    cobra.ExactArgs(1),
		Example: "  platform vqueues describe vq_1…\n  platform vqueues describe Mailer --scope acme\n  platform vqueues describe Counter/ada",
	}
	var f client.VQueueFilter
	queueFlags(cmd, &f)
	asJSON := command.JSONFlag(cmd.Flags())
	limit := cmd.Flags().Int("limit", 100, "at most this many entries")
	newest := cmd.Flags().Bool("newest-first", false, "show the newest entries first")
	a.Shows(cmd, func(ctx context.Context, args []string) error {
		if *limit < 1 {
			return command.UsageError("--limit must be at least 1")
		}
		id, err := a.queueID(ctx, args[0], f)
		if err != nil {
			return err
		}
		queue, head, err := a.Client.VQueue(ctx, id)
		if err != nil {
			return hintNoQueue(err)
		}
		order := orderOf(&queue, *newest)
		entries, err := a.Client.VQueueEntries(ctx, id, *limit, order)
		if err != nil {
			return err
		}
		if *asJSON {
			return a.PrintJSON(map[string]any{"vqueue": queue, "head": head, "entries": append([]client.VQueueEntry{}, entries...)})
		}
		var pauses []client.ScopePause
		if queue.Scope != "" {
			if pauses, err = a.Client.ScopePauses(ctx, queue.Scope, 1); err != nil {
				return err
			}
		}
		a.describeQueue(queue, head, entries, pauses)
		if footer := entriesFooter(&queue, len(entries), order); footer != "" {
			a.Say("%s", a.Hint.Dim(footer))
		}
		return nil
	})
	return cmd
}

// entriesFooter says which of the entries of a queue are shown; "" if all are.
func entriesFooter(q *client.VQueue, shown int, order client.Order) string {
	switch all := q.Entries(); {
	case uint64(shown) >= all:
		return ""
	case order == client.AsFound:
		return fmt.Sprintf("Showing %d/%d entries, an arbitrary selection. All have ended.", shown, all)
	case order == client.UnfinishedAsFound:
		return fmt.Sprintf("Showing %d/%d entries, an arbitrary selection of those that have not ended. Listing the next ones requires reading all of them:\n  platform sql \"SELECT * FROM sys_vqueues WHERE id = '%s' AND stage = 'inbox' ORDER BY sequence_number LIMIT %d\"",
			shown, all, q.ID, max(shown, 1))
	default:
		return fmt.Sprintf("Showing %d/%d entries. Use --limit to see more.", shown, all)
	}
}

// mostSorted is the largest queue that is read completely to show its first entries.
const mostSorted = 10_000

func orderOf(q *client.VQueue, newestFirst bool) client.Order {
	switch {
	case newestFirst:
		return client.NewestFirst
	case q.Entries() <= mostSorted:
		return client.QueueOrder
	case q.Entries() > q.Finished:
		return client.UnfinishedAsFound
	}
	return client.AsFound
}

// limitKeyFlag is a flag whose empty value selects the vqueues without a limit key.
type limitKeyFlag struct{ f *client.VQueueFilter }

func (l limitKeyFlag) Set(key string) error {
	l.f.LimitKey, l.f.NoLimitKey = key, key == ""
	return nil
}

func (l limitKeyFlag) String() string { return "" }
func (l limitKeyFlag) Type() string   { return "string" }

// queueFlags adds the flags that select the vqueue of a service.
func queueFlags(cmd *cobra.Command, f *client.VQueueFilter) {
	cmd.Flags().StringVar(&f.Scope, "scope", "", "scope of the vqueue (with a service)")
	cmd.Flags().Var(limitKeyFlag{f}, "limit-key", "limit key of the vqueue (with a service); '' selects the one without")
}

// queueID returns the vqueue that a name and the flags select; there must be exactly one.
func (a *app) queueID(ctx context.Context, name string, f client.VQueueFilter) (string, error) {
	if strings.HasPrefix(name, "vq_") {
		if f != (client.VQueueFilter{}) {
			return "", command.UsageError("--scope and --limit-key select a vqueue of a service; an id alone is enough")
		}
		return name, nil
	}
	f.Service = name
	if service, _, keyed := strings.Cut(name, "/"); keyed {
		if f != (client.VQueueFilter{Service: name}) {
			return "", command.UsageError("objects of a scope wait in the vqueue of their service: specify the service without a key")
		}
		f.Service, f.Lock = service, name
	}
	found, err := a.Client.VQueues(ctx, f, maxAmbiguous+1)
	switch {
	case err != nil:
		return "", err
	case len(found) == 0:
		return "", command.WithHint(fmt.Errorf("there is no vqueue of %s", f), queueHint)
	case len(found) > 1:
		a.queueTable(found[:min(len(found), maxAmbiguous)])
		return "", command.WithHint(fmt.Errorf("%s has several vqueues", f), "Choose one by its id, or by --scope and --limit-key ('' for the one without a limit key).")
	}
	return found[0].ID, nil
}

// maxAmbiguous bounds the vqueues that are shown when a name selects several.
const maxAmbiguous = 20

func hintNoQueue(err error) error {
	if errors.Is(err, client.ErrNoVQueue) {
		return command.WithHint(err, queueHint)
	}
	return err
}

// vqueuesSwitch returns the command pause or resume.
func (a *app) vqueuesSwitch(pause bool) *cobra.Command {
	verb, short := "resume", "Resume a paused vqueue"
	if pause {
		verb, short = "pause", "Stop a vqueue from starting invocations; running ones continue"
	}
	cmd := &cobra.Command{
		Use:     verb + " [id | service]",
		Short:   short,
		Long:    short + ".\n\nWithout an id or a service, --scope names a scope: all its vqueues, also those of limit keys and\nservices that have none yet.",
		Args:    cobra.MaximumNArgs(1),
		Example: "  platform vqueues " + verb + " vq_1…\n  platform vqueues " + verb + " Mailer --scope acme --limit-key eu\n  platform vqueues " + verb + " --scope acme",
	}
	var f client.VQueueFilter
	queueFlags(cmd, &f)
	reason := ""
	if pause {
		reasonFlag(cmd, &reason)
	}
	cmd.RunE = command.Run(func(ctx context.Context, args []string) error {
		if len(args) == 0 {
			return a.switchScope(ctx, pause, f, reason)
		}
		id, err := a.queueID(ctx, args[0], f)
		if err != nil {
			return err
		}
		return a.switchQueue(ctx, pause, id, reason)
	})
	return cmd
}

// switchQueue pauses or resumes a vqueue.
func (a *app) switchQueue(ctx context.Context, pause bool, id, reason string) error {
	before, _, err := a.Client.VQueue(ctx, id)
	if err != nil && !errors.Is(err, client.ErrNoVQueue) { // the server knows vqueues without entries as well
		return err
	}
	if pause {
		err = a.Client.PauseVQueue(ctx, id, reason)
	} else {
		err = a.Client.ResumeVQueue(ctx, id)
	}
	if err != nil {
		return err
	}
	queue, _, err := a.Client.VQueue(ctx, id)
	if err != nil {
		// The server accepts any well-formed id.
		return hintNoQueue(fmt.Errorf("the server accepted the request, but: %w", err))
	}
	if queue.Lock != "" {
		return command.WithHint(fmt.Errorf("%s is the queue for the key of %s, which cannot be paused", queue.ID, term.Clean(queue.Lock)),
			"`platform invocations pause <id>` pauses single invocations.")
	}
	if pause && reason != queue.Reason && !queue.PausedAt.IsZero() {
		return command.WithHint(fmt.Errorf("the vqueue was already paused%s", a.pauseDetails(queue.PausedAt, queue.PausedBy, queue.Reason)),
			"It stays paused. `platform vqueues resume "+queue.ID+"` resumes it.")
	}
	counts := fmt.Sprintf("(%d waiting, %d running)", queue.Inbox, queue.Running)
	switch {
	case pause && before.Paused && queue.Paused:
		a.Print.Printf("%s vqueue %s was already paused%s %s\n", a.Print.Green("[OK]:"), queue.ID, a.pauseDetails(before.PausedAt, before.PausedBy, before.Reason), counts)
	case pause:
		a.Print.Printf("%s Paused vqueue %s %s\n", a.Print.Green("[OK]:"), queue.ID, counts)
	case !before.Paused && !queue.Paused:
		a.Print.Printf("%s vqueue %s was not paused %s\n", a.Print.Green("[OK]:"), queue.ID, counts)
	default:
		a.Print.Printf("%s Resumed vqueue %s %s\n", a.Print.Green("[OK]:"), queue.ID, counts)
	}
	return nil
}

// switchScope pauses or resumes all vqueues of a scope.
func (a *app) switchScope(ctx context.Context, pause bool, f client.VQueueFilter, reason string) error {
	switch {
	case f.Scope == "":
		return command.UsageError("give the id of a vqueue, a service, or --scope for a scope as a whole")
	case f.LimitKey != "" || f.NoLimitKey:
		return command.UsageError("--limit-key goes with a service; --scope alone is for all limit keys")
	}
	before, err := a.Client.ScopePauses(ctx, f.Scope, 1)
	if err != nil {
		return err
	}
	if pause {
		err = a.Client.PauseScope(ctx, f.Scope, reason)
	} else {
		err = a.Client.ResumeScope(ctx, f.Scope)
	}
	if err != nil {
		return err
	}
	use, err := a.Client.ScopeUse(ctx, f.Scope)
	if err != nil {
		return err
	}
	scope, counts := term.Clean(f.Scope), fmt.Sprintf("(%d waiting, %d running)", use.Inbox, use.Running)
	if pause && len(before) > 0 {
		details := a.pauseDetails(before[0].At, before[0].By, before[0].Reason)
		if reason != "" && reason != before[0].Reason {
			return command.WithHint(fmt.Errorf("the scope %s was already paused%s", scope, details),
				"It stays paused. `platform vqueues resume --scope "+suggest.Word(f.Scope)+"` resumes it.")
		}
		a.Print.Printf("%s The scope %s was already paused%s %s\n", a.Print.Green("[OK]:"), scope, details, counts)
		return nil
	}
	if !pause && len(before) == 0 {
		a.Print.Printf("%s The scope %s was not paused %s\n", a.Print.Green("[OK]:"), scope, counts)
		return nil
	}
	verb := "Resumed"
	if pause {
		verb = "Paused"
	}
	a.Print.Printf("%s %s the scope %s %s\n", a.Print.Green("[OK]:"), verb, scope, counts)
	if pause && use.VQueues == 0 {
		a.Say("It has no vqueues at the moment. Invocations of this scope that arrive later wait.")
	}
	return nil
}

// mostScopes is the number of paused scopes that a list of vqueues names.
const mostScopes = 5

// sayScopePauses names the paused scopes of a list of vqueues, also those without any.
func (a *app) sayScopePauses(list []client.ScopePause) {
	for _, p := range list[:min(len(list), mostScopes)] {
		a.Say("The scope %s was paused%s. `platform vqueues resume --scope %s` resumes it.", term.Clean(p.Scope), a.pauseDetails(p.At, p.By, p.Reason), suggest.Word(p.Scope))
	}
	if len(list) > mostScopes {
		a.Say("More scopes are paused: `platform sql \"SELECT * FROM sys_user_limits WHERE is_paused\"`")
	}
}
