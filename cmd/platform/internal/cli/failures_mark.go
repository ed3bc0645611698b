package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
)

// failuresMute is the command that mutes or unmutes a failure group.
func (a *app) failuresMute(muted bool) *cobra.Command {
	cmd := &cobra.Command{
		Use: "unmute <group>", Short: "Show a muted failure group among those that need attention again",
		Args: cobra.ExactArgs(1), Example: "  platform failures unmute fg_1f0c2a9b3d4e5f60",
	}
	note := ""
	if muted {
		cmd.Use, cmd.Short = "mute <group>", "Mark a failure group as one that needs no attention"
		cmd.Long = "Marks a failure group as one that needs no attention: the web UI no longer counts it and lists it\nbelow the others. Its invocations are not changed."
		cmd.Example = "  platform failures mute fg_1f0c2a9b3d4e5f60 --note \"fixed with the next release\""
		cmd.Flags().StringVar(&note, "note", "", "also set the note of the group")
	}
	return a.marksFailure(cmd, func([]string) (*bool, *string) {
		if cmd.Flags().Changed("note") {
			return &muted, &note
		}
		return &muted, nil
	})
}

// failuresNote is the command that changes the note of a failure group.
func (a *app) failuresNote() *cobra.Command {
	cmd := &cobra.Command{
		Use: "note <group> [text]...", Short: "Set the note of a failure group, or delete it",
		Args:    cobra.MinimumNArgs(1),
		Example: "  platform failures note fg_1f0c2a9b3d4e5f60 \"Ada looks into it\"\n  platform failures note fg_1f0c2a9b3d4e5f60",
	}
	return a.marksFailure(cmd, func(args []string) (*bool, *string) {
		note := strings.Join(args[1:], " ")
		return nil, &note
	})
}

// marksFailure completes a command that changes the mark of a failure group.
func (a *app) marksFailure(cmd *cobra.Command, mark func(args []string) (muted *bool, note *string)) *cobra.Command {
	return command.ChangeResponse(a.App, cmd, func(ctx context.Context, args []string) (client.FailureGroup, *client.Response, error) {
		muted, note := mark(args)
		g, response, err := a.Client.MarkFailure(ctx, args[0], muted, note)
		if err != nil {
			err = command.HintNotFound(err, "`platform failures list` shows the current groups.")
		}
		return g, response, err
	}, func(_ context.Context, g client.FailureGroup) error {
		switch {
		case g.Muted:
			a.Say("Failure group %s is muted.", g.ID)
		case g.Note != "":
			a.Say("Failure group %s has the note: %s", g.ID, term.Clean(g.Note))
		default:
			a.Say("Failure group %s has no mark.", g.ID)
		}
		return nil
	})
}

// mutedText formats who muted a group; "" if it is not muted.
func mutedText(g *client.FailureGroup) string {
	if !g.Muted {
		return ""
	}
	return "by " + term.Clean(g.MarkedBy)
}
