package command

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"platform/cmd/platform/internal/client"
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

// repeat runs body until it fails or ctx ends. A request without a response, which is normal while a
// server restarts, is repeated with the next round, except in the first one.
func (a *App) repeat(ctx context.Context, args []string, body runner) error {
	pause := time.Duration(a.options.interval * float64(time.Second))
	tick := time.NewTicker(pause)
	defer tick.Stop()
	screen, hint := a.Print, a.Hint
	screen.Printf(enterScreen)
	defer func() { screen.Printf(leaveScreen) }()
	last, shown := "", false
	for {
		var round bytes.Buffer
		a.Print, a.Hint = screen.To(&round), hint.To(&round) // hints are part of the screen
		err := body(ctx, args)
		a.Print, a.Hint = screen, hint
		if ctx.Err() != nil {
			return nil
		}
		status := ""
		switch {
		case err == nil:
			last, shown = round.String(), true
		case !shown || !client.IsTransient(err):
			return err
		default:
			status = screen.Red(term.Clean(err.Error())+"; retrying") + "\n"
		}
		a.draw(fmt.Sprintf("Every %s, Ctrl-C ends. %s\n%s\n%s", term.Duration(pause), time.Now().Format(time.TimeOnly), status, last))
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// draw replaces the contents of the screen by the beginning of a text. It writes them in one call, so
// that the screen does not flicker.
func (a *App) draw(text string) {
	if rows, columns, known := term.Size(a.Out); known {
		text = term.Fit(text, rows, columns)
	}
	a.Print.Printf("%s%s", clearScreen, text)
}
