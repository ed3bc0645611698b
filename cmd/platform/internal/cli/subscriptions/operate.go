package subscriptions

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
	"platform/internal/units"
)

func (a *commands) subscriptionsPause() *cobra.Command {
	cmd := &cobra.Command{
		Use: "pause <subscription>", Short: "Stop a subscription until it is resumed", Args: cobra.ExactArgs(1),
		Long:    "Stops fetching records; those in flight are delivered. The backlog stays in Kafka.",
		Example: "  platform subscriptions pause sub_1… --reason 'maintenance of the warehouse'",
	}
	reason := cmd.Flags().String("reason", "", "why, for other operators: stored and shown with the subscription")
	asJSON := command.JSONFlag(cmd.Flags())
	cmd.RunE = a.onSubscription(asJSON, "Paused %s.", func(ctx context.Context, id string) (client.Subscription, *client.Response, error) {
		return a.Client.PauseSubscription(ctx, id, *reason)
	})
	return cmd
}

func (a *commands) subscriptionsResume() *cobra.Command {
	cmd := &cobra.Command{
		Use: "resume <subscription>", Short: "Continue a paused subscription", Args: cobra.ExactArgs(1), Example: "  platform subscriptions resume sub_1…",
	}
	asJSON := command.JSONFlag(cmd.Flags())
	cmd.RunE = a.onSubscription(asJSON, "Resumed %s.", func(ctx context.Context, id string) (client.Subscription, *client.Response, error) {
		return a.Client.ResumeSubscription(ctx, id)
	})
	return cmd
}

// onSubscription executes an operation on the subscription in the first argument.
func (a *commands) onSubscription(asJSON *bool, done string, do func(context.Context, string) (client.Subscription, *client.Response, error)) func(*cobra.Command, []string) error {
	return command.Run(func(ctx context.Context, args []string) error {
		sub, err := a.subscription(ctx, args[0])
		if err != nil {
			return err
		}
		_, response, err := do(ctx, sub.ID)
		if err != nil {
			return err
		}
		if *asJSON {
			return a.PrintRaw(response.Body)
		}
		a.Say(done, sub.ID)
		return nil
	})
}

func (a *commands) subscriptionsSeek() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "seek <subscription> <latest | earliest | group | time | [topic/]partition=offset...>",
		Short: "Continue a subscription at another position",
		Long: `Changes the position of all topic partitions: to the end, to the oldest records, to the
committed offsets of the group, to a time such as 2026-01-31T12:00:00Z, or to given offsets.
Topic partitions that are not named then continue with new records, and their backlog is not
delivered; the JSON of the API has "otherwise": "earliest" for their oldest records. Records
after the position are delivered again, even if they were delivered before. The subscription
must be paused, unless --restart is given.`,
		Args: cobra.MinimumNArgs(2),
		Example: `  platform subscriptions seek sub_1… earliest --restart
  platform subscriptions seek sub_1… 2026-01-31T12:00:00Z
  platform subscriptions seek sub_1… 0=1500 1=1622`,
	}
	restart := cmd.Flags().Bool("restart", false, "restart the subscription if it is not paused")
	asJSON := command.JSONFlag(cmd.Flags())
	cmd.RunE = command.Run(func(ctx context.Context, args []string) error {
		start, err := seekJSON(args[1:])
		if err != nil {
			return err
		}
		sub, err := a.subscription(ctx, args[0])
		if err != nil {
			return err
		}
		if sub.Paused == nil && !*restart {
			return command.WithHint(fmt.Errorf("%s is not paused", sub.ID), "Pause it first, or give --restart. Records after the new position are delivered again.")
		}
		position, others := strings.Join(args[1:], " "), ""
		if strings.Contains(position, "=") || strings.Contains(position, "offsets") && !strings.Contains(position, "otherwise") {
			others = " Topic partitions that are not named continue with new records; those before are not delivered."
		}
		if err := a.Confirm(fmt.Sprintf("Continue %s (%s) at %s? Records after this position are delivered again; those before it that were not delivered yet are left out.%s", sub.ID, term.Clean(sub.Source), position, others)); err != nil {
			return err
		}
		sub, response, err := a.Client.SeekSubscription(ctx, sub.ID, start, *restart)
		if err != nil {
			return err
		}
		if *asJSON {
			return a.PrintRaw(response.Body)
		}
		a.Say("Position of %s changed; it is %s.", sub.ID, sub.State)
		return nil
	})
	return cmd
}

func (a *commands) subscriptionsRecord(operation string) *cobra.Command {
	cmd := &cobra.Command{
		Use: operation + " <subscription> [topic/partition]", Args: cobra.RangeArgs(1, 2),
		Example: fmt.Sprintf("  platform subscriptions %s sub_1…\n  platform subscriptions %[1]s sub_1… orders/3", operation),
	}
	done := "Retrying %s."
	if operation == "skip" {
		cmd.Short, done = "Skip a record that blocks a topic partition", "Skipped %s."
		cmd.Long = "Skips the record that blocks a topic partition, and continues after it. Without a topic partition, the records of all blocked ones are skipped."
	} else {
		cmd.Short = "Retry a record that blocks a topic partition"
		cmd.Long = "Retries the record that blocks a topic partition. Without a topic partition, the records of all blocked ones are retried."
	}
	cmd.RunE = command.Run(func(ctx context.Context, args []string) error {
		sub, err := a.subscription(ctx, args[0])
		if err != nil {
			return err
		}
		blocked, err := blockedPartitions(&sub, args[1:])
		if err != nil {
			return err
		}
		if operation == "skip" {
			if err := a.Confirm(fmt.Sprintf("Leave out %s of %s?", units.Counted(len(blocked), "record"), sub.ID)); err != nil {
				return err
			}
		}
		for _, p := range blocked {
			if err := a.Client.OnRecord(ctx, sub.ID, operation, p.Topic, p.Partition, p.Blocked.Offset); err != nil {
				return err
			}
			a.Say(done, fmt.Sprintf("offset %d of %s/%d", p.Blocked.Offset, term.Clean(p.Topic), p.Partition))
		}
		return nil
	})
	return cmd
}

// blockedPartitions returns the blocked topic partitions, or the named one.
func blockedPartitions(sub *client.Subscription, name []string) ([]client.TopicPartition, error) {
	var blocked []client.TopicPartition
	for _, p := range sub.Partitions {
		if p.Blocked != nil && (len(name) == 0 || name[0] == fmt.Sprintf("%s/%d", p.Topic, p.Partition)) {
			blocked = append(blocked, p)
		}
	}
	if len(blocked) == 0 {
		return nil, command.WithHint(fmt.Errorf("no record blocks %s", strings.Join(append([]string{sub.ID}, name...), " ")), "`platform subscriptions describe "+sub.ID+"` shows the topic partitions.")
	}
	return blocked, nil
}

func (a *commands) subscriptionsDelete() *cobra.Command {
	cmd := &cobra.Command{
		Use: "delete <subscription>", Aliases: []string{"rm"}, Short: "Delete a subscription", Args: cobra.ExactArgs(1),
		Long: "Deletes a subscription once the records in flight are delivered. Invocations continue.", Example: "  platform subscriptions delete sub_1…",
	}
	force := cmd.Flags().Bool("force", false, "do not wait for records in flight")
	cmd.RunE = command.Run(func(ctx context.Context, args []string) error {
		sub, err := a.subscription(ctx, args[0])
		if err != nil {
			return err
		}
		if err := a.Confirm(fmt.Sprintf("Delete %s (%s to %s)?", sub.ID, term.Clean(sub.Source), term.Clean(sub.Sink))); err != nil {
			return err
		}
		if err := a.Client.DeleteSubscription(ctx, sub.ID, *force); err != nil {
			return err
		}
		a.Say("Deleting %s.", sub.ID)
		return nil
	})
	return cmd
}
