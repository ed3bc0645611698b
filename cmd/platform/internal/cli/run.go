package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"platform/cmd/platform/internal/cli/cluster"
	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/cli/subscriptions"
	"platform/internal/version"
)

// The exit statuses.
const (
	exitDone  = 0
	exitError = 1
	exitUsage = 2
)

// app is the receiver of the commands.
type app struct {
	*command.App

	args        []string      // of the command line
	noticeDelay time.Duration // before a command reports what it waits for
	// statusInterval is how often a command that waits checks whether the invocation is paused.
	statusInterval time.Duration
	settleTime     time.Duration // for which pause waits for handlers to suspend
}

// Run runs one command line, without the program's name, and returns the exit
// status.
func Run(ctx context.Context, args []string, system command.System) int {
	a := &app{App: command.NewApp(system), args: args, noticeDelay: noticeDelay, statusInterval: statusInterval, settleTime: settleTime}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	ran, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitDone
	}
	if reason := command.Cause(err); reason != nil {
		a.Report(reason)
		return exitError
	}
	fmt.Fprintf(a.Err, "%s %s\nRun '%s --help' for usage.\n", a.Hint.Red("Error:"), err, ran.CommandPath())
	return exitUsage
}

// Command returns the tree of all commands, for documentation and tests. It cannot be run.
func Command() *cobra.Command {
	return (&app{App: &command.App{System: command.System{Getenv: func(string) string { return "" }}}}).root()
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "platform",
		Short:         "Run, call and manage durable services",
		Version:       version.Version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return a.SetUp(cmd)
		},
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Example: `  platform dev                                   start a temporary server
  platform deployments register localhost:9080   register services
  platform call Greeter/greet '"World"'          call a handler`,
	}
	root.SetVersionTemplate(version.Line("platform") + "\n")
	a.Bind(root.PersistentFlags())
	for _, g := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Getting started", []*cobra.Command{a.dev(), a.sample(), a.ui(), a.docs()}},
		{"Services", []*cobra.Command{a.deployments(), a.services()}},
		{"Calls", []*cobra.Command{a.call(), a.send(), a.attach(), a.workflows(), a.awakeables(), a.signals()}},
		{"Invocations and state", []*cobra.Command{
			a.invocations(), a.failures(), a.jobs(), a.explain(), a.state(), a.objects(), a.promises(), a.sql(),
		}},
		{"Limits and events", []*cobra.Command{a.rules(), a.vqueues(), subscriptions.Command(a.App), subscriptions.KafkaClusters(a.App)}},
		{"Server", []*cobra.Command{cluster.Command(a.App), a.tokens(), a.audit()}},
		{"This client", []*cobra.Command{a.login(), a.logout(), a.whoami(), a.config(), a.version(), a.completions()}},
	} {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, c := range g.commands {
			c.GroupID = g.title
		}
		root.AddCommand(g.commands...)
	}
	command.Group(root)
	a.completeValues(root)
	a.describeArgs(root)
	root.SetHelpCommand(helpCommand(root))
	root.SetUsageTemplate(usageTemplate)
	root.SetHelpTemplate(helpTemplate)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		// The flags of a command that does not exist are unknown to its group.
		if _, rest, _ := root.Find(a.args); cmd.HasAvailableSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
			return command.UnknownCommand(cmd, rest[0])
		}
		return suggestFlag(cmd, err)
	})
	return root
}

// describeArgs makes all commands show their usage when the number of arguments is wrong, and what to
// write instead of a switch and its value as two words.
func (a *app) describeArgs(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		a.describeArgs(sub)
	}
	validate := cmd.Args
	if validate == nil {
		return
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		err := validate(cmd, args)
		if stray := separateValue(cmd.Flags(), a.args); stray != nil && (err != nil || !takesValue(cmd)) {
			return stray
		}
		if err != nil {
			usage := strings.TrimSuffix(cmd.UseLine(), " [flags]")
			if len(args) == 0 {
				return fmt.Errorf("an argument is missing: %s", usage)
			}
			return fmt.Errorf("wrong number of arguments: %s", usage)
		}
		return nil
	}
}

// takesValue reports whether true or false can be an argument of a command.
func takesValue(cmd *cobra.Command) bool {
	return slices.ContainsFunc([]string{"[body]", "[value]"}, func(argument string) bool { return strings.Contains(cmd.Use, argument) })
}

// separateValue returns an error if a switch, which has its value after =, is followed by true or false.
func separateValue(flags *pflag.FlagSet, args []string) error {
	for i, arg := range args {
		if arg == "--" {
			break
		}
		var f *pflag.Flag
		if name, long := strings.CutPrefix(arg, "--"); long {
			f = flags.Lookup(name)
		} else if len(arg) > 1 && arg[0] == '-' {
			f = flags.ShorthandLookup(arg[len(arg)-1:])
		}
		if f == nil || f.Value.Type() != "bool" || i+1 == len(args) {
			continue
		}
		if value := strings.ToLower(args[i+1]); value == "true" || value == "false" {
			return command.UsageError(fmt.Sprintf("a switch has its value after =: write --%s=%s instead of %s %s", f.Name, value, arg, args[i+1]))
		}
	}
	return nil
}

// helpCommand is the hidden command help, for users who try it before --help.
func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:    "help [command]...",
		Short:  "Show the help of a command",
		Hidden: true,
		// Help needs neither a server nor valid settings.
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err != nil {
				return err
			}
			if len(rest) > 0 && cmd.HasAvailableSubCommands() {
				return command.UnknownCommand(cmd, rest[0])
			}
			return cmd.Help()
		},
	}
}
