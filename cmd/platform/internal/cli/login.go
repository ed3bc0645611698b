package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/spf13/cobra"

	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
)

// credentials are the token of an environment. It is sent only to the addresses that it was
// stored for.
type credentials struct {
	AdminURL   string `toml:"admin_base_url"`
	IngressURL string `toml:"ingress_base_url"`
	Token      string `toml:"token"`
	// Login is set if the token is that of a session.
	Login *login `toml:"login,omitempty"`
}

// credentialsFile is next to the configuration file, which users edit.
func credentialsFile(configuration string) string {
	return filepath.Join(filepath.Dir(configuration), "credentials.toml")
}

// readCredentials returns the credentials by environment. A file that others can read is
// refused.
func readCredentials(path string) (map[string]credentials, error) {
	all := map[string]credentials{}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("other users can read %s, which has tokens; restrict it with chmod 600", path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the stored tokens: %w", err)
	}
	if err := toml.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("%s is not a table of tokens; `platform logout` removes it: %w", path, err)
	}
	return all, nil
}

// writeCredentials replaces the file, or removes it if there are none.
func writeCredentials(path string, all map[string]credentials) error {
	if len(all) == 0 {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the stored tokens: %w", err)
		}
		return nil
	}
	data, err := toml.Marshal(all)
	if err != nil {
		return fmt.Errorf("encode the tokens: %w", err)
	}
	if err := replaceFile(path, data); err != nil {
		return fmt.Errorf("store the token: %w", err)
	}
	return nil
}

// replaceFile replaces the content of a file as a whole, which only its owner can read.
func replaceFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name()) // it may have been renamed
	}
	return err
}

// useStored sets the token of the environment, and its login if it is that of a session, unless they
// were stored for other addresses.
func (s *settings) useStored() error {
	all, err := readCredentials(credentialsFile(s.File))
	if err != nil {
		return err
	}
	c, stored := all[s.Environment]
	switch {
	case !stored:
	case c.AdminURL == s.AdminURL && c.IngressURL == s.IngressURL:
		s.Token, s.Login = c.Token, c.Login
	default:
		s.OtherLogin = &c
	}
	return nil
}

func (a *app) login() *cobra.Command {
	cmd := &cobra.Command{
		Use: "login", Short: "Log in to the server in use", Args: cobra.NoArgs,
		Annotations: map[string]string{changesLogin: "yes"},
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
	cmd.RunE = run(func(ctx context.Context, _ []string) error {
		if *device || *file == "" && term.IsTerminal(a.In) {
			options, err := a.newClient("", 0).LoginOptions(ctx)
			switch {
			case err == nil && options.OIDC.CLIClientID != "":
				return a.logInWithProvider(ctx, options)
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

// changesLogin marks commands that do not need a valid session.
const changesLogin = "changes login"

// logInWithToken checks and stores a token.
func (a *app) logInWithToken(ctx context.Context, file string) error {
	token, err := a.readToken(file)
	if err != nil {
		return err
	}
	identity, err := a.identify(ctx, token)
	if err != nil {
		return err
	}
	if err := a.store(credentials{AdminURL: a.profile.AdminURL, IngressURL: a.profile.IngressURL, Token: token}); err != nil {
		return err
	}
	a.print.Printf("%s Logged in to %s as %s (%s)\n", a.print.Green("[OK]:"), a.profile.AdminURL, term.Clean(identity.Name), term.Clean(strings.Join(identity.Roles, ", ")))
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
	a.say("Token for %s:", a.profile.AdminURL)
	line, err := bufio.NewReader(io.LimitReader(a.In, 4096)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read the token: %w", err)
	}
	return strings.TrimSpace(line), nil
}

// identify requests the owner of a token from the server.
func (a *app) identify(ctx context.Context, token string) (client.Identity, error) {
	if token == "" {
		return client.Identity{}, &hintedError{
			err:  errors.New("the token is empty"),
			hint: "Pass it on standard input or with --token-file, or use `platform login --device` if users log in with an identity provider.",
		}
	}
	if strings.ContainsAny(token, " \t\r\n") {
		return client.Identity{}, errors.New("the token has spaces")
	}
	identity, err := a.newClient(token, 0).WhoAmI(ctx)
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
		Annotations: map[string]string{changesLogin: "yes"},
		Long: `Removes the stored token of the environment. A session with an identity provider is revoked;
other tokens remain valid: platform tokens revoke revokes them.`,
	}
	cmd.RunE = run(func(ctx context.Context, _ []string) error {
		stored, known, err := a.removeStored()
		if err != nil {
			return err
		}
		if !known {
			a.say("There is no stored token for the environment %s.", a.profile.Environment)
			return nil
		}
		if stored.Login != nil && stored.AdminURL == a.profile.AdminURL {
			a.endSession(ctx, stored)
		}
		return nil
	})
	return cmd
}
