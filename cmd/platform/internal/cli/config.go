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

	"github.com/spf13/cobra"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/term"
)

// config shows and changes the configuration of this program.
func (a *app) config() *cobra.Command {
	cmd := command.Group(&cobra.Command{
		Use:   "config",
		Short: "Show and change the environments of this program",
		Long: `Environments are servers with a name: tables of the configuration file. The file is config.toml in
~/.config/platform, in the directory that PLATFORM_CLI_CONFIG_HOME names, or the file that
PLATFORM_CLI_CONFIG names:

  [prod]
  admin_base_url = "https://admin.example.com/"
  ingress_base_url = "https://ingress.example.com/"`,
	}, a.configList(), a.configUse(), a.configView(), a.configEdit())
	for _, sub := range cmd.Commands() {
		sub.Annotations = map[string]string{command.WithoutServer: "yes"}
	}
	return cmd
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
	cmd.RunE = command.Run(func(context.Context, []string) error {
		file := a.ConfigFile()
		profiles, _, err := command.ReadProfiles(file)
		if err != nil {
			return err
		}
		type environment struct {
			Current  bool   `json:"current"`
			Name     string `json:"name"`
			AdminURL string `json:"admin_base_url"`
		}
		current, err := a.Environment(file)
		if err != nil {
			return err
		}
		environments, rows := []environment{}, [][]string{}
		for _, name := range command.EnvironmentNames(profiles) {
			e := environment{name == current, name, profiles[name].AdminURL}
			if e.AdminURL == "" {
				e.AdminURL = command.DefaultAdminURL
			}
			mark := ""
			if e.Current {
				mark = "*"
			}
			environments = append(environments, e)
			rows = append(rows, []string{mark, term.Clean(e.Name), term.Clean(e.AdminURL)})
		}
		if *asJSON {
			return a.PrintJSON(environments)
		}
		a.Print.Table("", []string{"CURRENT", "NAME", "ADMIN-BASE-URL"}, rows)
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
		RunE: command.Run(func(_ context.Context, args []string) error {
			file := a.ConfigFile()
			profiles, found, err := command.ReadProfiles(file)
			if err != nil {
				return err
			}
			if names := command.EnvironmentNames(profiles); !slices.Contains(names, args[0]) {
				return command.UnknownEnvironment(args[0], file, found, names)
			}
			if err := command.ChooseEnvironment(file, args[0]); err != nil {
				return fmt.Errorf("store the choice: %w", err)
			}
			a.Print.Printf("%s The environment is %s.\n", a.Print.Green("[OK]:"), term.Clean(args[0]))
			if other := a.Getenv("PLATFORM_ENVIRONMENT"); other != "" && other != args[0] {
				a.Hint.Printf("PLATFORM_ENVIRONMENT is set to %s, which takes precedence.\n", term.Clean(other))
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
		RunE: command.Run(func(context.Context, []string) error {
			file := a.ConfigFile()
			text, err := os.ReadFile(file)
			if errors.Is(err, fs.ErrNotExist) {
				a.Hint.Printf("%s does not exist. `platform config edit` creates it.\n", file)
				return nil
			}
			if err != nil {
				return fmt.Errorf("read configuration file: %w", err)
			}
			a.Hint.Printf("%s:\n", file)
			a.Print.Printf("%s", bearerToken.ReplaceAll(text, []byte(`$1= "***"`)))
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
		RunE: command.Run(func(ctx context.Context, _ []string) error {
			file := a.ConfigFile()
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				return fmt.Errorf("create the configuration file: %w", err)
			}
			if _, err := os.Stat(file); err != nil {
				if err := os.WriteFile(file, []byte(configTemplate), 0o600); err != nil {
					return fmt.Errorf("create the configuration file: %w", err)
				}
			}
			if err := a.EditFile(ctx, file); err != nil {
				return err
			}
			_, _, err := command.ReadProfiles(file)
			return err
		}),
	}
}
