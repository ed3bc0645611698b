package cli

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

// jsonFlag adds --json.
func jsonFlag(flags *pflag.FlagSet) *bool {
	return flags.Bool("json", false, "print the server's JSON response")
}

// viewResponse makes cmd show a response of the server: unchanged with --json, otherwise as
// show formats it.
func viewResponse[V any](a *app, cmd *cobra.Command, request func(context.Context, []string) (V, *client.Response, error), show func(context.Context, V) error) *cobra.Command {
	asJSON := jsonFlag(cmd.Flags())
	a.shows(cmd, func(ctx context.Context, args []string) error {
		value, response, err := request(ctx, args)
		switch {
		case err != nil:
			return err
		case *asJSON:
			return a.printRaw(response.Body)
		}
		return show(ctx, value)
	})
	return cmd
}

// printRaw prints JSON of the server, indented.
func (a *app) printRaw(raw []byte) error {
	var out bytes.Buffer
	if err := json.Indent(&out, raw, "", "  "); err != nil {
		return fmt.Errorf("the server sent malformed JSON: %w", err)
	}
	a.print.Println(strings.TrimSpace(out.String()))
	return nil
}

// printJSON prints a value as indented JSON.
func (a *app) printJSON(value any) error {
	var raw bytes.Buffer
	encoder := json.NewEncoder(&raw)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("encode output: %w", err)
	}
	return a.printRaw(bytes.TrimSpace(raw.Bytes()))
}
