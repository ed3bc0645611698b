package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/hashicorp/raft"

	"platform/internal/node/offline"
)

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

func repairFlags() *offlineFlags {
	f := newOfflineFlags("repair")
	f.set.Uint32Var(&f.group, "group", 0, "number of the Raft group")
	f.set.Uint64Var(&f.index, "index", 0, "index of the entry")
	f.set.StringVar(&f.out, "out", "", "file for the dropped entry; must not exist (default dropped-group-G-entry-I.json)")
	f.set.BoolVar(&f.yes, "yes", false, "skip the confirmation")
	return f
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
		err = f.noCommand(words)
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
	_, err := d.Entries(f.group, f.index, f.index, 1, func(e offline.Entry) error { return show.Encode(e) })
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
		if line == "" {
			return errors.New("not confirmed, nothing was changed: standard input has no answer; --yes confirms")
		}
		return errors.New("not confirmed, nothing was changed")
	}
	return nil
}
