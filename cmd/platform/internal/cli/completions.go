package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/client"
)

var shells = []string{"bash", "fish", "powershell", "zsh"}

// completions prints and installs shell completion scripts.
func (a *app) completions() *cobra.Command {
	generate := &cobra.Command{
		Use:       "generate <shell>",
		Short:     "Print the completion script for bash, fish, powershell or zsh",
		Long:      "Prints the completion script for bash, fish, powershell or zsh. There are no scripts for other shells, such as elvish and nushell.",
		Args:      cobra.ExactArgs(1),
		ValidArgs: shells,
		Example:   "  source <(platform completions generate bash)\n  platform completions generate fish > ~/.config/fish/completions/platform.fish",
	}
	generate.RunE = func(cmd *cobra.Command, args []string) error {
		if !slices.Contains(shells, args[0]) {
			return noScript(args[0])
		}
		return command.Run(func(context.Context, []string) error { return script(cmd, args[0], cmd.OutOrStdout()) })(cmd, args)
	}
	return command.Group(&cobra.Command{Use: "completions", Short: "Set up the completion of commands in your shell"}, generate, a.completionsInstall())
}

func noScript(shell string) error {
	if shell == "." || shell == "" {
		return command.UsageError("SHELL is not set; name a shell: " + strings.Join(shells, ", "))
	}
	return command.UsageError(fmt.Sprintf("there is no completion script for %q, only for %s", shell, strings.Join(shells, ", ")))
}

func script(cmd *cobra.Command, shell string, out io.Writer) error {
	root := cmd.Root()
	switch shell {
	case "bash":
		return root.GenBashCompletionV2(out, true)
	case "fish":
		return root.GenFishCompletion(out, true)
	case "powershell":
		return root.GenPowerShellCompletionWithDesc(out)
	}
	return root.GenZshCompletion(out)
}

func (a *app) completionsInstall() *cobra.Command {
	cmd := &cobra.Command{
		Use:       "install [shell]",
		Short:     "Install the completion script",
		Long:      "Writes the completion script of bash, fish or zsh below your home directory. The default is the shell in SHELL.",
		Args:      cobra.MaximumNArgs(1),
		ValidArgs: []string{"bash", "fish", "zsh"},
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		shell := filepath.Base(a.Getenv("SHELL"))
		if len(args) > 0 {
			shell = args[0]
		}
		path, note := a.completionFile(shell)
		switch {
		case !slices.Contains(shells, shell):
			return noScript(shell)
		case path == "":
			return command.UsageError(fmt.Sprintf("scripts of %s cannot be installed, only those of bash, fish and zsh; `platform completions generate %[1]s` prints it", shell))
		}
		return command.Run(func(context.Context, []string) error {
			var text bytes.Buffer
			if err := script(cmd, shell, &text); err != nil {
				return err
			}
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, text.Bytes(), 0o644)); err != nil { //nolint:gosec // nothing secret
				return fmt.Errorf("install completions: %w", err)
			}
			a.Print.Printf("%s Wrote %s\n", a.Print.Green("[OK]:"), path)
			a.Say("%s", note)
			return nil
		})(cmd, args)
	}
	return cmd
}

// completionFile returns where a shell looks for the script and what else it requires; empty
// if that is not known.
func (a *app) completionFile(shell string) (path, note string) {
	if a.Home == "" {
		return "", ""
	}
	below := func(variable, otherwise string) string {
		return orElse(a.Getenv(variable), filepath.Join(a.Home, otherwise))
	}
	switch shell {
	case "bash":
		return filepath.Join(below("XDG_DATA_HOME", ".local/share"), "bash-completion", "completions", "platform"), "It takes effect in new shells that have the package bash-completion."
	case "fish":
		return filepath.Join(below("XDG_CONFIG_HOME", ".config"), "fish", "completions", "platform.fish"), "It takes effect in new shells."
	case "zsh":
		return filepath.Join(a.Home, ".zfunc", "_platform"), "It takes effect in new shells with these lines in .zshrc: fpath+=~/.zfunc; autoload -Uz compinit && compinit"
	}
	return "", ""
}

// completionTime bounds the requests for completions.
const completionTime = 2 * time.Second

// completeValues adds completions of names and ids from the server.
func (a *app) completeValues(root *cobra.Command) {
	for path, list := range map[string]func(context.Context) ([]string, error){
		"rules set": a.patterns, "rules enable": a.patterns, "rules disable": a.patterns, "rules delete": a.patterns,
		"vqueues describe": a.vqueueIDs, "vqueues pause": a.vqueueIDs, "vqueues resume": a.vqueueIDs,
		"services describe": a.serviceNames, "services status": a.serviceNames, "services patch": a.serviceNames,
		"state get": a.serviceNames, "state edit": a.serviceNames, "state patch": a.serviceNames, "state clear": a.serviceNames,
		"invocations cancel": a.serviceNames, "invocations kill": a.serviceNames, "invocations pause": a.serviceNames,
		"invocations resume": a.serviceNames, "invocations purge": a.serviceNames, "invocations restart-as-new": a.serviceNames,
		"deployments describe": a.deploymentIDs, "deployments remove": a.deploymentIDs, "deployments update": a.deploymentIDs,
	} {
		if cmd, rest, err := root.Find(strings.Fields(path)); err == nil && len(rest) == 0 {
			cmd.ValidArgsFunction = a.firstArgument(list)
		}
	}
	for _, group := range []string{"invocations", "workflows"} {
		cmd, rest, err := root.Find([]string{group, "list"})
		if err != nil || len(rest) > 0 {
			continue
		}
		_ = cmd.RegisterFlagCompletionFunc("status", cobra.FixedCompletions(append(slices.Clone(openStatuses), "completed"), cobra.ShellCompDirectiveNoFileComp))
		_ = cmd.RegisterFlagCompletionFunc("service", a.completing(a.serviceNames))
	}
}

func (a *app) firstArgument(list func(context.Context) ([]string, error)) cobra.CompletionFunc {
	complete := a.completing(list)
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(cmd, args, begun)
	}
}

// completing completes from a list that the server returns; nothing if it does not respond.
func (a *app) completing(list func(context.Context) ([]string, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, begun string) (values []string, _ cobra.ShellCompDirective) {
		if a.SetUp(cmd) != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
		defer cancel()
		all, err := list(ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		for _, v := range all {
			if strings.HasPrefix(v, begun) {
				values = append(values, v)
			}
		}
		return values, cobra.ShellCompDirectiveNoFileComp
	}
}

func (a *app) patterns(ctx context.Context) (names []string, err error) {
	rules, _, err := a.Client.Rules(ctx)
	for _, r := range rules {
		names = append(names, r.Pattern)
	}
	return names, err
}

func (a *app) vqueueIDs(ctx context.Context) (names []string, err error) {
	queues, err := a.Client.VQueues(ctx, client.VQueueFilter{}, 100)
	for _, q := range queues {
		names = append(names, q.ID)
	}
	return names, err
}

func (a *app) serviceNames(ctx context.Context) (names []string, err error) {
	services, _, err := a.Client.Services(ctx)
	for _, s := range services {
		names = append(names, s.Name)
	}
	return names, err
}

func (a *app) deploymentIDs(ctx context.Context) (names []string, err error) {
	deployments, _, err := a.Client.Deployments(ctx)
	for _, d := range deployments {
		names = append(names, d.ID)
	}
	return names, err
}
