package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
)

func (a *app) login() *cobra.Command {
	cmd := &cobra.Command{
		Use: "login", Short: "Log in to the server in use", Args: cobra.NoArgs,
		Annotations: map[string]string{command.ChangesLogin: "yes"},
		Long: `If the server has an identity provider (security.oidc), prints an address and a code, and waits
until you have logged in there in a browser, on this or another machine. Otherwise, or if
standard input is not a terminal, reads a token from standard input or a file and checks it.

The token or session is stored in credentials.toml next to the configuration file, for the
environment and the addresses in use. The file can be read by its owner only. Sessions are
renewed when they have ended, if the provider permits it.

The first token of a server is in the file admin.token in its data directory.`,
		Example: "  platform login\n  platform login --token-file -\n  platform login --token-file platform-data/n1/admin.token",
	}
	file := cmd.Flags().String("token-file", "", "`file` with a token, - for standard input")
	device := cmd.Flags().Bool("device", false, "log in with the identity provider, even if standard input is not a terminal")
	cmd.MarkFlagsMutuallyExclusive("token-file", "device")
	cmd.RunE = command.Run(func(ctx context.Context, _ []string) error {
		if *device || *file == "" && term.IsTerminal(a.In) {
			options, err := a.NewClient("", 0).LoginOptions(ctx)
			switch {
			case err == nil && options.OIDC.CLIClientID != "":
				return a.LogInWithProvider(ctx, options)
			case *device && err != nil:
				return err
			case *device:
				return errors.New("the server has no identity provider for the command line (security.oidc.cli-client-id); use a token")
			}
		}
		return a.logInWithToken(ctx, *file)
	})
	return cmd
}

// logInWithToken checks and stores a token.
func (a *app) logInWithToken(ctx context.Context, file string) error {
	token, err := a.readToken(file)
	if err != nil {
		return err
	}
	identity, err := a.identify(ctx, token)
	starting, _ := errors.AsType[*client.APIError](err)
	unverified := starting != nil && starting.Status == http.StatusServiceUnavailable
	if err != nil && !unverified {
		return err
	}
	err = a.Store(command.Credentials{AdminURL: a.Profile.AdminURL, IngressURL: a.Profile.IngressURL, Token: token})
	switch {
	case err != nil:
		return err
	case unverified: // such as by a node that waits for `platform cluster provision`, which requires a token
		a.Print.Printf("%s Stored the token for %s, which has not verified it: %s\n", a.Print.Green("[OK]:"), a.Profile.AdminURL, term.Clean(starting.Message))
	default:
		a.Print.Printf("%s Logged in to %s as %s (%s)\n", a.Print.Green("[OK]:"), a.Profile.AdminURL, term.Clean(identity.Name), term.Clean(strings.Join(identity.Roles, ", ")))
	}
	return nil
}

// readToken reads a token from a file or standard input.
func (a *app) readToken(file string) (string, error) {
	if file != "" && file != "-" {
		data, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("read the token: %w", err)
		}
		return strings.TrimSpace(string(data)), nil
	}
	a.Say("Token for %s:", a.Profile.AdminURL)
	line, err := bufio.NewReader(io.LimitReader(a.In, 4096)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read the token: %w", err)
	}
	return strings.TrimSpace(line), nil
}

// identify requests the owner of a token from the server.
func (a *app) identify(ctx context.Context, token string) (client.Identity, error) {
	if token == "" {
		return client.Identity{}, command.WithHint(
			errors.New("the token is empty"),
			"Pass it on standard input or with --token-file, or use `platform login --device` if users log in with an identity provider.")
	}
	if strings.ContainsAny(token, " \t\r\n") {
		return client.Identity{}, errors.New("the token has spaces")
	}
	identity, err := a.NewClient(token, 0).WhoAmI(ctx)
	if err == nil && identity.Name == "" {
		err = errors.New("the server does not know the token, or it has expired")
		if !identity.TokenRequired {
			err = errors.New("the server does not know the token; it requires none")
		}
	}
	return identity, err
}

func (a *app) logout() *cobra.Command {
	cmd := &cobra.Command{
		Use: "logout", Short: "Log out of the server in use", Args: cobra.NoArgs, Example: "  platform logout",
		Annotations: map[string]string{command.ChangesLogin: "yes"},
		Long: `Removes the stored token of the environment. A session with an identity provider is revoked;
other tokens remain valid: platform tokens revoke revokes them.`,
	}
	cmd.RunE = command.Run(func(ctx context.Context, _ []string) error {
		stored, known, err := a.RemoveStored()
		if err != nil {
			return err
		}
		if !known {
			a.Say("There is no stored token for the environment %s.", a.Profile.Environment)
			return nil
		}
		if stored.Login != nil && stored.AdminURL == a.Profile.AdminURL {
			a.EndSession(ctx, stored)
		}
		return nil
	})
	return cmd
}
