package command

import (
	"bytes"
	"context"
	"time"

	"github.com/spf13/cobra"

	"platform/cmd/platform/internal/term"
)

// watchable marks commands that --watch can repeat.
const watchable = "watchable"

// Terminal control: the alternate screen preserves the previous contents.
const (
	enterScreen = "\x1b[?1049h"
	leaveScreen = "\x1b[?1049l"
	clearScreen = "\x1b[H\x1b[2J"
)

// Shows makes body the body of a command that --watch can repeat.
func (a *App) Shows(cmd *cobra.Command, body runner) {
	cmd.Annotations = map[string]string{watchable: "yes"}
	cmd.RunE = Run(func(ctx context.Context, args []string) error {
		if !a.options.watch {
			return body(ctx, args)
		}
		if !term.IsTerminal(a.Out) {
			return UsageError("--watch needs a terminal")
		}
		return a.repeat(ctx, args, body)
	})
}

// repeat runs body until it fails or ctx ends. It writes the output of each run in one
// call, so that the screen does not flicker.
func (a *App) repeat(ctx context.Context, args []string, body runner) error {
	pause := time.Duration(a.options.interval * float64(time.Second))
	tick := time.NewTicker(pause)
	defer tick.Stop()
	screen := a.Print
	screen.Printf(enterScreen)
	defer func() { screen.Printf(leaveScreen) }()
	for {
		var round bytes.Buffer
		a.Print = screen.To(&round)
		err := body(ctx, args)
		a.Print = screen
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		screen.Printf("%sEvery %s, Ctrl-C ends. %s\n\n%s", clearScreen, term.Duration(pause), time.Now().Format(time.TimeOnly), round.String())
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
