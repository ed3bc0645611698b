package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
	"platform/internal/units"
)

func (a *commands) clusterConfigGet() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "get",
		Aliases: []string{"view"},
		Short:   "Show the cluster configuration",
		Args:    cobra.NoArgs,
		Example: "  platform cluster config get",
	}
	request := func(ctx context.Context, _ []string) (client.ClusterConfig, *client.Response, error) {
		return a.Client.ClusterConfig(ctx)
	}
	return command.ViewResponse(a.App, cmd, request, func(_ context.Context, config client.ClusterConfig) error {
		a.showClusterConfig(config)
		return nil
	})
}

func (a *commands) showClusterConfig(c client.ClusterConfig) {
	flow := "not enabled"
	if c.FlowControl {
		flow = "enabled"
	}
	a.Print.Heading("Cluster " + term.Clean(c.Name))
	fields := []term.Field{
		{Name: "Id", Value: term.Clean(c.ID)},
		{Name: "Partitions", Value: strconv.Itoa(c.Partitions)},
		{Name: "Replication", Value: strconv.Itoa(c.Replication)},
		{Name: "Flow control", Value: flow},
		{Name: "Feature level", Value: strconv.FormatUint(uint64(max(c.FeatureLevel, 1)), 10)},
		{Name: "Provisioned", Value: a.Print.Time(c.ProvisionedAt)},
	}
	if c.LossesSurvived != nil {
		survived := *c.LossesSurvived
		fields = append(fields, term.Field{Name: "Survives", Value: lossesText(client.Survival{Now: survived, Whole: survived})})
	}
	a.Print.Fields("  ", fields...)
}

func (a *commands) clusterConfigSet() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set",
		Short: "Change the number of replicas, or raise the feature level",
		Long: `Changes the number of replicas of each partition. Replicas are added and removed one by
one. With 3 replicas the cluster survives the failure of any one node, with 5 of any two; each
write waits for a majority. More replicas than there are nodes require --force: those that are
missing are added when nodes join.

The feature level rises automatically once all nodes support a higher one, unless a node runs
with feature-level-hold; in that case --feature-level raises it. Servers that do not support
the new level can no longer join the cluster. The level cannot be lowered.`,
		Args:    cobra.NoArgs,
		Example: "  platform cluster config set --replication 3\n  platform cluster config set --feature-level 4    # after an upgrade that was held",
	}
	replication := cmd.Flags().Int("replication", 0, "replicas of each partition")
	level := cmd.Flags().Uint32("feature-level", 0, "feature level to raise the cluster to")
	force := cmd.Flags().Bool("force", false, "proceed although the cluster would survive no node failure, or has fewer nodes than replicas")
	asJSON := command.JSONFlag(cmd.Flags())
	cmd.RunE = command.Run(func(ctx context.Context, _ []string) error {
		var change client.ClusterChange
		if cmd.Flags().Changed("replication") {
			if *replication < 1 {
				return command.UsageError(fmt.Sprintf("--replication must be at least 1, not %d", *replication))
			}
			change.Replication = replication
		}
		if cmd.Flags().Changed("feature-level") {
			if *level < 1 {
				return command.UsageError("--feature-level must be at least 1, not 0")
			}
			change.FeatureLevel = level
		}
		if change == (client.ClusterChange{}) {
			return command.UsageError("nothing to change: give --replication or --feature-level")
		}
		return a.changeClusterConfig(ctx, change, *force, *asJSON)
	})
	return cmd
}

func (a *commands) changeClusterConfig(ctx context.Context, change client.ClusterChange, force, asJSON bool) error {
	now, current, err := a.Client.ClusterConfig(ctx)
	if err != nil {
		return err
	}
	if r := change.Replication; r != nil && *r == now.Replication {
		a.Say("Replication is already %d.", *r)
		change.Replication = nil
	}
	if level := change.FeatureLevel; level != nil && *level == max(now.FeatureLevel, 1) {
		a.Say("The feature level is already %d.", *level)
		change.FeatureLevel = nil
	}
	if err := a.checkLevel(ctx, change.FeatureLevel, max(now.FeatureLevel, 1)); err != nil {
		return err
	}
	if change == (client.ClusterChange{}) {
		if asJSON {
			return a.PrintRaw(current.Body)
		}
		return nil
	}
	if change.Replication != nil {
		err = a.Confirm(fmt.Sprintf("Change the replication of cluster %s from %d to %d?", term.Clean(now.Name), now.Replication, *change.Replication))
	}
	if err == nil && change.FeatureLevel != nil {
		err = a.Confirm(fmt.Sprintf("Raise the feature level of cluster %s from %d to %d? Servers that do not support it can no longer join the cluster.",
			term.Clean(now.Name), max(now.FeatureLevel, 1), *change.FeatureLevel))
	}
	if err != nil {
		return err
	}
	config, response, err := a.Client.SetClusterConfig(ctx, change, force)
	if err != nil {
		return err
	}
	if asJSON {
		return a.PrintRaw(response.Body)
	}
	if change.FeatureLevel != nil {
		a.Print.Printf("%s Feature level is %d\n", a.Print.Green("[OK]:"), config.FeatureLevel)
	}
	if change.Replication != nil {
		a.Print.Printf("%s Replication is %d\n", a.Print.Green("[OK]:"), config.Replication)
		if was, is := now.LossesSurvived, config.LossesSurvived; was != nil && is != nil {
			a.Say("Node failures survived: %d before, %d once all replicas are complete.", *was, *is)
		}
		if even := config.Replication; even%2 == 0 {
			a.Say("An even number of replicas survives no more failures than %d.", even-1)
		}
		a.Say("`platform cluster status --watch` shows the progress.")
	}
	return nil
}

// checkLevel returns why the server would refuse a feature level, so that no confirmation is
// requested for it.
func (a *commands) checkLevel(ctx context.Context, level *uint32, now uint32) error {
	if level == nil {
		return nil
	}
	if *level <= now {
		return command.WithHint(fmt.Errorf("the feature level is %d and cannot be lowered to %d", now, *level),
			"Nodes have stored what servers of a lower level cannot read.")
	}
	health, _, err := a.Client.ClusterHealth(ctx)
	if err != nil || health.Feature == nil || *level <= health.Feature.Supported {
		return nil //nolint:nilerr // the server checks it too
	}
	if f := health.Feature; *level <= f.Highest {
		return command.WithHint(fmt.Errorf("feature level %d is not supported by all nodes: %s", *level, strings.Join(f.Waiting, "; ")),
			"Upgrade their servers first. `platform cluster nodes list` shows the versions.")
	}
	return command.WithHint(fmt.Errorf("no node supports feature level %d; the highest is %d", *level, health.Feature.Highest),
		"Upgrade the servers of all nodes first. `platform cluster nodes list` shows the versions.")
}

// provisionWait bounds how long provision waits for the cluster.
const provisionWait = time.Minute

func (a *commands) clusterProvision() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "provision",
		Short: "Create the cluster explicitly",
		Long: `Creates the cluster if its nodes run with auto-provision = false, once as many nodes as
bootstrap-expect are running. Send the command to the node whose name sorts first. The number
of partitions cannot be changed later.`,
		Args:    cobra.NoArgs,
		Example: "  platform cluster provision --num-partitions 16 --replication 3",
	}
	partitions := cmd.Flags().Int("num-partitions", 0, "partitions (default: default-num-partitions of the node)")
	replication := cmd.Flags().Int("replication", 0, "replicas of each (default: default-replication of the node)")
	cmd.RunE = command.Run(func(ctx context.Context, _ []string) error {
		var asked client.Provisioning
		if cmd.Flags().Changed("num-partitions") {
			asked.Partitions = partitions
		}
		if cmd.Flags().Changed("replication") {
			asked.Replication = replication
		}
		return a.provision(ctx, asked)
	})
	return cmd
}

func (a *commands) provision(ctx context.Context, asked client.Provisioning) error {
	config, _, err := a.Client.ClusterConfig(ctx)
	exists := err == nil
	if _, refused := errors.AsType[*client.APIError](err); !exists && !refused {
		return err
	}
	question := "Create a cluster? Partitions: %s, which cannot be changed later; replication: %s."
	if !exists {
		if err := a.Confirm(fmt.Sprintf(question, orConfigured(asked.Partitions), orConfigured(asked.Replication))); err != nil {
			return err
		}
	}
	existed, err := a.Client.Provision(ctx, asked)
	if err != nil {
		return err
	}
	if existed && exists {
		a.Print.Printf("Nothing was changed: the cluster %s exists already, with %s and replication %d\n",
			term.Clean(config.Name), units.Counted(config.Partitions, "partition"), config.Replication)
		return nil
	}
	for end := time.Now().Add(provisionWait); ; {
		config, _, err := a.Client.ClusterConfig(ctx)
		if err == nil {
			a.Print.Printf("%s Created the cluster\n", a.Print.Green("[OK]:"))
			a.showClusterConfig(config)
			return nil
		}
		refusal, answered := errors.AsType[*client.APIError](err)
		if time.Now().After(end) || answered && refusal.Status != http.StatusServiceUnavailable {
			return command.WithHint(err, "The node accepted the request; its log names what it waits for.")
		}
		select {
		case <-time.After(waitPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func orConfigured(n *int) string {
	if n == nil {
		return "the node's default"
	}
	return strconv.Itoa(*n)
}
