package cli

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/term"
)

func (a *app) ui() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "ui",
		Short:   "Open the web UI in a browser",
		Long:    "Prints the address of the web UI, which the server serves on its admin port. On a terminal it also opens it in a browser.",
		Args:    cobra.NoArgs,
		Example: "  platform ui\n  platform ui --print",
	}
	only := cmd.Flags().Bool("print", false, "print the address only")
	cmd.RunE = command.Run(func(ctx context.Context, _ []string) error {
		address := strings.TrimSuffix(a.Profile.AdminURL, "/") + "/ui/"
		a.Print.Println(term.Clean(address))
		if *only {
			return nil
		}
		if _, err := a.Client.Version(ctx); err != nil || !term.IsTerminal(a.Out) {
			return err
		}
		if err := openBrowser(ctx, address); err != nil {
			return command.WithHint(fmt.Errorf("open a browser: %w", err), "Open the address above yourself, or use `platform ui --print`.")
		}
		return nil
	})
	return cmd
}

// openBrowser asks the desktop to open an address.
func openBrowser(ctx context.Context, address string) error {
	command := []string{"xdg-open"}
	switch runtime.GOOS {
	case "darwin":
		command = []string{"open"}
	case "windows":
		command = []string{"rundll32", "url.dll,FileProtocolHandler"}
	}
	return exec.CommandContext(ctx, command[0], append(command[1:], address)...).Run() //nolint:gosec // the configured address of the server
}
