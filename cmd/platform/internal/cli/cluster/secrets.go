package cluster

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
	"platform/internal/units"
)

const clusterSecretsHelp = `Headers of deployments, and credentials of Kafka clusters and subscriptions, are stored in the
metadata of all nodes: encrypted, if the nodes have keys (security.secrets).

Replace a key without interruption: add the new one at the end of the key file of each node,
which reads it again within a second, and check with status that all nodes have it; move it to
the first line of each file; run rotate; remove the old key from the files.`

func (a *commands) clusterSecrets() *cobra.Command {
	return command.Group(&cobra.Command{Use: "secrets", Short: "Show and replace the keys of stored secrets", Long: clusterSecretsHelp},
		a.clusterSecretsStatus(), a.clusterSecretsRotate())
}

func (a *commands) clusterSecretsStatus() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Show how secrets are stored, and which nodes have which keys",
		Args:    cobra.NoArgs,
		Example: "  platform cluster secrets status",
	}
	request := func(ctx context.Context, _ []string) (client.Secrets, *client.Response, error) {
		return a.Client.Secrets(ctx)
	}
	return command.ViewResponse(a.App, cmd, request, func(_ context.Context, s client.Secrets) error {
		a.showSecrets(&s)
		return nil
	})
}

func (a *commands) clusterSecretsRotate() *cobra.Command {
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
	asJSON := command.JSONFlag(cmd.Flags())
	cmd.RunE = command.Run(func(ctx context.Context, _ []string) error {
		s, response, err := a.Client.RotateSecrets(ctx, *force)
		if err != nil {
			return err
		}
		switch {
		case *asJSON:
			err = a.PrintRaw(response.Body)
		case s.Rotated == 0 && len(s.Unreadable) == 0:
			a.Say("Nothing was changed: all secrets are encrypted with the newest key.")
		default:
			a.Print.Printf("%s Encrypted %s with the newest key\n", a.Print.Green("[OK]:"), units.Counted(s.Rotated, "secret"))
		}
		if err == nil && len(s.Unreadable) > 0 {
			left := fmt.Sprintf("%d secrets are still stored as before, since this node cannot decrypt them", len(s.Unreadable))
			if len(s.Unreadable) == 1 {
				left = "1 secret is still stored as before, since this node cannot decrypt it"
			}
			err = command.WithHint(errors.New(left), "`platform cluster secrets status` shows the missing keys.")
		}
		return err
	})
	return cmd
}

func (a *commands) showSecrets(s *client.Secrets) {
	if !s.Encrypted {
		a.Print.Println("This node does not encrypt secrets (security.secrets is not configured).")
	}
	a.Print.Fields("", term.Field{Name: "Not encrypted", Value: units.Counted(s.Unencrypted, "secret")},
		term.Field{Name: "Not readable", Value: units.Counted(len(s.Unreadable), "secret")})
	if len(s.Keys) > 0 {
		a.Print.Println()
		rows := make([][]string, len(s.Keys))
		for i, k := range s.Keys {
			state := "decrypts"
			switch {
			case k.Newest:
				state = a.Print.Green("encrypts")
			case k.Missing:
				state = a.Print.Red("missing")
			}
			rows[i] = []string{term.Clean(k.ID), state, strconv.Itoa(k.Secrets)}
		}
		a.Print.Table("", []string{"KEY", "STATE", "SECRETS"}, rows)
	}
	a.Print.Println()
	rows := make([][]string, len(s.Nodes))
	for i, n := range s.Nodes {
		rows[i] = []string{term.Clean(n.Name), command.OrDash(term.Clean(strings.Join(n.Keys, ", "))), command.OrDash(a.Print.Yellow(term.Clean(n.Problem)))}
	}
	a.Print.Table("", []string{"NODE", "KEYS", "PROBLEM"}, rows)
	for _, message := range s.Unreadable {
		a.Say("%s", term.Clean(message))
	}
}
