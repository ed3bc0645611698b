package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
)

func (a *app) workflowsList() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list [Workflow[/key]]",
		Aliases: []string{"ls"},
		Short:   "List the runs of workflows",
		Long: `Lists the runs of the registered workflows, newest first: those that have not completed, and completed ones
as long as they are kept. With --handler it lists the invocations of other handlers of the workflows instead.`,
		Args: cobra.MaximumNArgs(1),
		Example: `  platform workflows list
  platform workflows list Signup --status suspended
  platform workflows list Signup/ada
  platform workflows list --result failure --completed-after 1h`,
	}
	a.lists(cmd, new(selection), a.narrowToWorkflows)
	return cmd
}

// narrowToWorkflows restricts the selection to the target, to workflows, and to their runs unless it has a handler.
func (a *app) narrowToWorkflows(ctx context.Context, s *selection, args []string) error {
	if err := a.narrow(ctx, s, args); err != nil {
		return err
	}
	services, _, err := a.Client.Services(ctx)
	if err != nil {
		return err
	}
	runs, err := a.runHandlers(ctx, services, s.Service)
	if err != nil {
		return err
	}
	s.Service = slices.Sorted(maps.Keys(runs))
	s.none = len(runs) == 0
	if len(s.Handler) > 0 {
		return nil
	}
	s.Handler = slices.Compact(slices.Sorted(maps.Values(runs)))
	if len(s.Handler) > 1 { // one of them may be another handler of another workflow
		s.runs = runs
	}
	return nil
}

// runHandlers returns the handlers that run the workflows with the given names, by workflow; without names, those of all workflows.
func (a *app) runHandlers(ctx context.Context, services []client.Service, names []string) (map[string]string, error) {
	runs, types := map[string]string{}, map[string]string{}
	for _, service := range services {
		types[service.Name] = service.Type
		for _, h := range service.Handlers {
			if h.Type == "Workflow" && (len(names) == 0 || slices.Contains(names, service.Name)) {
				runs[service.Name] = h.Name
			}
		}
	}
	for _, name := range names {
		switch typ := types[name]; typ {
		case "Workflow":
		case "":
			return nil, command.WithHint(fmt.Errorf("there is no workflow %s", term.Clean(name)), a.nearestService(ctx, name, servicesHint))
		default:
			return nil, command.WithHint(fmt.Errorf("%s is not a workflow but a %s", term.Clean(name), typ), "`platform invocations list "+word(name)+"` lists its invocations.")
		}
	}
	return runs, nil
}
