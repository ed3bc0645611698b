package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/term"
	"platform/internal/certs"
	"platform/internal/units"
)

const clusterCAHelp = `Creates the certificates with which the nodes of a cluster authenticate each other. All
commands but import work on files only: run them on a machine that is not a node, keep its
directory safe, and copy the files of each node to it.

  platform cluster ca init --cluster localcluster     creates ca/ca.crt, ca.key and gossip.key
  platform cluster ca node n1 n2 n3                   creates ca/nodes/n1/... and so on

A server reads replaced files again within a second or two. ` + "`platform docs security`" + `
describes how a running cluster is switched.`

// Validities of certificates.
const (
	authorityValidity = 10 * 365 * units.Day
	nodeValidity      = 365 * units.Day
)

func (a *commands) clusterCA() *cobra.Command {
	parent := &cobra.Command{Use: "ca", Short: "Create the certificates of nodes", Long: clusterCAHelp}
	dir := parent.PersistentFlags().String("dir", "ca", "directory of the authority")
	open := func() certs.Directory { return certs.NewDirectory(*dir) }
	commands := []*cobra.Command{a.caNode(open), a.caRotate(open), a.caImport(open)}
	for _, cmd := range commands {
		act := cmd.RunE
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			err := act(cmd, args)
			if missing, ok := errors.AsType[*fs.PathError](err); ok && errors.Is(err, fs.ErrNotExist) && filepath.Dir(missing.Path) == filepath.Clean(*dir) {
				return command.Failed(command.WithHint(fmt.Errorf("there is no authority in %s: %w", *dir, missing), "`platform cluster ca init` creates one; --dir names another directory."))
			}
			return err
		}
	}
	return command.Group(parent, append([]*cobra.Command{a.caInit(open)}, commands...)...)
}

func (a *commands) caInit(open func() certs.Directory) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "init",
		Short:   "Create the authority of a cluster",
		Args:    cobra.NoArgs,
		Example: "  platform cluster ca init --cluster localcluster",
	}
	cluster := cmd.Flags().String("cluster", "localcluster", "name of the cluster (cluster-name)")
	validity := command.Timeout(authorityValidity)
	cmd.Flags().Var(&validity, "valid", "validity of the certificate")
	cmd.RunE = command.Run(func(context.Context, []string) error {
		if !certs.ValidName(*cluster) {
			return command.UsageError(fmt.Sprintf("%q cannot be the name of a cluster", *cluster))
		}
		if err := open().Init(*cluster, time.Duration(validity)); err != nil {
			return err
		}
		a.Print.Printf("%s Created the authority of cluster %s\n", a.Print.Green("[OK]:"), *cluster)
		a.Say("Keep ca.key safe: certificates of nodes are issued with it.")
		a.Say("Next: `platform cluster ca import` stores it in the cluster, which then issues the certificates; or `platform cluster ca node <name>...` writes them to files.")
		return nil
	})
	return cmd
}

func (a *commands) caNode(open func() certs.Directory) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "node <name>...",
		Short:   "Create or renew the certificates of nodes",
		Args:    cobra.MinimumNArgs(1),
		Example: "  platform cluster ca node n1 n2 n3",
	}
	validity := command.Timeout(nodeValidity)
	cmd.Flags().Var(&validity, "valid", "validity of the certificates")
	cmd.RunE = command.Run(func(_ context.Context, names []string) error {
		for _, name := range names {
			if !certs.ValidName(name) {
				return command.UsageError(fmt.Sprintf("%q cannot be the name of a node", name))
			}
			dir, err := open().Node(name, time.Duration(validity))
			if err != nil {
				return err
			}
			a.Print.Printf("%s Created the certificate of node %s in %s\n", a.Print.Green("[OK]:"), name, filepath.ToSlash(dir))
		}
		a.Say("Copy each directory to its node, and set in the configuration there:\n\n" +
			"[security.node-tls]\nmode = \"require\"  # in a running cluster first \"allow\" on all nodes\n" +
			"cert-file = \"node.crt\"\nkey-file = \"node.key\"\nca-file = \"ca.crt\"\npacket-key-file = \"gossip.key\"")
		return nil
	})
	return cmd
}

func (a *commands) caRotate(open func() certs.Directory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rotate",
		Short: "Replace the authority",
		Long: `Creates a new authority, in three steps, after each of which the files are copied to the nodes:

  1. platform cluster ca rotate               ca.crt trusts both authorities
  2. platform cluster ca node n1 n2 n3        certificates of the new one
  3. platform cluster ca rotate --finish      ca.crt trusts only the new one

Certificates of removed nodes are invalid after the last step.`,
		Args:    cobra.NoArgs,
		Example: "  platform cluster ca rotate",
	}
	finish := cmd.Flags().Bool("finish", false, "stop trusting the previous authority")
	validity := command.Timeout(authorityValidity)
	cmd.Flags().Var(&validity, "valid", "validity of the certificate")
	cmd.RunE = command.Run(func(context.Context, []string) error {
		if *finish {
			if err := open().Finish(); err != nil {
				return err
			}
			a.Print.Printf("%s The previous authority is no longer trusted\n", a.Print.Green("[OK]:"))
			a.Say("Copy ca.crt and gossip.key of each node to it.")
			return nil
		}
		if err := open().Rotate(time.Duration(validity)); err != nil {
			return err
		}
		a.Print.Printf("%s Created a new authority\n", a.Print.Green("[OK]:"))
		a.Say("Copy ca.crt and gossip.key of each node to it. Then: platform cluster ca node <name>... for all nodes.")
		return nil
	})
	return cmd
}

func (a *commands) caImport(open func() certs.Directory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import",
		Short: "Store the authority in the cluster",
		Long: `Sends the key of the authority to the cluster, which stores it encrypted with the keys of
security.secrets. The nodes that have these keys can then issue certificates: for join tokens, and
to renew those of nodes whose configuration names no files.

Nodes whose certificates come from the cluster then replace them, and stop trusting the previous
authority once all members have a certificate of this one. The log of each node shows the steps.

The node accepts the key only with TLS or from its own machine.`,
		Args:    cobra.NoArgs,
		Example: "  platform cluster ca import",
	}
	cmd.RunE = command.Run(func(ctx context.Context, _ []string) error {
		certificate, key, err := open().Authority()
		if err != nil {
			return err
		}
		authority, err := a.Client.PutAuthority(ctx, certificate, key)
		if err != nil {
			return err
		}
		a.Print.Printf("%s Stored the authority, valid until %s, in the cluster\n", a.Print.Green("[OK]:"), a.Print.Time(authority.ExpiresAt))
		a.Say("SHA-256 of its certificate: %s", term.Clean(authority.SHA256))
		return nil
	})
	return cmd
}
