package subscriptions

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
	"platform/internal/units"
)

func (a *commands) deadLetters() *cobra.Command {
	return command.Group(&cobra.Command{
		Use: "dead-letters", Aliases: []string{"dead-letter", "dlq"}, Short: "List, retry and drop records that could not be delivered",
		Long: `With --on-error dead-letter and without a dead-letter topic, the server keeps the records that it
cannot deliver, until they are retried or dropped.`,
	}, a.deadLettersList(), a.deadLettersShow(), a.deadLettersChange("retry"), a.deadLettersChange("drop"))
}

func (a *commands) deadLettersList() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list <subscription>", Aliases: []string{"ls"}, Short: "List the dead letters of a subscription", Args: cobra.ExactArgs(1),
		Example: "  platform subscriptions dead-letters list kafka://main/orders",
	}
	asJSON := command.JSONFlag(cmd.Flags())
	after := cmd.Flags().String("after", "", "continue after topic/partition/offset, as given by the previous page")
	cmd.RunE = command.Run(func(ctx context.Context, args []string) error {
		sub, err := a.subscription(ctx, args[0])
		if err != nil {
			return err
		}
		page, response, err := a.Client.DeadLetters(ctx, sub.ID, *after)
		if err != nil {
			return err
		}
		if *asJSON {
			return a.PrintRaw(response.Body)
		}
		a.showDeadLetters(&page)
		return nil
	})
	return cmd
}

func (a *commands) showDeadLetters(page *client.DeadLetterPage) {
	rows := make([][]string, len(page.Letters))
	for i := range page.Letters {
		l := &page.Letters[i]
		rows[i] = []string{
			fmt.Sprintf("%s/%d/%d", term.Clean(l.Topic), l.Partition, l.Offset), a.Print.Time(l.At), term.Clean(l.Reason), strconv.Itoa(l.ValueBytes), term.Clean(l.Message),
		}
	}
	a.saySilent(page.Silent)
	if len(rows) == 0 {
		a.Say("No dead letters.")
		return
	}
	a.Print.Table("", []string{"RECORD", "SINCE", "REASON", "BYTES", "CAUSE"}, rows)
	if page.Next != "" {
		a.Say("There are more: --after %s", term.Clean(page.Next))
	}
}

func (a *commands) deadLettersShow() *cobra.Command {
	cmd := &cobra.Command{
		Use: "show <subscription> <topic/partition/offset>", Aliases: []string{"get", "describe"}, Short: "Show a dead letter with its key, value and headers", Args: cobra.ExactArgs(2),
		Example: "  platform subscriptions dead-letters show kafka://main/orders orders/3/1500",
	}
	asJSON := command.JSONFlag(cmd.Flags())
	cmd.RunE = command.Run(func(ctx context.Context, args []string) error {
		topic, partition, offset, err := recordPlace(args[1])
		if err != nil {
			return err
		}
		sub, err := a.subscription(ctx, args[0])
		if err != nil {
			return err
		}
		l, response, err := a.Client.DeadLetter(ctx, sub.ID, topic, partition, offset)
		if err != nil {
			return err
		}
		if *asJSON {
			return a.PrintRaw(response.Body)
		}
		a.showRecord(&l, term.Field{Name: "Set aside", Value: a.Print.Time(l.At)}, term.Field{Name: "Reason", Value: term.Clean(l.Reason + ": " + l.Message)})
		return nil
	})
	return cmd
}

// recordText returns a key, value or header for a terminal.
func recordText(b *client.RecordBytes, size int) string {
	switch {
	case b == nil:
		return "none"
	case b.Text == nil:
		return "base64 " + base64.StdEncoding.EncodeToString(b.Base64)
	case size > len(*b.Text):
		return fmt.Sprintf("%s… (%d bytes)", term.Clean(*b.Text), size)
	}
	return term.Clean(*b.Text)
}

// recordPlace parses topic/partition/offset.
func recordPlace(text string) (topic string, partition int32, offset int64, err error) {
	parts := strings.Split(text, "/")
	if len(parts) == 3 {
		p, err1 := strconv.ParseInt(parts[1], 10, 32)
		o, err2 := strconv.ParseInt(parts[2], 10, 64)
		if err1 == nil && err2 == nil {
			return parts[0], int32(p), o, nil
		}
	}
	return "", 0, 0, fmt.Errorf("%q names no record; expected topic/partition/offset, such as orders/3/1500", text)
}

func (a *commands) deadLettersChange(operation string) *cobra.Command {
	cmd := &cobra.Command{
		Use: operation + " <subscription> <topic/partition/offset>... | --all",
		Example: fmt.Sprintf("  platform subscriptions dead-letters %s kafka://main/orders orders/3/1500\n  platform subscriptions dead-letters %[1]s kafka://main/orders --all",
			operation),
		Args: cobra.MinimumNArgs(1),
	}
	all := cmd.Flags().Bool("all", false, "all dead letters of the subscription")
	done := "Dropped"
	cmd.Short = "Delete dead letters"
	if operation == "retry" {
		cmd.Short = "Deliver dead letters with the current settings of the subscription"
		done = "Delivered"
	}
	cmd.RunE = command.Run(func(ctx context.Context, args []string) error {
		one, many := a.Client.DropDeadLetter, a.Client.DropDeadLetters
		if operation == "retry" {
			one, many = a.Client.RetryDeadLetter, a.Client.RetryDeadLetters
		}
		if *all != (len(args) == 1) {
			return errors.New("name the records as topic/partition/offset, or give --all")
		}
		for _, text := range args[1:] {
			if _, _, _, err := recordPlace(text); err != nil {
				return err // before the others are processed
			}
		}
		sub, err := a.subscription(ctx, args[0])
		if err != nil {
			return err
		}
		if operation == "drop" {
			what := "all dead letters (" + strconv.FormatUint(sub.DeadLetters, 10) + ")"
			if !*all {
				what = units.Counted(len(args)-1, "dead letter")
			}
			if err := a.Confirm(fmt.Sprintf("Delete %s of %s?", what, sub.ID)); err != nil {
				return err
			}
		}
		if *all {
			return a.onAllDeadLetters(ctx, sub.ID, done, many)
		}
		for _, text := range args[1:] {
			topic, partition, offset, err := recordPlace(text)
			if err != nil {
				return err
			}
			if err := one(ctx, sub.ID, topic, partition, offset); err != nil {
				return err
			}
			a.Say("%s %s.", done, term.Clean(text))
		}
		return nil
	})
	return cmd
}

// onAllDeadLetters applies an operation to all dead letters, a page at a time.
func (a *commands) onAllDeadLetters(ctx context.Context, id, done string, many func(ctx context.Context, id, after string) (client.DeadLetterResult, error)) error {
	succeeded, failed, after := 0, 0, ""
	for {
		r, err := many(ctx, id, after)
		if err != nil {
			return err
		}
		succeeded, failed = succeeded+r.Done, failed+r.Failed
		for _, e := range r.Errors {
			a.Say("%s/%d/%d: %s", term.Clean(e.Topic), e.Partition, e.Offset, term.Clean(e.Message))
		}
		a.saySilent(r.Silent)
		if after = r.Next; after == "" {
			break
		}
	}
	if succeeded > 0 || failed == 0 {
		a.Say("%s %s.", done, units.Counted(succeeded, "dead letter"))
	}
	if failed > 0 {
		return fmt.Errorf("%s of %s could not be %s", units.Counted(failed, "dead letter"), id, strings.ToLower(done))
	}
	return nil
}

func deadLetterText(s *client.Subscription) string {
	if s.DeadLetters == 0 {
		return ""
	}
	return fmt.Sprintf("%d, see `platform subscriptions dead-letters list %s`", s.DeadLetters, s.ID)
}

// onErrorText describes the treatment of records that cannot be delivered.
func onErrorText(s *client.Subscription) string {
	switch {
	case s.DeadLetterTopic != "":
		return s.OnError + " " + term.Clean(s.DeadLetterTopic)
	case s.OnError == "dead-letter":
		return s.OnError + " (kept by the server)"
	}
	return s.OnError
}
