package command

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
)

// System is the environment of the program.
type System struct {
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(string) string
	Home     string // home directory, may be empty
}

// App is what commands share. SetUp sets the fields below options before a command runs.
type App struct {
	System
	options globals

	Profile     Settings
	Client      *client.Client
	authorities *x509.CertPool // nil: those of the system
	Print       *term.Printer  // stdout
	Hint        *term.Printer  // stderr
}

// NewApp returns an App that prints errors. Variables of the file .env are part of its environment.
func NewApp(system System) *App {
	a := &App{System: system}
	a.Getenv = withDotEnv(system.Getenv, ".env")
	a.Hint = term.New(a.Err, a.Getenv, false, term.Human)
	return a
}

// failure marks an error of a command that ran; other errors are usage errors.
type failure struct{ err error }

func (f *failure) Error() string { return f.err.Error() }

func (f *failure) Unwrap() error { return f.err }

// wrongUsage is a usage error that the command itself detects.
type wrongUsage struct{ message string }

func (u *wrongUsage) Error() string { return u.message }

// UsageError returns an error about the use of a command, which leads to its help.
func UsageError(message string) error { return &wrongUsage{message} }

// IsUsageError reports whether an error was made by UsageError.
func IsUsageError(err error) bool {
	_, is := errors.AsType[*wrongUsage](err)
	return is
}

// Failed marks an error as one of a command that ran, where Run does not do it.
func Failed(err error) error { return &failure{err} }

// Cause returns the error of a command that ran, nil for a usage error.
func Cause(err error) error {
	if f, ok := errors.AsType[*failure](err); ok {
		return f.err
	}
	return nil
}

// runner is the body of a command.
type runner func(ctx context.Context, args []string) error

// Run adapts a body to cobra and distinguishes failures from usage errors.
func Run(body runner) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		err := body(cmd.Context(), args)
		if err == nil || IsUsageError(err) {
			return err
		}
		return Failed(err)
	}
}

// Group adds subcommands to a command without an action of its own. Running it without a
// subcommand prints its help and is a usage error, as is an unknown subcommand.
func Group(parent *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	parent.AddCommand(commands...)
	parent.Args = cobra.ArbitraryArgs
	parent.SuggestionsMinimumDistance = 2
	parent.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return UnknownCommand(cmd, args[0])
		}
		cmd.SetOut(cmd.ErrOrStderr())
		if err := cmd.Help(); err != nil {
			return err
		}
		return UsageError("a command is missing")
	}
	return parent
}

// UnknownCommand returns the error of a command that does not exist, with similar names.
func UnknownCommand(cmd *cobra.Command, name string) error {
	message := fmt.Sprintf("unknown command %q", name)
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		message += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return UsageError(message)
}
