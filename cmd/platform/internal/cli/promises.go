package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
)

func (a *app) promises() *cobra.Command {
	return command.Group(&cobra.Command{
		Use:     "promises",
		Aliases: []string{"promise"},
		Short:   "Show the promises of workflows",
		Long: `Shows the promises of a workflow. They are completed by the workflow's own handlers only: call
one that resolves it, like 'platform call Signup/ada/approve true'.`,
	}, a.promisesList(), a.promisesGet())
}

func (a *app) promisesList() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list <Workflow/key>",
		Aliases: []string{"ls"},
		Short:   "List the promises that handlers of a workflow have used",
		Args:    cobra.RangeArgs(1, 2),
		Example: "  platform promises list Signup/ada",
	}
	asJSON := command.JSONFlag(cmd.Flags())
	scope := scopeFlag(cmd)
	a.Shows(cmd, func(ctx context.Context, args []string) error {
		workflow, err := objectOf(args, *scope)
		if err != nil {
			return err
		}
		list, err := a.Client.Promises(ctx, workflow, "")
		if err == nil && len(list) == 0 {
			err = a.requireWorkflow(ctx, workflow.Service)
		}
		if err != nil {
			return err
		}
		if *asJSON {
			return a.PrintJSON(map[string]any{"promises": append([]client.Promise{}, list...)})
		}
		if len(list) == 0 {
			a.Say("No handler of %s has used a promise.", term.Clean(workflow.String()))
			return nil
		}
		rows := make([][]string, len(list))
		for i, p := range list {
			rows[i] = []string{term.Clean(p.Name), promiseStatus(&p), term.Clean(command.OrDash(promiseText(&p)))}
		}
		a.Print.Table("", []string{"PROMISE", "STATUS", "VALUE"}, rows)
		return nil
	})
	return cmd
}

// requireWorkflow returns an error if there is no workflow with this name.
func (a *app) requireWorkflow(ctx context.Context, name string) error {
	service, _, err := a.Client.Service(ctx, name)
	switch {
	case client.IsNotFound(err):
		return command.WithHint(fmt.Errorf("there is no workflow %s", term.Clean(name)), a.nearestService(ctx, name, servicesHint))
	case err == nil && service.Type != "Workflow":
		return fmt.Errorf("%s is not a workflow but a %s", term.Clean(name), service.Type)
	}
	return err
}

func promiseStatus(p *client.Promise) string {
	switch {
	case !p.Completed:
		return "pending"
	case p.Failure != "":
		return "rejected"
	}
	return "resolved"
}

// promiseText is the reason of a rejection, or the value: as text, or as JSON if it is not
// text.
func promiseText(p *client.Promise) string {
	switch {
	case p.Failure != "":
		return p.Failure
	case p.Value != nil:
		return *p.Value
	}
	return string(p.Bytes)
}

func (a *app) promisesGet() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "get <Workflow/key> <promise>",
		Short:   "Print the value of a promise",
		Args:    cobra.ExactArgs(2),
		Example: "  platform promises get Signup/ada approved",
	}
	asJSON := command.JSONFlag(cmd.Flags())
	scope := scopeFlag(cmd)
	a.Shows(cmd, func(ctx context.Context, args []string) error {
		workflow, err := objectOf(args[:1], *scope)
		if err != nil {
			return err
		}
		list, err := a.Client.Promises(ctx, workflow, args[1])
		switch {
		case err != nil:
			return err
		case len(list) == 0:
			if err := a.requireWorkflow(ctx, workflow.Service); err != nil {
				return err
			}
			return command.WithHint(
				fmt.Errorf("no handler of %s has used a promise %q", workflow, args[1]),
				"`platform promises list "+workflow.Service+"/"+workflow.Key+"` shows the promises that were used.")
		case *asJSON:
			return a.PrintJSON(list[0])
		case !list[0].Completed:
			return command.WithHint(fmt.Errorf("the promise %q is pending", args[1]), "A handler of the workflow completes it.")
		case list[0].Failure != "":
			return fmt.Errorf("the promise %q was rejected: %s", args[1], list[0].Failure)
		}
		a.Print.Println(term.Clean(promiseText(&list[0])))
		return nil
	})
	return cmd
}
