package cluster

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
)

func (a *commands) clusterLogLevel() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "log-level [filter]",
		Short: "Show the log levels of nodes, or change them while the nodes run",
		Long: `Without a filter, shows the log levels of all nodes and the targets that a filter can name.

A filter is a level for all targets, and levels of some: info,platform/invoker=debug,raft=warn.
Levels are trace, debug, info, warn, error and off. The change applies until the nodes restart,
or for the duration given by --for; --reset restores the filter that each node is configured with. If a
filter has no level for all targets, those that it does not name log errors only.`,
		Args: cobra.MaximumNArgs(1),
		Example: "  platform cluster log-level\n  platform cluster log-level warn,platform=info,platform/invoker=debug --for 10m\n" +
			"  platform cluster log-level debug --node n2 --for 1m\n  platform cluster log-level --reset",
	}
	nodes := cmd.Flags().StringSlice("node", nil, "node to show or change, repeatable; default: all")
	duration := command.Timeout(0)
	cmd.Flags().Var(&duration, "for", "restore the configured levels after this time, at most 7 days")
	reset := cmd.Flags().Bool("reset", false, "restore the configured levels")
	asJSON := command.JSONFlag(cmd.Flags())
	cmd.RunE = command.Run(func(ctx context.Context, args []string) error {
		switch {
		case *reset && len(args) > 0:
			return command.UsageError("give either a filter or --reset")
		case duration > 0 && len(args) == 0:
			return command.UsageError("--for needs a filter")
		}
		levels, response, err := a.logLevels(ctx, args, *nodes, time.Duration(duration), *reset)
		switch {
		case err != nil:
			return command.HintNotFound(err, nodesHint)
		case *asJSON:
			err = a.PrintRaw(response.Body)
		default:
			a.showLogLevels(levels, len(args) == 0 && !*reset)
		}
		if len(args) > 0 {
			a.noteUnknownTargets(args[0], levels)
		}
		unreached := slices.ContainsFunc(levels.Nodes, func(n client.NodeLogLevels) bool { return n.Reason != "" })
		if err == nil && unreached {
			err = errors.New("not all nodes have responded")
		}
		return err
	})
	return cmd
}

func (a *commands) logLevels(ctx context.Context, args, nodes []string, d time.Duration, reset bool) (client.LogLevels, *client.Response, error) {
	switch {
	case reset:
		return a.Client.ResetLogLevels(ctx, nodes)
	case len(args) == 0:
		return a.Client.LogLevels(ctx, nodes)
	}
	change := client.LogLevelsChange{Filter: args[0], Nodes: nodes}
	if d > 0 {
		change.For = d.String()
	}
	return a.Client.SetLogLevels(ctx, change)
}

// noteUnknownTargets says which targets of a filter no node has. It is no error: a target is
// known once something has been logged to it.
func (a *commands) noteUnknownTargets(filter string, levels client.LogLevels) {
	var known []string
	for _, n := range levels.Nodes {
		known = append(known, n.Targets...)
	}
	for directive := range strings.SplitSeq(filter, ",") {
		target, _, ok := strings.Cut(strings.TrimSpace(directive), "=")
		if !ok || len(known) == 0 || slices.ContainsFunc(known, func(t string) bool { return t == target || strings.HasPrefix(t, target+"/") }) {
			continue
		}
		a.Say("No node has a log target %q now; `platform cluster log-level` lists the targets.", target)
	}
}

func (a *commands) showLogLevels(levels client.LogLevels, targets bool) {
	var rows [][]string
	named := map[string]bool{}
	for _, n := range levels.Nodes {
		until := "-"
		switch {
		case n.Reason != "":
			rows = append(rows, []string{term.Clean(n.Name), a.Print.Yellow(term.Clean(n.Reason)), until})
			continue
		case n.Until != nil:
			until = a.Print.Time(*n.Until)
		case n.Filter != n.Configured:
			until = "the node restarts"
		}
		for _, t := range n.Targets {
			named[t] = true
		}
		rows = append(rows, []string{term.Clean(n.Name), term.Clean(n.Filter), until})
	}
	a.Print.Table("", []string{"NODE", "LEVELS", "UNTIL"}, rows)
	if targets {
		a.Print.Println()
		a.Print.Println("Targets: " + term.Clean(strings.Join(slices.Sorted(maps.Keys(named)), ", ")))
	}
}
