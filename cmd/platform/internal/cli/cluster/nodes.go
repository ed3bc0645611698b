package cluster

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
	"platform/internal/units"
)

const nodesHint = "`platform cluster nodes list` shows the nodes there are."

func (a *commands) nodesList() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List nodes",
		Args:    cobra.NoArgs,
		Example: "  platform cluster nodes list --watch\n  platform cluster nodes list --json | jq '.nodes[] | select(.state != \"alive\").name'",
	}
	request := func(ctx context.Context, _ []string) ([]client.Node, *client.Response, error) {
		return a.Client.Nodes(ctx)
	}
	return command.ViewResponse(a.App, cmd, request, func(_ context.Context, nodes []client.Node) error {
		a.nodeTable(nodes)
		return nil
	})
}

func (a *commands) nodeTable(nodes []client.Node) {
	rows := make([][]string, len(nodes))
	for i, n := range nodes {
		rows[i] = []string{
			n.ID.String(), term.Clean(n.Name), a.nodeState(n), uptime(n), command.OrDash(n.Metadata),
			strconv.Itoa(n.Leaders), strconv.Itoa(n.Replicas), command.OrDash(term.Clean(n.Version)), nodeLevel(n), command.OrDash(term.Clean(n.Address)),
		}
	}
	a.Print.Table("", []string{"ID", "NAME", "STATE", "UPTIME", "METADATA", "LEADS", "REPLICAS", "VERSION", "LEVEL", "ADDRESS"}, rows)
}

// nodeLevel is the highest feature level that a node's server supports, with an asterisk if
// the node holds the cluster's level.
func nodeLevel(n client.Node) string {
	switch {
	case n.FeatureLevel == 0:
		return "-"
	case n.FeatureHold:
		return strconv.FormatUint(uint64(n.FeatureLevel), 10) + "*"
	}
	return strconv.FormatUint(uint64(n.FeatureLevel), 10)
}

// nodeState is the state of a node and the operations in progress on it.
func (a *commands) nodeState(n client.Node) string {
	var more []string
	if n.Draining {
		more = append(more, "draining")
	}
	if n.Stopping {
		more = append(more, "stopping")
	}
	if n.State == "alive" && !n.Answers {
		more = append(more, "silent")
	}
	text := n.State
	if len(more) > 0 {
		text += " (" + strings.Join(more, ", ") + ")"
	}
	switch {
	case n.State != "alive":
		return a.Print.Red(term.Clean(text))
	case len(more) > 0:
		return a.Print.Yellow(text)
	}
	return a.Print.Green(text)
}

// uptime is the time since a node's process started.
func uptime(n client.Node) string {
	if n.StartedAt.IsZero() || n.State != "alive" {
		return "-"
	}
	return term.Duration(max(time.Since(n.StartedAt), 0).Truncate(time.Second))
}

func (a *commands) nodesDescribe() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "describe <node>",
		Aliases: []string{"get"},
		Short:   "Show one node",
		Args:    cobra.ExactArgs(1),
		Example: "  platform cluster nodes describe n2",
	}
	request := func(ctx context.Context, args []string) (client.Node, *client.Response, error) {
		n, response, err := a.Client.Node(ctx, args[0])
		return n, response, command.HintNotFound(err, nodesHint)
	}
	return command.ViewResponse(a.App, cmd, request, func(_ context.Context, n client.Node) error {
		a.Print.Heading("Node " + term.Clean(n.Name))
		fields := []term.Field{
			{Name: "Id", Value: n.ID.String()},
			{Name: "State", Value: a.nodeState(n)},
			{Name: "State since", Value: a.Print.Time(n.StateSince)},
			{Name: "Started", Value: a.Print.Time(n.StartedAt)},
			{Name: "Registered", Value: a.Print.Time(n.RegisteredAt)},
			{Name: "Metadata", Value: n.Metadata},
			{Name: "Partitions", Value: fmt.Sprintf("leads %d, has replicas of %d", n.Leaders, n.Replicas)},
			{Name: "Node address", Value: term.Clean(n.Address)},
			{Name: "Ingress", Value: term.Clean(n.IngressAddress)},
			{Name: "Admin API", Value: term.Clean(n.AdminAddress)},
			{Name: "Version", Value: term.Clean(n.Version)},
			{Name: "Feature level", Value: nodeLevel(n)},
			{Name: "Incarnation", Value: term.Clean(n.Incarnation)},
		}
		if n.Usage != nil {
			fields = append(fields, usageFields(n.Usage)...)
		}
		a.Print.Fields("  ", fields...)
		return nil
	})
}

// usageFields describes what a node uses of its machine.
func usageFields(u *client.NodeUsage) []term.Field {
	fields := []term.Field{
		{Name: "CPU", Value: fmt.Sprintf("%.2f of %s", u.CPU, units.Counted(u.Cores, "core"))},
		{Name: "Memory", Value: command.RoughSize(u.Memory)},
	}
	if u.MemoryLimit > 0 {
		fields[1].Value += " of " + command.RoughSize(u.MemoryLimit)
	}
	if u.DiskTotal > 0 {
		fields = append(fields, term.Field{Name: "Disk", Value: command.RoughSize(u.DiskFree) + " free of " + command.RoughSize(u.DiskTotal)})
	}
	return fields
}

func (a *commands) nodesDrain() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "drain <node>",
		Short: "Move a node's replicas to other nodes, so that it can be removed",
		Long: `Drains a node: its replicas are moved one by one to other nodes, as far as there are nodes
without a replica, and its leaderships are transferred. Requests continue to be served. The
node keeps running and forwards requests to other nodes.

A node that is only restarted need not be drained: a stopping node transfers its leaderships.`,
		Args:    cobra.ExactArgs(1),
		Example: "  platform cluster nodes drain n3 --wait 10m && platform cluster nodes remove n3",
	}
	wait := command.Timeout(0)
	cmd.Flags().Var(&wait, "wait", "wait up to this long until the node has no replicas")
	force := cmd.Flags().Bool("force", false, "proceed although the cluster would survive no node failure")
	cmd.RunE = command.Run(func(ctx context.Context, args []string) error {
		n, _, err := a.Client.Node(ctx, args[0])
		if err != nil {
			return command.HintNotFound(err, nodesHint)
		}
		if err := a.Confirm(fmt.Sprintf("Drain node %s, which has %d replicas?", term.Clean(n.Name), n.Replicas)); err != nil {
			return err
		}
		if n, err = a.Client.DrainNode(ctx, args[0], *force); err != nil {
			return err
		}
		if wait > 0 {
			return a.awaitDrained(ctx, args[0], time.Duration(wait))
		}
		a.Print.Printf("%s Node %s is being drained\n", a.Print.Green("[OK]:"), term.Clean(n.Name))
		a.saySurvives(ctx)
		a.Say("`platform cluster nodes list --watch` shows the progress. Then remove the node with `platform cluster nodes remove %s`, or return it to service with `undrain`.", term.Clean(n.Name))
		return nil
	})
	return cmd
}

// awaitDrained returns when a node has no replicas left.
func (a *commands) awaitDrained(ctx context.Context, node string, wait time.Duration) error {
	for end := time.Now().Add(wait); ; {
		n, _, err := a.Client.Node(ctx, node)
		switch {
		case err == nil && n.Replicas == 0:
			a.Print.Printf("%s Node %s has no replicas left\n", a.Print.Green("[OK]:"), term.Clean(n.Name))
			return nil
		case err != nil && (refused(err) || time.Now().After(end)):
			return err
		case time.Now().After(end):
			return command.WithHint(
				fmt.Errorf("node %s still has %d replicas after %s", term.Clean(n.Name), n.Replicas, term.Duration(wait)),
				"Draining continues. `platform cluster status` shows what prevents it.")
		}
		select {
		case <-time.After(waitPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (a *commands) nodesUndrain() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "undrain <node>",
		Short:   "Return a drained node to service",
		Args:    cobra.ExactArgs(1),
		Example: "  platform cluster nodes undrain n3",
	}
	cmd.RunE = command.Run(func(ctx context.Context, args []string) error {
		before, _, err := a.Client.Node(ctx, args[0])
		if err != nil {
			return command.HintNotFound(err, nodesHint)
		}
		n, err := a.Client.UndrainNode(ctx, args[0])
		if err != nil {
			return err
		}
		if !before.Draining {
			a.Print.Printf("%s Node %s was not drained\n", a.Print.Green("[OK]:"), term.Clean(n.Name))
			return nil
		}
		a.Print.Printf("%s Node %s takes replicas\n", a.Print.Green("[OK]:"), term.Clean(n.Name))
		return nil
	})
	return cmd
}

func (a *commands) nodesRemove() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "remove <node>...",
		Aliases: []string{"rm"},
		Short:   "Remove nodes from the cluster",
		Long: `Removes nodes without replicas; drain them first. --force also removes a node that is
permanently lost; its replicas are rebuilt from those on other nodes.

A removed node can join again only with an empty data directory.`,
		Args:    cobra.MinimumNArgs(1),
		Example: "  platform cluster nodes remove n3\n  platform cluster nodes remove n3 --force",
	}
	force := cmd.Flags().Bool("force", false, "proceed although the node has replicas, or although the cluster would survive no node failure")
	cmd.RunE = command.Run(func(ctx context.Context, args []string) error {
		for _, name := range args {
			if err := a.removeNode(ctx, name, *force); err != nil {
				return err
			}
		}
		return nil
	})
	return cmd
}

func (a *commands) removeNode(ctx context.Context, name string, force bool) error {
	n, _, err := a.Client.Node(ctx, name)
	if err != nil {
		return command.HintNotFound(err, nodesHint)
	}
	if force && n.Replicas > 0 {
		a.Hint.Box(fmt.Sprintf("Node %s has %d replicas.", term.Clean(n.Name), n.Replicas),
			"Data that only this node has is lost: partitions without other replicas, and writes",
			"that a majority of the other nodes does not have.")
	}
	if err := a.Confirm(fmt.Sprintf("Remove node %s (%s) from the cluster?", term.Clean(n.Name), n.ID)); err != nil {
		return err
	}
	if err := a.Client.RemoveNode(ctx, name, force); err != nil {
		return err
	}
	a.Print.Printf("%s Removed node %s\n", a.Print.Green("[OK]:"), term.Clean(n.Name))
	a.afterRemoval(ctx, force)
	if n.State == "alive" {
		a.Say("Its process exits (status 4); then its data directory can be deleted.")
	}
	return nil
}

// saySurvives reports how many node failures the cluster survives after a change that has
// succeeded; nothing if the server does not say.
func (a *commands) saySurvives(ctx context.Context) {
	health, _, err := a.Client.ClusterHealth(ctx)
	if err == nil && health.Survives != nil {
		a.Say("The cluster survives %s.", lossesText(*health.Survives))
	}
}

// lostMajority is the message that n partitions cannot be served.
func lostMajority(n int) string {
	if n == 1 {
		return "1 partition has lost the majority of its replicas and is not served."
	}
	return fmt.Sprintf("%d partitions have lost the majority of their replicas and are not served.", n)
}

// afterRemoval reports the consequences of removing a node: partitions that have lost
// their majority do not recover automatically.
func (a *commands) afterRemoval(ctx context.Context, force bool) {
	a.saySurvives(ctx)
	if !force {
		return
	}
	if plans, _, err := a.Client.RecoverPartitions(ctx, nil, true); err == nil && len(plans) > 0 {
		a.Hint.Box(lostMajority(len(plans)), "`platform cluster partitions recover` continues from the remaining replicas.")
	}
}
