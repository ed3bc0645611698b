package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/client"
)

func (a *app) invocationsCopy() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "copy <invocation id>",
		Short: "Start a copy of an invocation, with an edited input",
		Long: `Starts a new invocation of the same handler, key and scope, with the headers of another one, in any
status. Its input is the same, or the one given with --data.`,
		Args:    cobra.ExactArgs(1),
		Example: "  platform invocations copy inv_1… --data '{\"amount\": 2}'\n  platform invocations copy inv_1… --data @corrected.json",
	}
	data := cmd.Flags().StringP("data", "d", "", "the input, @file for a file's content, @- for stdin")
	raw := cmd.Flags().Bool("raw", false, "use the input as it is, even if it is not JSON")
	return command.ChangeResponse(a.App, cmd, func(ctx context.Context, args []string) (made client.BatchSuccess, response *client.Response, err error) {
		if !strings.HasPrefix(args[0], "inv_") {
			return made, nil, command.UsageError("copy needs the id of an invocation, got " + args[0])
		}
		var input *[]byte
		if cmd.Flags().Changed("data") {
			body, err := a.readData(*data)
			if err != nil {
				return made, nil, err
			}
			if !*raw {
				err = requireJSON("input", body)
			}
			if err != nil {
				return made, nil, err
			}
			input = &body
		}
		made, response, err = a.Client.Copy(ctx, args[0], input)
		if err != nil {
			err = command.HintNotFound(err, "`platform invocations list` shows the invocations.")
		}
		return made, response, err
	}, func(_ context.Context, made client.BatchSuccess) error {
		a.Say("Started %s as a copy of %s.", made.New, made.ID)
		return nil
	})
}
