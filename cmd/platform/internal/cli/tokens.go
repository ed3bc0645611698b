package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
)

func (a *app) tokens() *cobra.Command {
	return command.Group(&cobra.Command{
		Use: "tokens", Aliases: []string{"token"}, Short: "Create, list and revoke tokens",
		Long: `A token lets people and programs use the admin API and, with ingress.auth = token, call handlers.
Its roles determine what it permits:

  viewer     read everything but payloads and tokens
  reader     read payloads as well: state, inputs, results
  callback   complete awakeables
  invoker    call handlers, read their results, send signals, complete awakeables
  operator   viewer, and change invocations, state, queues and rules
  deployer   viewer, and change deployments and services
  security   viewer, and manage tokens and read the audit log; every role can only be granted by those with
             its permissions
  admin      everything`,
	}, a.tokensCreate(), a.tokensList(), a.tokensRevoke())
}

func (a *app) tokensCreate() *cobra.Command {
	cmd := &cobra.Command{
		Use: "create <name>", Short: "Create a token and print it", Args: cobra.ExactArgs(1),
		Long:    "Creates a token and prints it. It cannot be shown again.",
		Example: "  platform tokens create ci --role deployer --expires-in 90d\n  platform tokens create shop --role invoker --service Orders",
	}
	var r client.TokenRequest
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringSliceVar(&r.Roles, "role", nil, "roles: viewer, reader, callback, invoker, operator, deployer, security or admin (separated by commas)")
	flags.StringSliceVar(&r.Services, "service", nil, "limit the token to these services")
	flags.StringSliceVar(&r.Scopes, "scope", nil, "limit the token to these scopes")
	flags.StringVar(&r.ExpiresIn, "expires-in", "", "validity as a duration, such as 90d (default: until it is revoked)")
	asJSON := command.JSONFlag(flags)
	cmd.RunE = command.Run(func(ctx context.Context, args []string) error {
		if r.Name = strings.TrimSpace(args[0]); r.Name == "" {
			return command.UsageError("the name of the token is empty: it names the user of the token, such as ci")
		}
		if len(r.Roles) == 0 {
			return command.UsageError("--role is required")
		}
		t, err := a.Client.CreateToken(ctx, r)
		if err != nil {
			return err
		}
		if *asJSON {
			return a.PrintJSON(t)
		}
		valid := "until it is revoked"
		if !t.ExpiresAt.IsZero() {
			valid = "until " + a.Print.Time(t.ExpiresAt)
		}
		a.Say("Created the token %s, valid %s. It is shown only now; `platform login` and PLATFORM_TOKEN accept it.", t.ID, valid)
		a.Print.Println(t.Text)
		return nil
	})
	return cmd
}

func (a *app) tokensList() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Aliases: []string{"ls"}, Short: "List the tokens", Args: cobra.NoArgs, Example: "  platform tokens list"}
	return command.ViewResponse(a.App, cmd, func(ctx context.Context, _ []string) ([]client.Token, *client.Response, error) {
		return a.Client.Tokens(ctx)
	}, func(_ context.Context, list []client.Token) error {
		if len(list) == 0 {
			a.Say("No tokens. `platform tokens create` creates one.")
			return nil
		}
		rows := make([][]string, len(list))
		for i, t := range list {
			expires := "never"
			if !t.ExpiresAt.IsZero() {
				expires = a.Print.Time(t.ExpiresAt)
			}
			if t.Expired {
				expires += " (expired)"
			}
			used := "never"
			if !t.LastUsed.IsZero() {
				used = a.Print.Time(t.LastUsed)
			}
			rows[i] = []string{term.Clean(t.ID), term.Clean(t.Name), term.Clean(strings.Join(t.Roles, ", ")), command.OrDash(term.Clean(limitsText(t.Services, t.Scopes))), a.Print.Time(t.CreatedAt), expires, used}
		}
		a.Print.Table("", []string{"ID", "NAME", "ROLES", "LIMITED-TO", "CREATED-AT", "EXPIRES", "LAST-USED"}, rows)
		return nil
	})
}

// limitsText describes the limits of a token; empty if it has none.
func limitsText(services, scopes []string) string {
	var parts []string
	if len(services) > 0 {
		parts = append(parts, "services "+strings.Join(services, ", "))
	}
	if len(scopes) > 0 {
		parts = append(parts, "scopes "+strings.Join(scopes, ", "))
	}
	return strings.Join(parts, "; ")
}

func (a *app) tokensRevoke() *cobra.Command {
	cmd := &cobra.Command{
		Use: "revoke <token>", Aliases: []string{"rm", "delete"}, Short: "Revoke a token by id or name", Args: cobra.ExactArgs(1),
		Example: "  platform tokens revoke ci",
	}
	cmd.RunE = command.Run(func(ctx context.Context, args []string) error {
		t, err := a.Client.RevokeToken(ctx, args[0])
		if err != nil {
			return a.tokenNotFound(ctx, err, args[0])
		}
		a.Print.Printf("%s Revoked the token %s (%s)\n", a.Print.Green("[OK]:"), t.ID, term.Clean(t.Name))
		return nil
	})
	return cmd
}
