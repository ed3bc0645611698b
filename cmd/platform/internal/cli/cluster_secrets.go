package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
)

const clusterSecretsHelp = `Headers of deployments, and credentials of Kafka clusters and subscriptions, are stored in the
metadata of all nodes: encrypted, if the nodes have keys (security.secrets).

Replace a key without interruption: add the new one at the end of the key file of each node,
which reads it again within a second, and check with status that all nodes have it; move it to
the first line of each file; run rotate; remove the old key from the files.`

func (a *app) clusterSecrets() *cobra.Command {
	return group(&cobra.Command{Use: "secrets", Short: "Show and replace the keys of stored secrets", Long: clusterSecretsHelp},
		a.clusterSecretsStatus(), a.clusterSecretsRotate())
}

func (a *app) clusterSecretsStatus() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Show how secrets are stored, and which nodes have which keys",
		Args:    cobra.NoArgs,
		Example: "  platform cluster secrets status",
	}
	request := func(ctx context.Context, _ []string) (client.Secrets, *client.Response, error) {
		return a.client.Secrets(ctx)
	}
	return viewResponse(a, cmd, request, func(_ context.Context, s client.Secrets) error {
		a.showSecrets(&s)
		return nil
	})
}

func (a *app) clusterSecretsRotate() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rotate",
		Short: "Encrypt all stored secrets with the newest key",
		Long: `Encrypts all stored secrets with the first key of the node that executes the command. Those
that were stored without encryption are encrypted, too. It is refused while a node does not have
the key.

What was stored before remains in backups, and in unused pages of the files until they are
overwritten: change secrets that were not encrypted.`,
		Args:    cobra.NoArgs,
		Example: "  platform cluster secrets rotate",
	}
	force := cmd.Flags().Bool("force", false, "proceed although nodes do not respond or do not have the key")
	asJSON := jsonFlag(cmd.Flags())
	cmd.RunE = run(func(ctx context.Context, _ []string) error {
		s, response, err := a.client.RotateSecrets(ctx, *force)
		if err != nil {
			return err
		}
		switch {
		case *asJSON:
			err = a.printRaw(response.Body)
		case s.Rotated == 0 && len(s.Unreadable) == 0:
			a.say("Nothing was changed: all secrets are encrypted with the newest key.")
		default:
			a.print.Printf("%s Encrypted %s with the newest key\n", a.print.Green("[OK]:"), counted(s.Rotated, "secret"))
		}
		if err == nil && len(s.Unreadable) > 0 {
			left := fmt.Sprintf("%d secrets are still stored as before, since this node cannot decrypt them", len(s.Unreadable))
			if len(s.Unreadable) == 1 {
				left = "1 secret is still stored as before, since this node cannot decrypt it"
			}
			err = &hintedError{errors.New(left), "`platform cluster secrets status` shows the missing keys."}
		}
		return err
	})
	return cmd
}

func (a *app) showSecrets(s *client.Secrets) {
	if !s.Encrypted {
		a.print.Println("This node does not encrypt secrets (security.secrets is not configured).")
	}
	a.print.Fields("", term.Field{Name: "Not encrypted", Value: counted(s.Unencrypted, "secret")},
		term.Field{Name: "Not readable", Value: counted(len(s.Unreadable), "secret")})
	if len(s.Keys) > 0 {
		a.print.Println()
		rows := make([][]string, len(s.Keys))
		for i, k := range s.Keys {
			state := "decrypts"
			switch {
			case k.Newest:
				state = a.print.Green("encrypts")
			case k.Missing:
				state = a.print.Red("missing")
			}
			rows[i] = []string{term.Clean(k.ID), state, strconv.Itoa(k.Secrets)}
		}
		a.print.Table("", []string{"KEY", "STATE", "SECRETS"}, rows)
	}
	a.print.Println()
	rows := make([][]string, len(s.Nodes))
	for i, n := range s.Nodes {
		rows[i] = []string{term.Clean(n.Name), orDash(term.Clean(strings.Join(n.Keys, ", "))), orDash(a.print.Yellow(term.Clean(n.Problem)))}
	}
	a.print.Table("", []string{"NODE", "KEYS", "PROBLEM"}, rows)
	for _, message := range s.Unreadable {
		a.say("%s", term.Clean(message))
	}
}
