package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
	"platform/internal/access"
	"platform/internal/ids"
	"platform/internal/units"
)

func (a *app) awakeables() *cobra.Command {
	return command.Group(&cobra.Command{
		Use:     "awakeables",
		Aliases: []string{"awakeable"},
		Short:   "List and complete awakeables, which handlers wait for",
		Long: `Lists and completes awakeables. A handler creates one, passes its id to another system and waits for the
value; the first completion wins. 'platform explain <invocation id>' shows all that an invocation waits for.`,
	}, a.awakeablesList(), a.awakeablesComplete(false), a.awakeablesComplete(true), a.awakeablesCallback())
}

func (a *app) awakeablesList() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the awakeables that invocations wait for, the oldest first",
		Long: `Lists the awakeables that invocations wait for, those that have waited longest first.

The server knows what an invocation waits for once it is suspended. A handler that runs is asked to
suspend after the inactivity timeout, one minute by default, so its awakeables may be missing until
then; with service protocol 7, handlers report them immediately.`,
		Args:    cobra.NoArgs,
		Example: "  platform awakeables list\n  platform awakeables list --service Payment --older-than 1d",
	}
	asJSON := command.JSONFlag(cmd.Flags())
	limit := cmd.Flags().Int("limit", 100, "at most this many")
	var f client.AwakeableFilter
	cmd.Flags().StringSliceVar(&f.Service, "service", nil, "only those of these services")
	cmd.Flags().StringVar(&f.Scope, "scope", "", "only those of this scope")
	older := cmd.Flags().String("older-than", "", "only those that have waited longer than this `duration`, such as 1h")
	a.Shows(cmd, func(ctx context.Context, _ []string) error {
		if *limit < 1 {
			return command.UsageError("--limit must be at least 1")
		}
		if *older != "" {
			d, err := units.ParseDuration(*older)
			if err != nil || d <= 0 {
				return command.UsageError("--older-than takes a duration, such as 1h")
			}
			f.OlderThan = d
		}
		list, err := a.Client.Awakeables(ctx, f, *limit+1)
		if err != nil {
			return err
		}
		more := len(list) > *limit
		list = list[:min(len(list), *limit)]
		switch {
		case *asJSON:
			return a.PrintJSON(map[string]any{"awakeables": append([]client.Awakeable{}, list...)})
		case len(list) == 0:
			a.Say("No such awakeables. Those of a running handler are listed when it suspends, after its inactivity timeout.")
			return nil
		}
		a.awakeableTable(list)
		if more {
			a.Say("There are more than these; see --limit.")
		}
		return nil
	})
	return cmd
}

func (a *app) awakeableTable(list []client.Awakeable) {
	rows := make([][]string, len(list))
	for i, w := range list {
		rows[i] = []string{term.Clean(w.ID), command.OrDash(a.Print.Time(w.WaitingSince)), term.Clean(w.Target), term.Clean(w.Invocation)}
	}
	a.Print.Table("", []string{"ID", "WAITING-SINCE", "TARGET", "INVOCATION"}, rows)
}

func (a *app) awakeablesComplete(reject bool) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "resolve <awakeable id> [value]",
		Short:   "Complete an awakeable with a value, usually JSON",
		Args:    cobra.RangeArgs(1, 2),
		Example: "  platform awakeables resolve sign_1… '{\"approved\":true}'\n  platform awakeables resolve sign_1… -d @value.json",
	}
	done := "Resolved"
	if reject {
		cmd.Use, cmd.Short = "reject <awakeable id> [reason]", "Complete an awakeable with a failure, which the handler gets as a terminal error"
		cmd.Example = "  platform awakeables reject sign_1… 'the payment was declined'"
		done = "Rejected"
	}
	value := completionFlags(cmd, reject)
	cmd.RunE = command.Run(func(ctx context.Context, args []string) error {
		body, err := value.body(a, cmd, args[1:])
		if err != nil {
			return err
		}
		if err := a.checkAwakeable(ctx, args[0]); err != nil {
			return err
		}
		if err := a.Client.CompleteAwakeable(ctx, args[0], reject, body); err != nil {
			return err
		}
		a.Print.Printf("%s %s awakeable %s\n", a.Print.Green("[OK]:"), done, term.Clean(args[0]))
		return nil
	})
	return cmd
}

// awakeablesCallback makes a URL for a program without a token.
func (a *app) awakeablesCallback() *cobra.Command {
	cmd := &cobra.Command{
		Use: "callback <awakeable id>", Short: "Print a URL that completes one awakeable without a token", Args: cobra.ExactArgs(1),
		Long: `Prints a URL for a POST request, whose body becomes the value of the awakeable. It contains a callback
token, made from the token in use, which needs the role callback or invoker: it permits nothing else, and
it ends with that token.`,
		Example: "  platform awakeables callback sign_1… --expires-in 7d",
	}
	validity := cmd.Flags().String("expires-in", "24h", "validity as a `duration`")
	cmd.RunE = command.Run(func(_ context.Context, args []string) error {
		if _, err := ids.ParseAwakeable(args[0]); err != nil {
			return command.UsageError(fmt.Sprintf("%q is not the id of an awakeable: %v", args[0], err))
		}
		d, err := units.ParseDuration(*validity)
		if err != nil || d <= 0 {
			return command.UsageError("--expires-in takes a duration, such as 7d")
		}
		token, err := access.NewCallback(a.Profile.Token, args[0], time.Now().Add(d))
		if err != nil {
			return fmt.Errorf("%w; log in with one that `platform tokens create NAME --role callback` printed", err)
		}
		a.Print.Println(strings.TrimSuffix(a.Profile.IngressURL, "/") + "/platform/awakeables/" + args[0] + "/resolve?callback_token=" + token)
		return nil
	})
	return cmd
}

// completion is the value, or the reason of a rejection, that a handler waits for.
type completion struct {
	data        string
	raw, reject bool
}

func completionFlags(cmd *cobra.Command, reject bool) *completion {
	c := &completion{reject: reject}
	cmd.Flags().StringVarP(&c.data, "data", "d", "", "the value, @file for a file's content, @- for stdin")
	if !reject {
		cmd.Flags().BoolVar(&c.raw, "raw", false, "send the value as it is, even if it is not JSON")
	}
	return c
}

// body is the value or reason from the arguments or the flag --data.
func (c *completion) body(a *app, cmd *cobra.Command, args []string) (body []byte, err error) {
	given := cmd.Flags().Changed("data")
	switch {
	case given && len(args) > 0:
		return nil, command.UsageError("give the value as an argument or with --data, not both")
	case given:
		if body, err = a.readData(c.data); err != nil {
			return nil, err
		}
	case len(args) > 0:
		body = []byte(args[0])
	}
	if c.reject || c.raw {
		return body, nil
	}
	return body, requireJSON("value", body)
}

// requireJSON returns an error if a value that cannot be taken back is neither empty nor JSON.
func requireJSON(what string, body []byte) error {
	if len(body) == 0 || json.Valid(body) {
		return nil
	}
	hint := "Text is JSON only in quotes. --raw sends the bytes as they are, for handlers that do not expect JSON."
	if text := string(body); len(text) <= 60 && utf8.ValidString(text) && !strings.ContainsAny(text, "'\n") {
		quoted, err := json.Marshal(text)
		if err == nil {
			hint = "Write text with quotes: '" + term.Clean(string(quoted)) + "'. --raw sends the bytes as they are, for handlers that do not expect JSON."
		}
	}
	return command.WithHint(fmt.Errorf("the %s is not JSON; nothing was changed", what), hint)
}

// checkAwakeable fails if the awakeable cannot be completed, since the ingress accepts
// completions of any awakeable. It checks nothing if the admin API does not respond, or
// if it does not know the format of the id.
func (a *app) checkAwakeable(ctx context.Context, id string) error {
	awakeable, err := ids.ParseAwakeable(id)
	if err != nil {
		return nil //nolint:nilerr // the ingress accepts other formats as well, and validates them
	}
	if err := a.checkReceiver(ctx, awakeable.Invocation.String()); err != nil {
		return err
	}
	received, err := a.Client.QueryTable(ctx, "SELECT entry_lite_json FROM sys_journal WHERE id = "+client.Quote(awakeable.Invocation.String())+
		" AND entry_type = 'Notification: Signal'", "strong")
	if err != nil {
		return nil //nolint:nilerr // not checked
	}
	for _, row := range received.Rows {
		if strings.Contains(row.Text("entry_lite_json"), fmt.Sprintf(`"Index":%d}`, awakeable.Signal)) {
			return command.WithHint(fmt.Errorf("the awakeable %s is already completed", id), "The first completion counts; nothing was changed.")
		}
	}
	return nil
}

// checkReceiver fails if an invocation is unknown or has ended.
func (a *app) checkReceiver(ctx context.Context, id string) error {
	inv, _, err := a.Client.Invocation(ctx, id)
	switch {
	case client.HasStatus(err, http.StatusNotFound):
		return command.HintNotFound(err, "It has ended and is no longer kept, or never existed.")
	case err == nil && inv.Status == "completed":
		return fmt.Errorf("the invocation %s of %s has ended; it receives nothing", id, inv.Target)
	}
	return nil // the admin API may be unreachable while the ingress is not
}

func (a *app) signals() *cobra.Command {
	return command.Group(&cobra.Command{
		Use:     "signals",
		Aliases: []string{"signal"},
		Short:   "Send signals to invocations",
		Long: `Sends named signals to invocations. Signals of one name are queued: a handler that waits for the name
twice gets two of them. They are kept until the handler waits for them.`,
	}, a.signalsSend(false), a.signalsSend(true))
}

func (a *app) signalsSend(reject bool) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "send <invocation id> <name> [value]",
		Short:   "Send a signal with a value, usually JSON",
		Args:    cobra.RangeArgs(2, 3),
		Example: "  platform signals send inv_1… approved true",
	}
	if reject {
		cmd.Use, cmd.Short = "reject <invocation id> <name> [reason]", "Send a signal with a failure, which the handler gets as a terminal error"
		cmd.Example = "  platform signals reject inv_1… approved 'not approved'"
	}
	value := completionFlags(cmd, reject)
	cmd.RunE = command.Run(func(ctx context.Context, args []string) error {
		if args[1] == "" {
			return command.UsageError("the name of the signal is empty")
		}
		body, err := value.body(a, cmd, args[2:])
		if err != nil {
			return err
		}
		if err := a.checkReceiver(ctx, args[0]); err != nil {
			return err
		}
		if err := a.Client.Signal(ctx, args[0], args[1], reject, body); err != nil {
			return err
		}
		a.Print.Printf("%s Sent signal %s to %s\n", a.Print.Green("[OK]:"), term.Clean(args[1]), term.Clean(args[0]))
		return nil
	})
	return cmd
}
