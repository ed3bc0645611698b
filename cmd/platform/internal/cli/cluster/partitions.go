package cluster

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
)

func (a *commands) partitionsList() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls", "status"},
		Short:   "List partitions with their leaders and replicas",
		Args:    cobra.NoArgs,
		Example: "  platform cluster partitions list --watch",
	}
	request := func(ctx context.Context, _ []string) ([]client.PartitionState, *client.Response, error) {
		return a.Client.Partitions(ctx)
	}
	return command.ViewResponse(a.App, cmd, request, func(ctx context.Context, partitions []client.PartitionState) error {
		nodes, _, err := a.Client.Nodes(ctx)
		if err != nil {
			return err
		}
		a.partitionTable(partitions, nodes)
		return nil
	})
}

func (a *commands) partitionTable(partitions []client.PartitionState, nodes []client.Node) {
	rows := make([][]string, len(partitions))
	for i, p := range partitions {
		var replicas []string
		applied := uint64(0)
		for _, r := range p.Replicas {
			name := nameOf(nodes, r.Node)
			if r.Quarantine != "" {
				name += " (quarantined)"
			} else if r.Role != "leader" && r.Role != "voter" {
				name += " (" + r.Role + ")"
			}
			replicas = append(replicas, name)
			applied = max(applied, r.Applied)
		}
		rows[i] = []string{
			strconv.FormatUint(uint64(p.ID), 10), a.colourPartition(partitionStatus(p)), nameOf(nodes, p.Leader), strconv.FormatUint(p.Term, 10),
			strings.Join(replicas, ", "), strconv.FormatUint(applied, 10), replicaLag(p, nodes),
		}
	}
	a.Print.Table("", []string{"ID", "STATUS", "LEADER", "TERM", "REPLICAS", "APPLIED", "LAG"}, rows)
}

// replicaLag is the largest lag of the replicas, and the nodes of those whose lag is not known, for
// example because they have not responded since the leader took over.
func replicaLag(p client.PartitionState, nodes []client.Node) string {
	lag, known := uint64(0), false
	var unknown []string
	for _, r := range p.Replicas {
		switch {
		case r.Node == p.Leader:
		case r.LagKnown:
			lag, known = max(lag, r.Lag), true
		case r.Role != "none":
			unknown = append(unknown, nameOf(nodes, r.Node))
		}
	}
	switch {
	case len(unknown) == 0:
		return strconv.FormatUint(lag, 10)
	case known:
		return fmt.Sprintf("%d, unknown: %s", lag, strings.Join(unknown, ", "))
	}
	return "unknown: " + strings.Join(unknown, ", ")
}

// partitionStatus is the status of a partition.
func partitionStatus(p client.PartitionState) string {
	serving, behind, quarantined := false, false, false
	for _, r := range p.Replicas {
		serving = serving || r.Node == p.Leader && r.Serving
		quarantined = quarantined || r.Quarantine != ""
		behind = behind || r.Node != p.Leader && r.Role != "none" && (!r.LagKnown || !r.CaughtUp)
	}
	moving := slices.ContainsFunc(p.Replicas, func(r client.Replica) bool {
		return r.Role == "learner" || !slices.Contains(p.Placed, r.Node)
	}) || len(p.Placed) > len(p.Replicas)
	switch {
	case p.Leader == 0 && quarantined:
		return "without leader, quarantined"
	case p.Leader == 0:
		return "without leader"
	case !serving:
		return "not served"
	case quarantined:
		return "with quarantined replica"
	case moving:
		return "moving"
	case behind:
		return "with lagging replica"
	}
	return "ok"
}

func (a *commands) colourPartition(status string) string {
	switch status {
	case "ok":
		return a.Print.Green(status)
	case "without leader", "without leader, quarantined", "not served":
		return a.Print.Red(status)
	}
	return a.Print.Yellow(status)
}

func (a *commands) partitionsDescribe() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "describe <partition>",
		Aliases: []string{"get"},
		Short:   "Show one partition and its replicas",
		Args:    cobra.ExactArgs(1),
		Example: "  platform cluster partitions describe 3",
	}
	request := func(ctx context.Context, args []string) (client.PartitionState, *client.Response, error) {
		id, err := partitionNumber(args[0])
		if err != nil {
			return client.PartitionState{}, nil, err
		}
		return a.Client.Partition(ctx, id)
	}
	return command.ViewResponse(a.App, cmd, request, func(ctx context.Context, p client.PartitionState) error {
		nodes, _, err := a.Client.Nodes(ctx)
		if err != nil {
			return err
		}
		a.describePartition(p, nodes)
		return nil
	})
}

func (a *commands) describePartition(p client.PartitionState, nodes []client.Node) {
	var placed []string
	for _, id := range p.Placed {
		placed = append(placed, nameOf(nodes, id))
	}
	a.Print.Heading(fmt.Sprintf("Partition %d", p.ID))
	a.Print.Fields("  ",
		term.Field{Name: "Status", Value: a.colourPartition(partitionStatus(p))},
		term.Field{Name: "Leader", Value: nameOf(nodes, p.Leader)},
		term.Field{Name: "Term", Value: strconv.FormatUint(p.Term, 10)},
		term.Field{Name: "Placed on", Value: strings.Join(placed, ", ")},
	)
	a.Print.Println()
	a.Print.Heading("Replicas")
	rows := make([][]string, len(p.Replicas))
	for i, r := range p.Replicas {
		rows[i] = []string{nameOf(nodes, r.Node), replicaRole(r), "-", "-", "-", "-", "-"}
		if r.Answers {
			for at, n := range []uint64{r.Applied, r.Committed, r.Last, r.Snapshot} {
				rows[i][2+at] = strconv.FormatUint(n, 10)
			}
		}
		if r.LagKnown {
			rows[i][6] = strconv.FormatUint(r.Lag, 10)
		}
	}
	a.Print.Table("  ", []string{"NODE", "ROLE", "APPLIED", "COMMITTED", "LAST", "SNAPSHOT", "LAG"}, rows)
	for _, r := range p.Replicas {
		if r.Quarantine != "" {
			a.Print.Printf("  %s the replica on %s is quarantined: %s\n", a.Print.Yellow("!"), nameOf(nodes, r.Node), term.Clean(r.Quarantine))
		}
	}
}

func replicaRole(r client.Replica) string {
	if r.Quarantine != "" {
		return r.Role + ", quarantined"
	}
	return r.Role
}

func partitionNumber(text string) (uint32, error) {
	id, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0, command.UsageError(fmt.Sprintf("%q is not a partition number", text))
	}
	return uint32(id), nil
}

func (a *commands) partitionsTransfer() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "transfer <partition>... --to <node>",
		Short: "Transfer the leadership of partitions",
		Long: `Transfers the leadership of partitions to a node that has replicas of them. Requests
continue to be served. The cluster rebalances leaderships that are too unevenly distributed.`,
		Args:    cobra.MinimumNArgs(1),
		Example: "  platform cluster partitions transfer 3 --to n2",
	}
	to := cmd.Flags().String("to", "", "name or id of the new leader")
	cmd.RunE = command.Run(func(ctx context.Context, args []string) error {
		if *to == "" {
			return command.UsageError("--to is missing: the new leader")
		}
		for _, text := range args {
			id, err := partitionNumber(text)
			if err != nil {
				return err
			}
			if err := a.Client.TransferPartition(ctx, id, *to); err != nil {
				return command.HintNotFound(err, "`platform cluster partitions list` shows the partitions and their replicas.")
			}
			a.Print.Printf("%s Node %s leads partition %d\n", a.Print.Green("[OK]:"), *to, id)
		}
		return nil
	})
	return cmd
}
