package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
	"platform/internal/certs"
	"platform/internal/units"
	"platform/metadata"
)

const joinTokenHelp = `A join token gives one new node its certificate (security.node-tls). Write it to a file that only
the server of the node can read, and set in its configuration:

  security.node-tls.mode = "require"
  security.node-tls.join-token-file = "/etc/platform/join.token"
  metadata-client.addresses = ["n1.internal:5122"]

The node sends the token only to a node of this cluster, which it recognizes by a hash in the token.
Anyone with an unused token can add a node, and a node controls the cluster: create a token only when
it is needed. ` + "`platform docs cluster`" + ` describes the whole procedure.`

// maxJoinTokenCount is the number of tokens that one command creates.
const maxJoinTokenCount = 20

func (a *commands) joinTokens() *cobra.Command {
	return command.Group(&cobra.Command{Use: "join-token", Aliases: []string{"join-tokens"}, Short: "Create, list and revoke join tokens of nodes", Long: joinTokenHelp},
		a.joinTokenCreate(), a.joinTokenList(), a.joinTokenRevoke())
}

func (a *commands) joinTokenCreate() *cobra.Command {
	cmd := &cobra.Command{
		Use: "create", Short: "Create a join token and print it", Args: cobra.NoArgs,
		Long:    "Creates a join token, which one node can use once, and prints it. It cannot be shown again.",
		Example: "  platform cluster join-token create --node n2 > n2.token\n  platform cluster join-token create --ttl 15m --count 2",
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	node := flags.String("node", "", "name of the only node that may use it, also of a member that has lost its certificate (default: any new node)")
	validity := command.Timeout(units.Day / 24)
	flags.Var(&validity, "ttl", "validity, at most 7d")
	count := flags.Int("count", 1, fmt.Sprintf("number of tokens, one per line, at most %d", maxJoinTokenCount))
	asJSON := command.JSONFlag(flags)
	cmd.RunE = command.Run(func(ctx context.Context, _ []string) error {
		switch {
		case *count < 1 || *count > maxJoinTokenCount:
			return command.UsageError(fmt.Sprintf("--count is 1 to %d", maxJoinTokenCount))
		case *node != "" && !certs.ValidName(*node):
			return command.UsageError(fmt.Sprintf("%q cannot be the name of a node", *node))
		case time.Duration(validity) > metadata.MaxJoinTokenValidity:
			return command.UsageError("--ttl is at most 7d")
		}
		for range *count {
			t, err := a.Client.CreateJoinToken(ctx, client.JoinTokenRequest{Node: *node, ExpiresIn: validity.String()})
			if err != nil {
				return err
			}
			if *asJSON {
				if err := a.PrintJSON(t); err != nil {
					return err
				}
				continue
			}
			a.Say("Created the join token %s, valid until %s. It is shown only now; security.node-tls.join-token-file names the file with it.", t.ID, a.Print.Time(t.ExpiresAt))
			a.Print.Println(t.Text)
		}
		return nil
	})
	return cmd
}

func (a *commands) joinTokenList() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Aliases: []string{"ls"}, Short: "List the join tokens", Args: cobra.NoArgs, Example: "  platform cluster join-token list"}
	return command.ViewResponse(a.App, cmd, func(ctx context.Context, _ []string) ([]client.JoinToken, *client.Response, error) {
		return a.Client.JoinTokens(ctx)
	}, func(_ context.Context, list []client.JoinToken) error {
		if len(list) == 0 {
			a.Say("No join tokens. `platform cluster join-token create` creates one.")
			return nil
		}
		rows := make([][]string, len(list))
		for i, t := range list {
			state := a.Print.Green("unused")
			switch {
			case !t.UsedAt.IsZero():
				state = "used by " + term.Clean(t.UsedBy)
			case t.Expired:
				state = "expired"
			}
			rows[i] = []string{term.Clean(t.ID), command.OrDash(term.Clean(t.Node)), state, command.OrDash(term.Clean(t.CreatedBy)), a.Print.Time(t.CreatedAt), a.Print.Time(t.ExpiresAt)}
		}
		a.Print.Table("", []string{"ID", "NODE", "STATE", "CREATED-BY", "CREATED-AT", "EXPIRES"}, rows)
		return nil
	})
}

func (a *commands) joinTokenRevoke() *cobra.Command {
	cmd := &cobra.Command{
		Use: "revoke <id>", Aliases: []string{"rm", "delete"}, Short: "Revoke a join token", Args: cobra.ExactArgs(1),
		Long:    "Revokes a join token. The certificate of a node that has used it remains valid: remove the node.",
		Example: "  platform cluster join-token revoke abcdefghijklmnop",
	}
	cmd.RunE = command.Run(func(ctx context.Context, args []string) error {
		t, err := a.Client.RevokeJoinToken(ctx, args[0])
		if err != nil {
			return err
		}
		a.Print.Printf("%s Revoked the join token %s\n", a.Print.Green("[OK]:"), term.Clean(t.ID))
		return nil
	})
	return cmd
}
