package command

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"platform/cmd/platform/internal/client"
)

// JSONFlag adds --json.
func JSONFlag(flags *pflag.FlagSet) *bool {
	return flags.Bool("json", false, "print the server's JSON response")
}

// ViewResponse makes cmd show a response of the server, which --watch can repeat: unchanged with --json,
// otherwise as show formats it. The request must not change anything.
func ViewResponse[V any](a *App, cmd *cobra.Command, request func(context.Context, []string) (V, *client.Response, error), show func(context.Context, V) error) *cobra.Command {
	a.Shows(cmd, respond(a, cmd, request, show))
	return cmd
}

// ChangeResponse is ViewResponse for a request that changes something, and so must not be repeated.
func ChangeResponse[V any](a *App, cmd *cobra.Command, request func(context.Context, []string) (V, *client.Response, error), show func(context.Context, V) error) *cobra.Command {
	cmd.RunE = Run(respond(a, cmd, request, show))
	return cmd
}

// respond adds --json and returns the body of a command that shows a response of the server.
func respond[V any](a *App, cmd *cobra.Command, request func(context.Context, []string) (V, *client.Response, error), show func(context.Context, V) error) runner {
	asJSON := JSONFlag(cmd.Flags())
	return func(ctx context.Context, args []string) error {
		value, response, err := request(ctx, args)
		switch {
		case err != nil:
			return err
		case *asJSON:
			return a.PrintRaw(response.Body)
		}
		return show(ctx, value)
	}
}

// PrintRaw prints JSON of the server, indented.
func (a *App) PrintRaw(raw []byte) error {
	var out bytes.Buffer
	if err := json.Indent(&out, raw, "", "  "); err != nil {
		return fmt.Errorf("the server sent malformed JSON: %w", err)
	}
	a.Print.Println(strings.TrimSpace(out.String()))
	return nil
}

// PrintJSON prints a value as indented JSON.
func (a *App) PrintJSON(value any) error {
	var raw bytes.Buffer
	encoder := json.NewEncoder(&raw)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("encode output: %w", err)
	}
	return a.PrintRaw(bytes.TrimSpace(raw.Bytes()))
}
