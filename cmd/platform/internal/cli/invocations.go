package cli

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
)

// openStatuses are all statuses except completed.
var openStatuses = []string{"scheduled", "pending", "ready", "running", "suspended", "backing-off", "paused"}

func (a *app) invocations() *cobra.Command {
	return command.Group(&cobra.Command{
		Use:     "invocations",
		Aliases: []string{"invocation", "inv"},
		Short:   "Show invocations and their journals, and act on them",
	}, a.invocationsList(), a.invocationsCount(), a.invocationsDescribe(), a.invocationsAttach(), a.invocationsOutput(), a.invocationsPayload(), a.invocationsCancel(), a.invocationsKill(), a.invocationsPause(),
		a.invocationsResume(), a.invocationsRestart(), a.invocationsCopy(), a.invocationsPurge())
}

// selection is the filter that the flags of the list specify.
type selection struct {
	client.Query
	active      bool
	result      string
	objectsOnly bool
	zombie      bool
	runs        map[string]string // handlers that run the workflows, by workflow: only these invocations; nil: all
	none        bool              // nothing can match
}

func (a *app) invocationsList() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list [target]",
		Aliases: []string{"ls"},
		Short:   "List invocations",
		Long: `Lists invocations, newest first: those that have not completed, and completed ones as long as they
are kept. The target selects those of a service, object or handler: <service>, <service>/<handler>,
<object>/<key>, <object>/<key>/<handler>.`,
		Args: cobra.MaximumNArgs(1),
		Example: `  platform invocations list
  platform invocations list Counter/ada --active
  platform invocations list --status running,backing-off
  platform invocations list --zombie
  platform invocations list --result failure --completed-after 1h --sort modified
  platform invocations list --limit 10 --json | jq -r '.invocations[].id'`,
	}
	var s selection
	a.lists(cmd, &s, a.narrow)
	cmd.Flags().BoolVar(&s.objectsOnly, "virtual-objects-only", false, "only those of virtual objects")
	return cmd
}

// lists completes a command that lists the invocations that its flags and narrow select.
func (a *app) lists(cmd *cobra.Command, s *selection, narrow func(ctx context.Context, s *selection, args []string) error) {
	flags := cmd.Flags()
	flags.SortFlags = false
	filterFlags(flags, &s.Filter)
	flags.BoolVar(&s.active, "active", false, "leave out completed ones")
	flags.Bool("all", false, "") // the default; kept for scripts written when it was not
	_ = flags.MarkHidden("all")
	cmd.MarkFlagsMutuallyExclusive("active", "all")
	flags.StringVar(&s.result, "completion-result", "", "only those completed with success or failure")
	flags.BoolVar(&s.zombie, "zombie", false, "only those pinned to a deployment that was removed")
	flags.IntVar(&s.Limit, "limit", 100, "at most this many")
	flags.StringVar(&s.Sort, "sort", "", "by created (the default) or modified time")
	flags.BoolVar(&s.OldestFirst, "oldest-first", false, "oldest first")
	asJSON := command.JSONFlag(flags)
	a.Shows(cmd, func(ctx context.Context, args []string) error {
		s := *s // --watch runs this repeatedly
		if err := s.complete(); err != nil {
			return err
		}
		if err := narrow(ctx, &s, args); err != nil {
			return err
		}
		if err := a.completeFilter(ctx, &s.Filter); err != nil {
			return err
		}
		var list []found
		var more bool
		if !s.none {
			var err error
			if list, more, err = a.collect(ctx, s.Query, a.filter(&s)); err != nil {
				return err
			}
		}
		if *asJSON {
			return a.PrintJSON(map[string]any{"invocations": raws(list)})
		}
		a.listInvocations(list, more, s)
		switch {
		case len(list) == 0 && len(args) == 1:
			return a.hintTarget(ctx, args[0])
		case len(list) == 0 && len(s.Service) == 1:
			return a.hintTarget(ctx, s.Service[0])
		}
		return nil
	})
}

// complete validates the flags and derives the statuses.
func (s *selection) complete() error {
	for _, status := range s.Status {
		if status != "completed" && !slices.Contains(openStatuses, status) {
			return command.UsageError("--status takes " + strings.Join(openStatuses, ", ") + " and completed, got " + status)
		}
	}
	if s.Limit < 1 {
		return command.UsageError("--limit must be at least 1")
	}
	switch {
	case s.result != "" && s.result != "success" && s.result != "failure":
		return command.UsageError("--completion-result takes success or failure, got " + s.result)
	case s.result != "" && slices.ContainsFunc(s.Status, func(status string) bool { return status != "completed" }):
		return command.UsageError("--completion-result selects completed invocations only; leave --status out")
	case s.result != "" && s.active:
		return command.UsageError("--completion-result selects completed invocations only; leave --active out")
	case s.result != "":
		s.Status = []string{"completed"}
	case s.active && len(s.Status) > 0:
		return command.UsageError("give --active or --status, not both")
	case s.active, s.zombie && len(s.Status) == 0: // completed ones do not need their deployment
		s.Status = openStatuses
	}
	return nil
}

// narrow restricts the selection to the target, if there is one.
func (a *app) narrow(ctx context.Context, s *selection, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if len(s.Service)+len(s.Handler)+len(s.Key) > 0 {
		return command.UsageError("give a target or the flags --service, --handler and --key, not both")
	}
	if strings.HasPrefix(args[0], "inv_") {
		return command.UsageError("a target is a service, object or handler; for an invocation see `platform invocations describe`")
	}
	q, err := a.queryOf(ctx, args[0])
	s.Service, s.Handler, s.Key = q.Service, q.Handler, q.Key
	return err
}

// hintTarget explains why a target selects nothing.
func (a *app) hintTarget(ctx context.Context, target string) error {
	name, rest, deep := strings.Cut(target, "/")
	service, _, err := a.Client.Service(ctx, name)
	if client.IsNotFound(err) {
		a.Say("There is no service %s. %s", term.Clean(name), a.nearestService(ctx, name, servicesHint))
		return nil
	}
	if err != nil || !deep {
		return err
	}
	isHandler := slices.ContainsFunc(service.Handlers, func(h client.Handler) bool { return h.Name == rest })
	switch {
	case service.Type == "Service" && !isHandler:
		a.Say("%s has no handler %s. `platform services describe %[1]s` shows its handlers.", term.Clean(name), term.Clean(rest))
	case service.Type != "Service" && isHandler:
		a.Say("%s was read as a key. For the handler of all keys: `platform invocations list --service %s --handler %s`", term.Clean(rest), word(name), word(rest))
	}
	return nil
}

// filter applies the conditions that the server does not support; nil if there are none.
func (a *app) filter(s *selection) filter {
	if s.result == "" && !s.objectsOnly && !s.zombie && s.runs == nil {
		return nil
	}
	gone := a.removedDeployments()
	return func(ctx context.Context, inv *client.Invocation) (bool, error) {
		if s.result != "" && inv.CompletionResult != s.result || s.objectsOnly && inv.TargetServiceType != "virtual_object" {
			return false, nil
		}
		if s.runs != nil && s.runs[inv.TargetServiceName] != inv.TargetHandlerName {
			return false, nil
		}
		if !s.zombie {
			return true, nil
		}
		if inv.PinnedDeploymentID == "" {
			return false, nil
		}
		return gone(ctx, inv.PinnedDeploymentID)
	}
}

// removedDeployments determines which deployments do not exist. It requests each one once,
// after it has seen an invocation that is pinned to it: a list that was read earlier would
// lack deployments registered since.
func (a *app) removedDeployments() func(ctx context.Context, id string) (bool, error) {
	known := map[string]bool{}
	return func(ctx context.Context, id string) (bool, error) {
		gone, asked := known[id]
		if asked {
			return gone, nil
		}
		_, _, err := a.Client.Deployment(ctx, id)
		if response, ok := errors.AsType[*client.APIError](err); ok && response.Status == http.StatusNotFound {
			gone, err = true, nil
		}
		if err != nil {
			return false, err
		}
		known[id] = gone
		return gone, nil
	}
}

// found is an invocation and its JSON.
type found struct {
	client.Invocation
	raw json.RawMessage
}

// filter reports whether an invocation belongs to a listing.
type filter func(context.Context, *client.Invocation) (bool, error)

// largestPage is the largest page that the server returns.
const largestPage = 1000

// collect reads pages until the query's limit of matches is reached; more reports that
// there may be others.
func (a *app) collect(ctx context.Context, q client.Query, matches filter) (list []found, more bool, err error) {
	limit := q.Limit
	for {
		q.Limit = min(limit-len(list), largestPage)
		if matches != nil {
			q.Limit = largestPage // few of a page may match
		}
		page, err := a.Client.Invocations(ctx, q)
		if err != nil {
			return nil, false, err
		}
		for i := range page.Invocations {
			inv := &page.Invocations[i]
			if matches != nil {
				if ok, err := matches(ctx, inv); err != nil {
					return nil, false, err
				} else if !ok {
					continue
				}
			}
			if len(list) == limit {
				return list, true, nil
			}
			list = append(list, found{*inv, page.Raw[i]})
		}
		if page.Next == "" || len(list) >= limit {
			return list, page.Next != "", nil
		}
		q.Cursor = page.Next
	}
}

func raws(list []found) []json.RawMessage {
	raw := make([]json.RawMessage, len(list))
	for i, f := range list {
		raw[i] = f.raw
	}
	return raw
}
