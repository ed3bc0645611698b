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
	"platform/internal/units"
)

func (a *app) objects() *cobra.Command {
	return command.Group(&cobra.Command{
		Use:     "objects",
		Aliases: []string{"object", "ob"},
		Short:   "Show the keys of objects and workflows",
		Long: `Shows the keys of virtual objects and workflows: the size of their state, the invocation that holds the
lock of a key, and the invocations queued behind it. ` + "`platform state`" + ` reads and edits the state.`,
	}, a.objectsList(), a.objectsScopes(), a.objectsDescribe())
}

func (a *app) objectsList() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list <service>",
		Aliases: []string{"ls"},
		Short:   "List the keys with state or a holder",
		Args:    cobra.ExactArgs(1),
		Example: "  platform objects list Counter\n  platform objects list Counter --prefix customer-",
	}
	scope := scopeFlag(cmd)
	prefix := cmd.Flags().String("prefix", "", "only keys that start with this text")
	limit := cmd.Flags().Int("limit", 100, "at most this many keys")
	return command.ViewResponse(a.App, cmd, func(ctx context.Context, args []string) (page client.ObjectPage, response *client.Response, err error) {
		if *limit < 1 || *limit > largestPage {
			return page, nil, command.UsageError(fmt.Sprintf("--limit must be from 1 to %d", largestPage))
		}
		if err := serviceOnly(args[0]); err != nil {
			return page, nil, err
		}
		page, response, err = a.Client.Objects(ctx, args[0], *scope, *prefix, *limit)
		return page, response, a.serviceNotFound(ctx, err, args[0], stateHint)
	}, func(_ context.Context, page client.ObjectPage) error {
		if len(page.Objects) == 0 {
			a.Say("No key has state or a holder.")
			return nil
		}
		rows := make([][]string, len(page.Objects))
		for i, o := range page.Objects {
			rows[i] = []string{term.Clean(o.Key), strconv.Itoa(o.StateEntries), units.ByteSize(o.StateBytes).String(), o.Holder, countWaiting(o.Waiting, 0, *scope)}
		}
		a.Print.Table("", []string{"KEY", "ENTRIES", "SIZE", "HELD-BY", "WAITING"}, rows)
		if page.Next != "" {
			a.Say("There are more than these; see --limit and --prefix.")
		}
		return nil
	})
}

// serviceOnly refuses a key or handler behind the name of a service.
func serviceOnly(name string) error {
	service, rest, found := strings.Cut(name, "/")
	if !found {
		return nil
	}
	return command.UsageError(fmt.Sprintf("%q is not the name of a service: give only %q; the key %q belongs to `platform objects describe %s`", name, service, rest, name))
}

// maxCountedWaiting is up to where the server counts the invocations that wait for a key with a scope.
const maxCountedWaiting = 1000

// countWaiting is the number of invocations that wait for a key, without the first ones.
func countWaiting(n, first uint64, scope string) string {
	text := strconv.FormatUint(n-first, 10)
	if scope != "" && n >= maxCountedWaiting {
		text += " or more"
	}
	return text
}

func (a *app) objectsScopes() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "scopes <service>",
		Short:   "List the scopes in which a service has keys",
		Args:    cobra.ExactArgs(1),
		Example: "  platform objects scopes Counter",
	}
	return command.ViewResponse(a.App, cmd, func(ctx context.Context, args []string) (client.ScopeList, *client.Response, error) {
		list, response, err := a.Client.Scopes(ctx, args[0])
		return list, response, a.serviceNotFound(ctx, err, args[0], stateHint)
	}, func(_ context.Context, list client.ScopeList) error {
		if len(list.Scopes) == 0 {
			a.Say("No key of the service has a scope.")
			return nil
		}
		rows := make([][]string, len(list.Scopes))
		for i, scope := range list.Scopes {
			rows[i] = []string{term.Clean(scope)}
		}
		a.Print.Table("", []string{"SCOPE"}, rows)
		if list.Truncated {
			a.Say("There are more scopes than these.")
		}
		return nil
	})
}

func (a *app) objectsDescribe() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "describe <service/key>",
		Aliases: []string{"get"},
		Short:   "Show a key: its holder, its queue, and the promises of a workflow",
		Args:    cobra.RangeArgs(1, 2),
		Example: "  platform objects describe Counter/alice",
	}
	scope := scopeFlag(cmd)
	return command.ViewResponse(a.App, cmd, func(ctx context.Context, args []string) (client.ObjectDetail, *client.Response, error) {
		object, err := objectOf(args, *scope)
		if err != nil {
			return client.ObjectDetail{}, nil, err
		}
		detail, response, err := a.Client.Object(ctx, object)
		return detail, response, a.serviceNotFound(ctx, err, object.Service, stateHint)
	}, func(_ context.Context, d client.ObjectDetail) error {
		a.showObject(&d)
		return nil
	})
}

func (a *app) showObject(d *client.ObjectDetail) {
	a.Print.Heading("Object")
	fields := []term.Field{{Name: "Service", Value: term.Clean(d.Service)}, {Name: "Key", Value: term.Clean(d.Key)}}
	if d.Scope != "" {
		fields = append(fields, term.Field{Name: "Scope", Value: term.Clean(d.Scope)})
	}
	entries := "entries"
	if d.StateEntries == 1 {
		entries = "entry"
	}
	fields = append(fields, term.Field{Name: "State", Value: fmt.Sprintf("%s in %d %s", units.ByteSize(d.StateBytes), d.StateEntries, entries)})
	if d.Holder != "" {
		fields = append(fields, term.Field{Name: "Held by", Value: d.Holder + " since " + a.Print.Time(d.HeldSince)})
	}
	a.Print.Fields("  ", fields...)
	if len(d.Queue) > 0 {
		rows := make([][]string, len(d.Queue))
		for i, id := range d.Queue {
			rows[i] = []string{strconv.Itoa(i + 1), id}
		}
		a.Print.Println()
		a.Print.Heading("Waiting")
		a.Print.Table("  ", []string{"#", "INVOCATION-OR-STATE-CHANGE"}, rows)
		if shown := uint64(len(d.Queue)); d.Waiting > shown {
			a.Say("%s more wait behind these.", countWaiting(d.Waiting, shown, d.Scope))
		}
	}
	if len(d.Promises) > 0 {
		rows := make([][]string, len(d.Promises))
		for i, p := range d.Promises {
			rows[i] = []string{term.Clean(p.Name), promiseState(&p)}
		}
		a.Print.Println()
		a.Print.Heading("Promises")
		a.Print.Table("  ", []string{"NAME", "STATE"}, rows)
	}
}

func promiseState(p *client.ObjectPromise) string {
	switch {
	case p.Failure != "":
		return "rejected: " + term.Clean(p.Failure)
	case p.Completed:
		return "completed"
	}
	return "pending"
}
