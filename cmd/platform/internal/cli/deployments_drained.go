package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/client"
	"platform/internal/units"
)

func (a *app) deploymentsPrune() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "prune",
		Short:   "Remove all drained deployments",
		Long:    "Removes all deployments that serve no latest revision of a service and that no invocation needs.",
		Args:    cobra.NoArgs,
		Example: "  platform deployments prune",
	}
	cmd.RunE = command.Run(func(ctx context.Context, _ []string) error { return a.removeDrained(ctx) })
	return cmd
}

// removeDrained removes all deployments that nothing needs.
func (a *app) removeDrained(ctx context.Context) error {
	list, _, err := a.Client.Deployments(ctx)
	if err != nil {
		return err
	}
	var drained []client.Deployment
	for _, d := range list {
		use, err := a.usage(ctx, d.ID)
		if err != nil {
			return err
		}
		if !use.needed() {
			drained = append(drained, d)
		}
	}
	if len(drained) == 0 {
		a.Say("No deployment is drained. `platform deployments list --extra` shows what they are needed for.")
		return nil
	}
	if err := a.deploymentTable(ctx, slices.Clone(drained), false); err != nil {
		return err
	}
	if err := a.Confirm(fmt.Sprintf("Remove %s?", units.Counted(len(drained), "deployment"))); err != nil {
		return err
	}
	removed := 0
	var failed []error
	for _, d := range drained {
		// The server refuses it if an invocation has started meanwhile.
		if err := a.Client.RemoveDeployment(ctx, d.ID, false); err != nil {
			failed = append(failed, fmt.Errorf("%s was not removed: %w", d.ID, err))
			continue
		}
		removed++
	}
	if removed > 0 {
		a.Print.Printf("%s Removed %s\n", a.Print.Green("[OK]:"), units.Counted(removed, "deployment"))
	}
	return errors.Join(failed...)
}
