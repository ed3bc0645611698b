package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"platform/cmd/platform/internal/term"
)

// withoutServer is the annotation of commands that use no server, and so work with any configuration.
const withoutServer = "without-server"

// config shows and changes the configuration of this program.
func (a *app) config() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "config",
		Short: "Show and change the environments of this program",
		Long: `Environments are servers with a name: tables of the configuration file. The file is config.toml in
~/.config/platform, or what PLATFORM_CLI_CONFIG names.`,
	}, a.configList(), a.configUse(), a.configView(), a.configEdit())
	for _, sub := range cmd.Commands() {
		sub.Annotations = map[string]string{withoutServer: "yes"}
	}
	return cmd
}

// environmentFile contains the name of the environment that config use-environment has chosen. It is
// named after the configuration file, which may be in a directory with files of others, such as
// /etc/environment.
func environmentFile(configuration string) string {
	return strings.TrimSuffix(configuration, ".toml") + ".environment"
}

// chosenEnvironment is that environment; "" if there is none.
func chosenEnvironment(configuration string) (string, error) {
	name, err := os.ReadFile(environmentFile(configuration))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read the environment that config use-environment has chosen: %w", err)
	}
	return strings.TrimSpace(string(name)), nil
}

func (a *app) configList() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list-environments",
		Aliases: []string{"list-env"},
		Short:   "List the environments",
		Args:    cobra.NoArgs,
		Example: "  platform config list-environments",
	}
	asJSON := cmd.Flags().Bool("json", false, "print JSON")
	cmd.RunE = run(func(context.Context, []string) error {
		file := configFile(a.System)
		profiles, _, err := readProfiles(file)
		if err != nil {
			return err
		}
		type environment struct {
			Current  bool   `json:"current"`
			Name     string `json:"name"`
			AdminURL string `json:"admin_base_url"`
		}
		current, err := environmentOf(a.System, &a.options, file)
		if err != nil {
			return err
		}
		environments, rows := []environment{}, [][]string{}
		for _, name := range environmentNames(profiles) {
			e := environment{name == current, name, profiles[name].AdminURL}
			if e.AdminURL == "" {
				e.AdminURL = defaultAdminURL
			}
			mark := ""
			if e.Current {
				mark = "*"
			}
			environments = append(environments, e)
			rows = append(rows, []string{mark, term.Clean(e.Name), term.Clean(e.AdminURL)})
		}
		if *asJSON {
			return a.printJSON(environments)
		}
		a.print.Table("", []string{"CURRENT", "NAME", "ADMIN-BASE-URL"}, rows)
		return nil
	})
	return cmd
}

func (a *app) configUse() *cobra.Command {
	return &cobra.Command{
		Use:     "use-environment <name>",
		Aliases: []string{"use-env"},
		Short:   "Choose the environment of the following commands",
		Long:    "Chooses the environment of commands that have neither --environment nor PLATFORM_ENVIRONMENT.",
		Args:    cobra.ExactArgs(1),
		Example: "  platform config use-environment staging\n  platform config use-environment local",
		RunE: run(func(_ context.Context, args []string) error {
			file := configFile(a.System)
			profiles, found, err := readProfiles(file)
			if err != nil {
				return err
			}
			if names := environmentNames(profiles); !slices.Contains(names, args[0]) {
				return unknownEnvironment(args[0], file, found, names)
			}
			if err := replaceFile(environmentFile(file), []byte(args[0]+"\n")); err != nil {
				return fmt.Errorf("store the choice: %w", err)
			}
			a.print.Printf("%s The environment is %s.\n", a.print.Green("[OK]:"), term.Clean(args[0]))
			if other := a.Getenv("PLATFORM_ENVIRONMENT"); other != "" && other != args[0] {
				a.hint.Printf("PLATFORM_ENVIRONMENT is set to %s, which takes precedence.\n", term.Clean(other))
			}
			return nil
		}),
	}
}

// bearerToken is a token in the configuration file. The file may be invalid: what is no string may be
// the token, up to the end of the line.
var bearerToken = regexp.MustCompile(`(?is)(bearer_token["']?[ \t]*)(?:=\s*)?("""(?:\\.|.)*?(?:"""|\z)|'''.*?(?:'''|\z)|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[^\n]*)`)

func (a *app) configView() *cobra.Command {
	return &cobra.Command{
		Use:     "view",
		Short:   "Print the configuration file, without tokens",
		Args:    cobra.NoArgs,
		Example: "  platform config view",
		RunE: run(func(context.Context, []string) error {
			file := configFile(a.System)
			text, err := os.ReadFile(file)
			if errors.Is(err, fs.ErrNotExist) {
				a.hint.Printf("%s does not exist. `platform config edit` creates it.\n", file)
				return nil
			}
			if err != nil {
				return fmt.Errorf("read configuration file: %w", err)
			}
			a.hint.Printf("%s:\n", file)
			a.print.Printf("%s", bearerToken.ReplaceAll(text, []byte(`$1= "***"`)))
			return nil
		}),
	}
}

// configTemplate is the content of a new configuration file.
const configTemplate = `# [staging]
# environment_type = "self-hosted"
# admin_base_url = "https://admin.example.com/"
# ingress_base_url = "https://ingress.example.com/"
`

func (a *app) configEdit() *cobra.Command {
	return &cobra.Command{
		Use:     "edit",
		Short:   "Open the configuration file in an editor",
		Long:    "Opens the configuration file in PLATFORM_EDITOR, VISUAL or EDITOR, and checks what was saved. A missing file is created.",
		Args:    cobra.NoArgs,
		Example: "  EDITOR=vi platform config edit",
		RunE: run(func(ctx context.Context, _ []string) error {
			file := configFile(a.System)
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				return fmt.Errorf("create the configuration file: %w", err)
			}
			if !exists(file) {
				if err := os.WriteFile(file, []byte(configTemplate), 0o600); err != nil {
					return fmt.Errorf("create the configuration file: %w", err)
				}
			}
			if err := a.editFile(ctx, file); err != nil {
				return err
			}
			_, _, err := readProfiles(file)
			return err
		}),
	}
}
