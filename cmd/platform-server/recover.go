package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"platform/internal/config"
	"platform/internal/node/offline"
	"platform/metadata"
	"platform/partition"
)

const recoverUsage = `Recovers a cluster from one node after the permanent loss of its metadata's majority.

Usage:
  platform-server recover [flags]

The node must be stopped. It becomes the only member of the cluster, of the metadata and
of every partition that it has a usable replica of. All other nodes are removed.

This is unsafe. Acknowledged writes that this node does not have are lost, and steps whose
results are lost run again. Partitions that have no replica here stay unavailable.
If only partitions have lost their majority, but not the metadata, use
"platform cluster partitions recover" instead.

  1. Verify that the other nodes are permanently lost. If a majority of the nodes can still
     be started, start them instead: then nothing is lost. Otherwise the other nodes must
     never be started with their old disks where this node cannot reach them.
  2. Of several remaining nodes, choose the one with the newest metadata: the highest
     LAST of group 0 in "platform-server inspect".
  3. Run this command on it, then start it.
  4. Start the other nodes with empty data directories. They join as new ones and get
     replicas. A former node that starts with its old data is refused with exit status 4.

Without --yes the command prompts for the name of the node as a confirmation.

The file HARDSTATE records the ends of the logs of this node. If it is lost or damaged,
--without-hard-state treats the logs as complete: entries that are missing in the logs
are lost without notice, and no partition is quarantined because of them.

Flags:
`

// probeTimeout bounds a connection attempt to another node.
const probeTimeout = time.Second

// recoverCluster makes the node of a data directory the only member of its cluster.
func recoverCluster(ctx context.Context, args, environ []string, in io.Reader, out io.Writer) error {
	f := newOfflineFlags("recover")
	f.set.BoolVar(&f.yes, "yes", false, "skip the confirmation")
	dryRun := f.set.Bool("dry-run", false, "only show the plan")
	withoutHardState := f.set.Bool("without-hard-state", false, "accept that losses of the logs are not noticed because HARDSTATE is lost or damaged")
	words, err := f.parse(args)
	switch {
	case err != nil:
		return err
	case f.help:
		fmt.Fprint(out, recoverUsage, f.set.FlagUsages())
		return nil
	case len(words) > 0:
		return f.noCommand(words)
	}
	path, err := f.directory(environ)
	if err != nil {
		return err
	}
	plan, err := offline.PlanRecovery(path, !*withoutHardState)
	if err != nil {
		return err
	}
	printRecovery(out, path, plan)
	if alive := running(ctx, plan); len(alive) > 0 {
		return fmt.Errorf("%s is still running: running nodes may be a majority, or serve data that this node does not have; stop them, or do not recover", strings.Join(alive, ", "))
	}
	if *dryRun {
		return nil
	}
	if !f.yes {
		if err := confirm(in, out, plan.Node, "To recover cluster %s from node %s alone, type the name of the node: ", plan.Cluster, plan.Node); err != nil {
			return err
		}
	}
	done, err := offline.RecoverDirectory(path, !*withoutHardState, time.Now())
	if err != nil {
		return err
	}
	for id := range plan.Unusable {
		delete(done.Unusable, id) // printed before
	}
	printUnusable(out, done)
	fmt.Fprintf(out, "Node %s is now the only member, with incarnation %s. Start it, then the others with empty data directories.\n", done.Node, done.Incarnation)
	return nil
}

func printRecovery(out io.Writer, path string, plan *offline.Recovery) {
	fmt.Fprintf(out, "Directory   %s\nCluster     %s\nNode        %s\n", path, plan.Cluster, plan.Node)
	var others []string
	for _, n := range plan.Others {
		others = append(others, fmt.Sprintf("%s (%s)", n.Name, n.RaftAddress()))
	}
	fmt.Fprintf(out, "Removed     %s\nRecovered   partitions %v\n", strings.Join(others, ", "), plan.Kept)
	if len(plan.Lost) > 0 {
		fmt.Fprintf(out, "Lost        partitions %v have no replica here: their data is lost, and they stay unavailable\n", plan.Lost)
	}
	printUnusable(out, plan)
	printUnrecorded(out, plan)
	fmt.Fprintln(out, "\nAcknowledged writes that this node does not have are lost.")
}

func printUnrecorded(out io.Writer, r *offline.Recovery) {
	if r.HardStateLost != "" {
		fmt.Fprintf(out, "HARDSTATE   cannot be read, and is replaced: %s\n", r.HardStateLost)
	}
	var groups []string
	for _, group := range r.Unrecorded {
		if group == metadata.GroupID {
			groups = append(groups, "the metadata")
		} else {
			groups = append(groups, fmt.Sprintf("partition %d", group-partition.GroupID(0)))
		}
	}
	if len(groups) > 0 {
		fmt.Fprintf(out, "Unverified  %s: acknowledged writes that the logs here have lost are lost without notice\n", strings.Join(groups, ", "))
	}
}

func printUnusable(out io.Writer, r *offline.Recovery) {
	for _, id := range slices.Sorted(maps.Keys(r.Unusable)) {
		fmt.Fprintf(out, "Unusable    partition %d is in quarantine; \"platform-server repair accept-loss --group %d\" makes it available after the recovery: %s\n", id, partition.GroupID(id), r.Unusable[id])
	}
}

// running returns the other nodes whose ports accept connections.
func running(ctx context.Context, plan *offline.Recovery) (names []string) {
	dialer := &net.Dialer{Timeout: probeTimeout}
	for _, n := range plan.Others {
		conn, err := dialer.DialContext(ctx, "tcp", string(n.RaftAddress()))
		if err != nil {
			continue
		}
		names = append(names, fmt.Sprintf("node %s (%s)", n.Name, n.RaftAddress()))
		_ = conn.Close() // nothing was sent
	}
	return names
}

// directory returns the data directory that the flags specify.
func (f *offlineFlags) directory(environ []string) (string, error) {
	if f.dataDir != "" {
		return f.dataDir, nil
	}
	var args []string
	if f.configFile != "" {
		args = []string{"--config-file", f.configFile}
	}
	loaded, err := config.Load(args, environ)
	if err != nil {
		return "", err
	}
	return filepath.Join(loaded.Config.BaseDir, loaded.Config.NodeName), nil
}
