package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"time"

	"platform/internal/config"
	"platform/internal/offline"
	"platform/partition"
)

const recoverUsage = `Recovers a cluster from one node, when most voters of its metadata are lost for good.

Usage:
  platform-server recover [flags]

The node must be stopped. It becomes the only member of the cluster, of the metadata and
of every partition that it has a usable replica of. All other nodes are removed.

This is unsafe. What was acknowledged and had not reached this node is lost, and steps
whose results are lost run again. Partitions that have no replica here stay unavailable.
If only partitions have lost their majority and the metadata has not, use
"platform cluster partitions recover" instead.

  1. Make sure that the other nodes are lost for good. As long as a majority of them can
     be started, start it: nothing is lost then. Otherwise they must never run again on
     their old disks where this node cannot reach them.
  2. Of several nodes that are left, take the one with the newest metadata: the highest
     LAST of group 0 in "platform-server inspect".
  3. Run this command on it, then start it.
  4. Start the other nodes with empty data directories. They join as new ones and get
     replicas. A former node that starts with its old data is refused with exit status 4.

Without --yes the command asks for the name of the node to be typed.

Flags:
`

// probeTimeout bounds how long another node is dialled.
const probeTimeout = time.Second

// recoverCluster makes the node of a data directory the only one of its cluster.
func recoverCluster(ctx context.Context, args, environ []string, in io.Reader, out io.Writer) error {
	f := newOfflineFlags("recover")
	f.set.BoolVar(&f.yes, "yes", false, "do not ask")
	dryRun := f.set.Bool("dry-run", false, "only show what would be done")
	words, err := f.parse(args)
	switch {
	case err != nil:
		return err
	case f.help:
		fmt.Fprint(out, recoverUsage, f.set.FlagUsages())
		return nil
	case len(words) > 0:
		return fmt.Errorf("recover %s: no such command; see platform-server recover --help", strings.Join(words, " "))
	}
	path, err := f.directory(environ)
	if err != nil {
		return err
	}
	plan, err := offline.PlanRecovery(path)
	if err != nil {
		return err
	}
	printRecovery(out, path, plan)
	if answering := running(ctx, plan); len(answering) > 0 {
		return fmt.Errorf("%s still runs: as long as nodes run they may be a majority or serve what this one would lose; stop it, or do without the recovery", strings.Join(answering, ", "))
	}
	if *dryRun {
		return nil
	}
	if !f.yes {
		if err := confirm(in, out, plan.Node, "To recover cluster %s from node %s alone, type the name of the node: ", plan.Cluster, plan.Node); err != nil {
			return err
		}
	}
	done, err := offline.RecoverDirectory(path, time.Now())
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Node %s is the only member now, as incarnation %s. Start it, then the others with empty data directories.\n", done.Node, done.Incarnation)
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
		fmt.Fprintf(out, "Lost        partitions %v have no replica here: all their work is lost, and they stay unavailable\n", plan.Lost)
	}
	for id, why := range plan.Unusable {
		fmt.Fprintf(out, "Unusable    partition %d is in quarantine; \"platform-server repair accept-loss --group %d\" lets it go on after the recovery: %s\n", id, partition.GroupID(id), why)
	}
	fmt.Fprintln(out, "\nWhat was acknowledged and had not reached this node is lost.")
}

// running names the other nodes whose ports take connections.
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

// directory is the data directory that the flags name.
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
