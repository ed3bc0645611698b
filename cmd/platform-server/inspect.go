package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"platform/internal/node/offline"
)

const inspectUsage = `Shows the data directory of a node that is stopped. Nothing is written, and read access to the
directory is sufficient, for example to a copy on a read-only file system.

Usage:
  platform-server inspect [flags]                      identity, Raft groups, quarantine marks,
                                                       and what HARDSTATE says of each group
  platform-server inspect entries --group G [flags]    log entries, decoded; JSON lines
  platform-server inspect export --partition P [flags] rows of the tables of a partition; JSON lines

Group 0 is the metadata of the cluster, group P+1 is partition P. Tables are shown as they
are on disk: entries that were applied shortly before a crash are in the log only, and are
applied again at the next start.

An entry that cannot be decoded is shown with the reason and its bytes in hex. An export goes on
after damaged blocks: a line with an error has the key after which rows are missing, and the exit
status is 1.

Flags:
`

func inspectFlags() *offlineFlags {
	f := newOfflineFlags("inspect")
	f.set.Uint32Var(&f.group, "group", 0, "number of the Raft group")
	f.set.Uint64Var(&f.from, "from", 0, "index of the first entry")
	f.set.Uint64Var(&f.to, "to", 0, "index of the last entry; 0: that of the log")
	f.set.IntVar(&f.limit, "limit", 1000, "most entries")
	f.set.Uint32Var(&f.partition, "partition", 0, "number of the partition")
	f.set.StringVar(&f.table, "table", "", "only rows of this table, such as live, completed, journal, state, timers, outbox")
	f.set.StringVar(&f.id, "id", "", "only rows of this invocation")
	f.set.BoolVar(&f.json, "json", false, "show the groups as JSON")
	return f
}

// inspect runs the command inspect.
func inspect(ctx context.Context, args, environ []string, out, errs io.Writer) (err error) {
	f := inspectFlags()
	words, err := f.parse(args)
	if err != nil {
		return err
	}
	if f.help {
		fmt.Fprint(out, inspectUsage, f.set.FlagUsages())
		return nil
	}
	what := strings.Join(words, " ")
	switch what {
	case "":
	case "entries":
		err = f.require("group")
	case "export":
		err = f.require("partition")
	default:
		err = f.noCommand(words)
	}
	if err != nil {
		return err
	}
	d, err := f.open(environ, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	buffered := bufio.NewWriter(out)
	defer func() { err = errors.Join(err, buffered.Flush()) }()
	lines := json.NewEncoder(buffered)
	switch what {
	case "entries":
		next, err := d.Entries(f.group, f.from, f.to, f.limit, func(e offline.Entry) error { return lines.Encode(e) })
		if next != 0 {
			fmt.Fprintf(errs, "Only the first %d entries are shown; --from %d or a larger --limit shows more.\n", f.limit, next)
		}
		return err
	case "export":
		return d.Rows(ctx, f.partition, offline.Selection{Table: f.table, ID: f.id}, func(r offline.Row) error { return lines.Encode(r) })
	}
	summary, err := d.Summary()
	if err != nil {
		return err
	}
	if f.json {
		lines.SetIndent("", "  ")
		return lines.Encode(summary)
	}
	return printSummary(buffered, summary)
}

func printSummary(out io.Writer, s *offline.Summary) error {
	fmt.Fprintf(out, "Directory  %s\nFormat     %s\nIdentity   %s\nHARDSTATE  %s\n\n", s.Path, s.Format, strings.Join(strings.Fields(s.Identity), " "), s.HardState)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "GROUP\tPARTITION\tFIRST\tLAST\tTERM\tVOTE\tSNAPSHOT\tAPPLIED\tHARDSTATE\tSTATE")
	for i := range s.Groups {
		g := &s.Groups[i]
		partition, applied := "metadata", "-"
		if g.Partition != nil {
			partition, applied = fmt.Sprint(*g.Partition), fmt.Sprintf("%d (term %d)", g.Applied, g.AppliedTerm)
		}
		vote, snapshot := "-", "-"
		if g.Vote != "" {
			vote = fmt.Sprintf("%s in %d", g.Vote, g.VoteTerm)
		}
		if g.Snapshot != nil {
			snapshot = fmt.Sprintf("%d (term %d)", g.Snapshot.Index, g.Snapshot.Term)
		}
		recorded := "-"
		if r := g.HardState; r != nil {
			recorded = fmt.Sprintf("last %d, term %d, vote in %d, snapshot %d, replica %d", r.Last.Index, r.Term, r.VoteTerm, r.Snapshot, r.Replica)
		}
		fmt.Fprintf(w, "%d\t%s\t%d\t%d\t%d\t%s\t%s\t%s\t%s\t%s\n", g.Group, partition, g.First, g.Last, g.Term, vote, snapshot, applied, recorded, stateOf(g))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for i := range s.Groups {
		g := &s.Groups[i]
		if g.Quarantine != "" {
			fmt.Fprintf(out, "\nGroup %d is in quarantine: %s\n", g.Group, g.Quarantine)
		}
		for _, text := range g.Errors {
			fmt.Fprintf(out, "\nGroup %d can only be read in part: %s\n", g.Group, text)
		}
	}
	return nil
}

// stateOf describes the state of a group.
func stateOf(g *offline.Group) string {
	switch {
	case g.HardState != nil && g.HardState.Removing, g.Leaving:
		return "being removed"
	case g.Quarantine != "":
		return "quarantined"
	case len(g.Errors) > 0:
		return "damaged"
	case behind(g):
		return "has lost entries"
	case g.Pending != nil:
		return "snapshot being installed"
	}
	return "ok"
}

// behind reports whether a log has fewer entries than recorded.
func behind(g *offline.Group) bool {
	r := g.HardState
	if r == nil {
		return false
	}
	end := g.Last
	if g.Snapshot != nil {
		end = max(end, g.Snapshot.Index)
	}
	return end < r.Last.Index || g.Term < r.Term || g.VoteTerm < r.VoteTerm
}
