package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
)

func (a *app) deploymentsUpdate() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "update <id or address> [URL or ARN]",
		Aliases: []string{"edit"},
		Short:   "Change a deployment in place",
		Long: `Changes the address of a deployment and how it is called. Invocations in progress continue
there, so that corrected code completes those that failed. The services at the new address must be
compatible with the registered ones, which are kept, unless --overwrite replaces them.

Shows the changes and prompts for confirmation.`,
		Args: cobra.RangeArgs(1, 2),
		Example: `  platform deployments update dp_1… http://localhost:9081
  platform deployments update dp_1… --extra-header authorization="Bearer abc"
  platform deployments update dp_1… --overwrite --dry-run`,
	}
	var u updateRequest
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVar(&u.Overwrite, "overwrite", false, "replace the registered services by those of the endpoint, even if incompatible")
	flags.BoolVar(&u.http11, "use-http1.1", false, "use HTTP/1.1 for the endpoint; =false for HTTP/2")
	flags.StringArrayVar(&u.headers, "extra-header", nil, "header `name=value` of every request, in place of all existing ones (repeatable)")
	flags.BoolVar(&u.noHeaders, "no-extra-headers", false, "stop sending extra headers")
	flags.StringVar(&u.role, "assume-role-arn", "", "role to assume before invoking a function")
	flags.BoolVar(&u.planOnly, "dry-run", false, "only show the changes")
	u.asJSON = command.JSONFlag(flags)
	cmd.RunE = command.Run(func(ctx context.Context, args []string) error {
		if flags.Changed("use-http1.1") {
			u.UseHTTP11 = &u.http11
		}
		if flags.Changed("assume-role-arn") {
			u.AssumeRoleARN = &u.role
		}
		if err := u.complete(args[1:]); err != nil {
			return err
		}
		id, err := a.deploymentID(ctx, args[0])
		if err != nil {
			return err
		}
		return a.updateDeployment(ctx, id, u)
	})
	return cmd
}

// updateRequest is the request of the command line.
type updateRequest struct {
	client.DeploymentUpdate
	headers   []string
	noHeaders bool
	http11    bool
	role      string
	planOnly  bool
	asJSON    *bool
}

// complete sets the request's fields from address and flags.
func (u *updateRequest) complete(address []string) (err error) {
	switch {
	case len(address) == 0:
	case strings.HasPrefix(address[0], "arn:"):
		u.ARN = address[0]
	default:
		if u.URI, err = endpointURL(address[0]); err != nil {
			return err
		}
	}
	if u.AdditionalHeaders, err = parseHeaders("--extra-header", u.headers); err != nil {
		return err
	}
	if u.noHeaders && u.AdditionalHeaders != nil {
		return command.UsageError("--extra-header and --no-extra-headers exclude each other")
	}
	if u.noHeaders {
		u.AdditionalHeaders = map[string]string{}
	}
	if u.URI == "" && u.ARN == "" && u.UseHTTP11 == nil && u.AssumeRoleARN == nil && u.AdditionalHeaders == nil && !u.Overwrite {
		return command.UsageError("nothing to change: give an address or an option")
	}
	return nil
}

func (a *app) updateDeployment(ctx context.Context, id string, u updateRequest) error {
	before, _, err := a.Client.Deployment(ctx, id)
	if err != nil {
		return deploymentNotFound(err)
	}
	u.DryRun = true
	planned, response, err := a.Client.UpdateDeployment(ctx, id, u.DeploymentUpdate)
	if err != nil {
		return err
	}
	a.showUpdate(before, planned, u.Overwrite, u.AdditionalHeaders != nil)
	if u.planOnly {
		if *u.asJSON {
			return a.PrintRaw(response.Body)
		}
		return nil
	}
	if err := a.Confirm("Apply these changes?"); err != nil {
		return err
	}
	u.DryRun = false
	done, response, err := a.Client.UpdateDeployment(ctx, id, u.DeploymentUpdate)
	if err != nil {
		return err
	}
	if *u.asJSON {
		return a.PrintRaw(response.Body)
	}
	a.Print.Printf("%s Updated deployment %s\n", a.Print.Green("[OK]:"), done.ID)
	return nil
}

// showUpdate prints, on stderr, what an update changes.
func (a *app) showUpdate(before, after client.Deployment, overwrite, headers bool) {
	if overwrite {
		a.Hint.Box(
			"This replaces the services of deployment "+after.ID+".",
			"Invocations in flight on it may be unable to continue with the new code.",
		)
	}
	changed := changes(transportFields(a.Hint, before), transportFields(a.Hint, after))
	if headers && headerPairs(before.AdditionalHeaders) == headerPairs(after.AdditionalHeaders) && len(after.AdditionalHeaders) > 0 {
		changed = append(changed, term.Field{Name: "Headers", Value: "other values"}) // the server does not show them
	}
	p := servicesPlan(before.Services, after.Services)
	if len(changed) > 0 {
		a.Hint.Printf("%s\n", a.Hint.Yellow("CHANGED"))
		a.Hint.Fields("  ", changed...)
	} else if len(p.added)+len(p.updated)+len(p.removed) == 0 {
		a.Hint.Printf("Nothing would change.\n")
	}
	a.printPlan(p)
	for _, n := range after.Info {
		a.Hint.Printf("  %s %s\n", a.Hint.Yellow("Notice:"), term.Clean(n.Message))
	}
}

// changes returns the fields whose values differ, with both values.
func changes(before, after []term.Field) []term.Field {
	var list []term.Field
	for i, f := range after {
		if was := before[i].Value; was != f.Value {
			list = append(list, term.Field{Name: f.Name, Value: oneLine(was) + " -> " + oneLine(f.Value)})
		}
	}
	return list
}

func oneLine(text string) string { return command.OrDash(strings.ReplaceAll(text, "\n", ", ")) }

// servicesPlan compares the services of a deployment before and after, without the unchanged
// ones.
func servicesPlan(before, after []client.Service) plan {
	p := makePlan(before, before, after)
	p.updated = slices.DeleteFunc(p.updated, func(u update) bool {
		return u.before.Type == u.after.Type && u.before.Revision == u.after.Revision &&
			len(optionChanges(u)) == 0 && sameHandlers(u.before.Handlers, u.after.Handlers)
	})
	return p
}
