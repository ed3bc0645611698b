package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/hashicorp/raft"
	"github.com/spf13/pflag"

	"platform/internal/node/offline"
)

const inspectUsage = `Shows the data directory of a node that is stopped. Nothing is written.

Usage:
  platform-server inspect [flags]                      identity, Raft groups, quarantine marks,
                                                       and what HARDSTATE says of each group
  platform-server inspect entries --group G [flags]    log entries, decoded; JSON lines
  platform-server inspect export --partition P [flags] rows of the tables of a partition; JSON lines

Group 0 is the metadata of the cluster, group P+1 is partition P. Tables are shown as they
are on disk: entries that were applied shortly before a crash are in the log only, and are
applied again at the next start.

An entry that cannot be decoded is shown with the reason and its bytes in hex.

Flags:
`

const repairUsage = `Repairs the data directory of a node that is stopped.

Usage:
  platform-server repair drop-entry --group G --index I [flags]
      Replaces a command in the log by an entry that does nothing, and ends the
      quarantine that it has caused. The entry is first written to a file (--out).
  platform-server repair release --group G [flags]
      Ends a quarantine without changing anything. A replica whose data is still
      damaged is put into quarantine again.
  platform-server repair accept-loss --group G [flags]
      Lets the only replica of a partition continue with the rest of its log and tables,
      after a report of what is lost. If there is a newer backup, restore it instead.

The dropped command has no effect: callers may have to repeat it, and messages of other
partitions may be lost with it. Prefer to rebuild a damaged replica from the others, which
a cluster does automatically; drop an entry only if no replica can apply it. Then:

  1. Stop all nodes that have a replica of the partition.
  2. Run "platform-server inspect entries --group G --from I --to I" on each, and
     verify that it is the same entry (term, hex) and not applied on any of them.
  3. Run drop-entry with the same group and index on each.
  4. Start the nodes. Replicas that skip an entry which another one applies differ,
     and the minority is put into quarantine when the replicas are next compared.

Without --yes the commands prompt for group and index as a confirmation.

Flags:
`

// offlineFlags are those of inspect and repair.
type offlineFlags struct {
	set        *pflag.FlagSet
	dataDir    string
	configFile string
	group      uint32
	partition  uint32
	index      uint64
	from, to   uint64
	limit      int
	table, id  string
	out        string
	yes, json  bool
	help       bool
}

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

func repairFlags() *offlineFlags {
	f := newOfflineFlags("repair")
	f.set.Uint32Var(&f.group, "group", 0, "number of the Raft group")
	f.set.Uint64Var(&f.index, "index", 0, "index of the entry")
	f.set.StringVar(&f.out, "out", "", "file for the dropped entry; must not exist (default dropped-group-G-entry-I.json)")
	f.set.BoolVar(&f.yes, "yes", false, "skip the confirmation")
	return f
}

func newOfflineFlags(name string) *offlineFlags {
	f := &offlineFlags{set: pflag.NewFlagSet("platform-server "+name, pflag.ContinueOnError)}
	f.set.SortFlags = false
	f.set.Usage = func() {}
	f.set.StringVar(&f.dataDir, "data-dir", "", "data directory of the node (default base-dir/node-name of the configuration)")
	f.set.StringVar(&f.configFile, "config-file", "", "configuration that names the directory")
	f.set.BoolVarP(&f.help, "help", "h", false, "show this help")
	return f
}

// parse parses the arguments and returns those that are not flags: the words of the command.
func (f *offlineFlags) parse(args []string) ([]string, error) {
	if err := f.set.Parse(args); err != nil {
		if missing, ok := errors.AsType[*pflag.NotExistError](err); ok && slices.Contains([]string{"node-name", "base-dir"}, missing.GetSpecifiedName()) {
			return nil, fmt.Errorf("%w; name the data directory with --data-dir <base-dir>/<node-name>, see %s --help", err, f.set.Name())
		}
		return nil, fmt.Errorf("%w; see %s --help", err, f.set.Name())
	}
	return f.set.Args(), nil
}

// require fails unless all of the flags are set.
func (f *offlineFlags) require(names ...string) error {
	for _, name := range names {
		if !f.set.Changed(name) {
			return fmt.Errorf("--%s is missing; see %s --help", name, f.set.Name())
		}
	}
	return nil
}

// open opens the data directory.
func (f *offlineFlags) open(environ []string, readOnly bool) (*offline.Directory, error) {
	path, err := f.directory(environ)
	if err != nil {
		return nil, err
	}
	return offline.Open(path, readOnly)
}

// inspect runs the command inspect.
func inspect(ctx context.Context, args, environ []string, out io.Writer) (err error) {
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
		err = fmt.Errorf("inspect %s: no such command; see platform-server inspect --help", what)
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
		return d.Entries(f.group, f.from, f.to, f.limit, func(e offline.Entry) error { return lines.Encode(e) })
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
		vote, snapshot, state := "-", "-", "ok"
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
		switch {
		case g.HardState != nil && g.HardState.Removing, g.Leaving:
			state = "being removed"
		case g.Quarantine != "":
			state = "quarantined"
		case len(g.Errors) > 0:
			state = "damaged"
		case behind(g):
			state = "has lost entries"
		case g.Pending != nil:
			state = "snapshot being installed"
		}
		fmt.Fprintf(w, "%d\t%s\t%d\t%d\t%d\t%s\t%s\t%s\t%s\t%s\n", g.Group, partition, g.First, g.Last, g.Term, vote, snapshot, applied, recorded, state)
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

// repair runs the command repair.
func repair(args, environ []string, in io.Reader, out io.Writer) (err error) {
	f := repairFlags()
	words, err := f.parse(args)
	if err != nil {
		return err
	}
	if f.help {
		fmt.Fprint(out, repairUsage, f.set.FlagUsages())
		return nil
	}
	what := strings.Join(words, " ")
	switch what {
	case "drop-entry":
		err = f.require("group", "index")
	case "release", "accept-loss":
		err = f.require("group")
	default:
		err = fmt.Errorf("repair %q: no such command; see platform-server repair --help", what)
	}
	if err != nil {
		return err
	}
	d, err := f.open(environ, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	switch what {
	case "release":
		return release(d, f, in, out)
	case "accept-loss":
		return acceptLoss(d, f, in, out)
	}
	return dropEntry(d, f, in, out)
}

func acceptLoss(d *offline.Directory, f *offlineFlags, in io.Reader, out io.Writer) error {
	l, err := d.AssessLoss(f.group)
	if err != nil {
		return err
	}
	if l.Reason != "" {
		fmt.Fprintf(out, "Group %d is in quarantine: %s\n\n", l.Group, l.Reason)
	}
	name := fmt.Sprintf("partition %d", l.Partition)
	if l.Group == offline.MetadataGroup {
		name = "the metadata"
	}
	fmt.Fprintf(out, "Kept: everything up to entry %d of %s.\n", l.Kept, name)
	if l.First <= l.Last {
		fmt.Fprintf(out, "Lost: entries %d to %d (%d). Invocations, results, state and timers that were acknowledged with them are lost,\n"+
			"and steps that they record run again. After a power failure, entries of the last second before it may be lost as well.\n", l.First, l.Last, l.Last-l.First+1)
	} else {
		fmt.Fprintln(out, "Lost: no known entries. After a power failure, entries of the last second before it may be lost.")
	}
	if l.VoteLost {
		fmt.Fprintln(out, "Lost: a term or a vote. This has no consequence, since no other replica has a vote.")
	}
	if len(l.Replaced) > 0 {
		fmt.Fprintf(out, "Lost: entries that only the replicas removed by the recovery of the cluster had: %s.\n", strings.Join(serverIDs(l.Replaced), ", "))
	}
	if !f.yes {
		if err := confirm(in, out, fmt.Sprintf("%d %d", l.Group, l.Kept), "To continue without the lost data, type the group and the last entry that is kept (%d %d): ", l.Group, l.Kept); err != nil {
			return err
		}
	}
	if err := d.AcceptLoss(l); err != nil {
		return err
	}
	fmt.Fprintf(out, "Group %d, %s, continues from entry %d when the node is started.\n", l.Group, name, l.Kept)
	return nil
}

func serverIDs(servers []raft.Server) (ids []string) {
	for _, s := range servers {
		ids = append(ids, string(s.ID))
	}
	return ids
}

func release(d *offline.Directory, f *offlineFlags, in io.Reader, out io.Writer) error {
	if !f.yes {
		if err := confirm(in, out, fmt.Sprint(f.group), "To end the quarantine of group %d, type its number: ", f.group); err != nil {
			return err
		}
	}
	reason, err := d.Release(f.group)
	if err == nil {
		fmt.Fprintf(out, "Ended the quarantine of group %d. Its reason was: %s\n", f.group, reason)
	}
	return err
}

func dropEntry(d *offline.Directory, f *offlineFlags, in io.Reader, out io.Writer) error {
	if f.out == "" {
		f.out = fmt.Sprintf("dropped-group-%d-entry-%d.json", f.group, f.index)
	}
	show := json.NewEncoder(out)
	show.SetIndent("", "  ")
	err := d.Entries(f.group, f.index, f.index, 1, func(e offline.Entry) error { return show.Encode(e) })
	if err != nil {
		return err
	}
	if !f.yes {
		if err := confirm(in, out, fmt.Sprintf("%d %d", f.group, f.index), "To drop entry %[2]d of group %[1]d, type group and index (%[1]d %[2]d): ", f.group, f.index); err != nil {
			return err
		}
	}
	released, err := d.DropEntry(f.group, f.index, f.out)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Dropped entry %d of group %d, which is saved in %s.\n", f.index, f.group, f.out)
	if released {
		fmt.Fprintf(out, "Ended the quarantine of group %d.\n", f.group)
	}
	fmt.Fprintln(out, "Repeat this on all other nodes that have a replica before you start any of them.")
	return nil
}

// confirm prompts the user to type the text want.
func confirm(in io.Reader, out io.Writer, want, question string, args ...any) error {
	fmt.Fprintf(out, question, args...)
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read confirmation: %w", err)
	}
	if strings.Join(strings.Fields(line), " ") != want {
		return errors.New("not confirmed, nothing was changed")
	}
	return nil
}
