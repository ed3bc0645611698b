package cluster

import (
	"context"
	"fmt"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
)

func (a *commands) clusterEvents() *cobra.Command {
	cmd := &cobra.Command{
		Use: "events", Short: "List recent changes of nodes, leaders and replicas", Args: cobra.NoArgs,
		Long: `Lists recent changes of the cluster, the latest first: nodes that started, stopped or no longer
responded, new leaders, and replicas that came, went or were damaged. Each node keeps the latest 1,000
since its start.`,
		Example: "  platform cluster events --node n2\n  platform cluster events --partition 3 --limit 20",
	}
	limit := cmd.Flags().Int("limit", 50, "`number` of events, at most 1000")
	nodes := cmd.Flags().StringArray("node", nil, "only events that concern this `node`; repeatable")
	partition := cmd.Flags().Int("partition", -1, "only events that concern this partition, by its `id`")
	return command.ViewResponse(a.App, cmd, func(ctx context.Context, _ []string) (client.ClusterEvents, *client.Response, error) {
		filter := url.Values{"limit": {strconv.Itoa(*limit)}}
		for _, n := range *nodes {
			filter.Add("node", n)
		}
		if cmd.Flags().Changed("partition") {
			filter.Set("partition", strconv.Itoa(*partition))
		}
		return a.Client.ClusterEvents(ctx, filter)
	}, func(_ context.Context, list client.ClusterEvents) error {
		rows := make([][]string, len(list.Events))
		for i, e := range list.Events {
			rows[i] = []string{a.Print.Time(e.At), command.OrDash(term.Clean(e.Node)), a.eventText(e)}
		}
		if len(rows) == 0 {
			a.Say("No events.")
		} else {
			a.Print.Table("", []string{"TIME", "NODE", "EVENT"}, rows)
		}
		for _, n := range list.Nodes {
			if n.Reason != "" {
				a.Say("Incomplete, no events from node %s: %s", term.Clean(n.Name), term.Clean(n.Reason))
			}
		}
		return nil
	})
}

// eventTexts describes kinds of events; %s is the partition or the detail.
var eventTexts = map[string]string{
	"node_started": "started", "node_stopped": "stopped", "node_died": "no longer responds", "node_joined": "joined the cluster", "node_removed": "was removed from the cluster",
	"node_draining": "is being drained", "node_undrained": "takes replicas again", "disk_short": "disk", "disk_sufficient": "disk has enough free space again",
	"metadata_leader": "leads the metadata", "leader_elected": "leads partition %d", "replica_added": "has a replica of partition %d", "replica_removed": "no longer has a replica of partition %d",
	"replica_damaged": "replica of partition %d is not served", "replica_recovered": "replica of partition %d is served again", "feature_level_raised": "feature level was raised",
}

// eventText describes an event without its node.
func (a *commands) eventText(e client.ClusterEvent) string {
	text, known := eventTexts[e.Kind]
	switch {
	case !known: // of a newer server
		text = term.Clean(e.Kind)
		if e.Partition != nil {
			text += fmt.Sprintf(" partition %d", *e.Partition)
		}
	case e.Partition != nil:
		text = fmt.Sprintf(text, *e.Partition)
	}
	detail := term.Clean(e.Detail)
	switch e.Kind {
	case "disk_short":
		return a.Print.Red(text + " " + detail)
	case "feature_level_raised":
		return text + " to " + detail
	case "node_started":
		if detail != "" {
			text += " with version " + detail
		}
		return text
	}
	if detail != "" {
		text += " (" + detail + ")"
	}
	switch e.Kind {
	case "node_died", "replica_damaged":
		return a.Print.Red(text)
	}
	return text
}
