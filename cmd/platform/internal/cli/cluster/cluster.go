package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
	"platform/internal/feature"
	"platform/internal/ids"
	"platform/internal/units"
)

// commands is the receiver of the commands of this package.
type commands struct{ *command.App }

// Command returns the command cluster.
func Command(app *command.App) *cobra.Command {
	a := &commands{app}
	return command.Group(&cobra.Command{
		Use:   "cluster",
		Short: "Show and change nodes, partitions and replication",
	},
		a.clusterStatus(),
		a.clusterEvents(),
		command.Group(&cobra.Command{Use: "nodes", Aliases: []string{"node"}, Short: "List, drain and remove nodes"},
			a.nodesList(), a.nodesDescribe(), a.nodesDrain(), a.nodesUndrain(), a.nodesRemove()),
		command.Group(&cobra.Command{Use: "partitions", Aliases: []string{"partition"}, Short: "List partitions and change their leaders"},
			a.partitionsList(), a.partitionsDescribe(), a.partitionsTransfer(), a.partitionsRecover()),
		a.clusterProvision(),
		a.clusterCA(),
		a.clusterLogLevel(),
		a.clusterSecrets(),
		a.joinTokens(),
		command.Group(&cobra.Command{Use: "config", Short: "Show and change the cluster configuration"}, a.clusterConfigGet(), a.clusterConfigSet()),
	)
}

const clusterStatusHelp = `Shows the state of the cluster: healthy; degraded, if everything is available with less
redundancy than configured; or unavailable, if something is not served.

The feature level determines the formats that the nodes may write. It rises automatically
once all nodes support a higher one; an asterisk marks nodes that hold it.

The command can be sent to any node. The exit status is 1 if the cluster is unavailable.`

func (a *commands) clusterStatus() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Show the state of the cluster and its problems",
		Long:    clusterStatusHelp,
		Args:    cobra.NoArgs,
		Example: "  platform cluster status --watch\n  platform cluster status --extra\n  platform cluster status --wait 1m              # until it is healthy, for scripts\n  platform cluster status --wait 5m --nodes 4    # and a fourth node has joined",
	}
	asJSON := command.JSONFlag(cmd.Flags())
	extra := cmd.Flags().Bool("extra", false, "also show the partitions, and what the feature levels introduce")
	wait := command.Timeout(0)
	cmd.Flags().Var(&wait, "wait", "wait up to this long for the cluster to become healthy")
	nodes := cmd.Flags().Int("nodes", 0, "with --wait, also wait until the cluster has this many nodes: one that has just been started is not a member yet")
	a.Shows(cmd, func(ctx context.Context, _ []string) error {
		if *nodes > 0 && wait == 0 {
			return command.UsageError("--nodes requires --wait")
		}
		health, raw, err := a.health(ctx, time.Duration(wait), *nodes)
		if err != nil {
			return err
		}
		if *asJSON {
			err = a.PrintRaw(raw)
		} else {
			a.showCluster(health, *extra)
		}
		switch {
		case err != nil:
			return err
		case wait > 0 && health.Status != "healthy":
			return command.WithHint(fmt.Errorf("the cluster is %s after %s", health.Status, wait.String()), "`platform cluster status --watch` shows the progress.")
		case len(health.Nodes) < *nodes:
			return command.WithHint(fmt.Errorf("the cluster has %s after %s", units.Counted(len(health.Nodes), "node"), wait.String()), "A node that does not join reports the reason in its log and on `/health`.")
		case health.Status == "unavailable" && !a.Watching():
			return command.WithHint(errors.New("the cluster is unavailable"), a.unavailableHint(ctx, health.Nodes))
		}
		return nil
	})
	return cmd
}

// health requests the health of the cluster. With wait, it repeats the request until the
// cluster is healthy and has a number of nodes, or the time is over.
func (a *commands) health(ctx context.Context, wait time.Duration, nodes int) (client.ClusterHealth, []byte, error) {
	for end := time.Now().Add(wait); ; {
		health, raw, err := a.Client.ClusterHealth(ctx)
		if err == nil && health.Status == "healthy" && len(health.Nodes) >= nodes || refused(err) || time.Now().After(end) {
			return health, raw, err
		}
		select {
		case <-time.After(waitPause):
		case <-ctx.Done():
			return health, raw, ctx.Err()
		}
	}
}

// refused reports whether repeating the request that failed with err is useless, for example without a valid token.
func refused(err error) bool {
	response, ok := errors.AsType[*client.APIError](err)
	return ok && response.Status >= 400 && response.Status < 500 && response.Status != http.StatusTooManyRequests
}

// waitPause is the polling interval of commands that wait.
const waitPause = 200 * time.Millisecond

func (a *commands) showCluster(h client.ClusterHealth, extra bool) {
	a.Print.Heading("Cluster " + term.Clean(h.Name))
	metadata := "-"
	if m := h.Metadata; m != nil {
		metadata = fmt.Sprintf("%s, led by %s", votersText(m), nameOf(h.Nodes, m.Leader))
		if !m.Quorum {
			metadata = a.Print.Red(votersText(m) + ", without a leader")
		}
	}
	fields := []term.Field{
		{Name: "Status", Value: a.colourHealth(h.Status)},
		{Name: "Metadata", Value: metadata},
		{Name: "Partitions", Value: partitionsText(h)},
	}
	if h.Survives != nil {
		fields = append(fields, term.Field{Name: "Survives", Value: a.survivalText(*h.Survives)})
	}
	a.Print.Fields("  ", append(fields, term.Field{Name: "Feature level", Value: a.featureText(h.Feature)})...)
	for _, problem := range groupProblems(h.Problems) {
		a.Print.Printf("  %s %s\n", a.Print.Yellow("!"), term.Clean(problem))
	}
	a.Print.Println()
	a.Print.Heading("Nodes")
	a.nodeTable(h.Nodes)
	if extra {
		a.Print.Println()
		a.Print.Heading("Partitions")
		a.partitionTable(h.Partitions, h.Nodes)
		if h.Feature != nil {
			a.Print.Println()
			a.Print.Heading("Feature levels")
			a.featureTable(feature.Announced(h.Feature.Level))
		}
	}
}

// survivalText describes how many nodes can fail while everything stays available.
func (a *commands) survivalText(s client.Survival) string {
	if s.Now == 0 {
		return a.Print.Yellow(lossesText(s))
	}
	return lossesText(s)
}

// unavailableHint returns what to do while the cluster is unavailable. Partitions that were left
// without a majority by nodes that are no longer members do not recover by waiting.
func (a *commands) unavailableHint(ctx context.Context, nodes []client.Node) string {
	if len(nodes) > 0 && !slices.ContainsFunc(nodes, func(n client.Node) bool { return n.State != "alive" || !n.Answers }) {
		if plans, _, err := a.Client.RecoverPartitions(ctx, nil, true); err == nil && len(plans) > 0 {
			if !slices.ContainsFunc(plans, func(p client.PartitionRecovery) bool { return p.Refused == "" || p.From != 0 }) {
				return lostMajority(len(plans)) + " No remaining replica can be used; the reasons above say what to do."
			}
			return lostMajority(len(plans)) + " `platform cluster partitions recover` continues from the remaining replicas; try `--dry-run` first."
		}
	}
	return unavailableHint(nodes)
}

// unavailableHint returns what to do according to the state of the nodes.
func unavailableHint(nodes []client.Node) string {
	if slices.ContainsFunc(nodes, func(n client.Node) bool { return strings.HasPrefix(n.Disk, "is full") }) {
		return "Free space on the full disks; the replicas on them then open automatically."
	}
	if len(nodes) == 0 || slices.ContainsFunc(nodes, func(n client.Node) bool { return n.State != "alive" }) {
		return "Start the nodes that are down, or read their logs. If their disks are lost for good, `platform docs cluster` describes the recovery."
	}
	if slices.ContainsFunc(nodes, func(n client.Node) bool { return !n.Answers }) {
		return "A node does not respond and is considered down soon: leaderships then move to other nodes. Wait with `platform cluster status --wait 1m`."
	}
	return "All nodes are up. Leaders may be changing: wait with `platform cluster status --wait 1m`. If the cluster stays unavailable, read the logs of the nodes."
}

func lossesText(s client.Survival) string {
	text := "the failure of " + units.Counted(s.Now, "node")
	if s.Now == 0 {
		text = "no node failure"
	}
	if s.Whole != s.Now {
		text += fmt.Sprintf(" (%d once all nodes are up and all replicas are complete)", s.Whole)
	}
	return text
}

// featureText describes the feature level, and why it is not higher. Servers of the first
// release do not report the reason.
func (a *commands) featureText(f *client.FeatureLevel) string {
	switch {
	case f == nil:
		return "1"
	case f.Level < f.Highest:
		text := fmt.Sprintf("%d, not %d: %s", f.Level, f.Highest, term.Clean(strings.Join(f.Waiting, "; ")))
		if len(f.Waiting) == 0 {
			text = fmt.Sprintf("%d, about to become %d", f.Level, f.Highest)
		}
		return a.Print.Yellow(text)
	case f.Since.IsZero():
		return strconv.FormatUint(uint64(f.Level), 10)
	}
	return fmt.Sprintf("%d since %s", f.Level, a.Print.Time(f.Since))
}

// featureTable lists the changes of the feature levels that this client knows, and whether
// a cluster at a level uses them.
func (a *commands) featureTable(level feature.Level) {
	var rows [][]string
	for _, c := range feature.Changes() {
		used := "yes"
		if c.Level > level {
			used = "no"
		}
		rows = append(rows, []string{strconv.FormatUint(uint64(c.Level), 10), used, string(c.Kind), c.Name, c.Description})
	}
	a.Print.Table("", []string{"LEVEL", "IN-USE", "KIND", "NAME", "WHAT"}, rows)
}

func votersText(m *client.MetadataHealth) string {
	text := fmt.Sprintf("%d voters", len(m.Voters))
	if len(m.Voters) == 1 {
		text = "1 voter"
	}
	switch len(m.Learners) {
	case 0:
	case 1:
		text += " and 1 learner"
	default:
		text += fmt.Sprintf(" and %d learners", len(m.Learners))
	}
	return text
}

// partitionsText counts the partitions by status.
func partitionsText(h client.ClusterHealth) string {
	counts := map[string]int{}
	for _, p := range h.Partitions {
		counts[partitionStatus(p)]++
	}
	var parts []string
	for _, status := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[status], status))
	}
	return strings.Join(parts, ", ")
}

func (a *commands) colourHealth(status string) string {
	switch status {
	case "healthy":
		return a.Print.Green(status)
	case "degraded":
		return a.Print.Yellow(status)
	}
	return a.Print.Red(term.Clean(status))
}

// nameOf returns the name of a node.
func nameOf(nodes []client.Node, id ids.Node) string {
	for _, n := range nodes {
		if n.ID == id {
			return term.Clean(n.Name)
		}
	}
	if id == 0 {
		return command.NodeID(id)
	}
	return "node " + id.String()
}
