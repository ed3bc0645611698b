package subscriptions

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
	"platform/internal/units"
)

func (a *commands) subscriptionsList() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List subscriptions with their state and lag", Args: cobra.NoArgs,
		Example: "  platform subscriptions list --watch\n  platform subscriptions list --sink service://Orders/add",
	}
	source := cmd.Flags().String("source", "", "only those with this source")
	sink := cmd.Flags().String("sink", "", "only those with this sink")
	asJSON := command.JSONFlag(cmd.Flags())
	a.Shows(cmd, func(ctx context.Context, _ []string) error {
		list, response, err := a.Client.Subscriptions(ctx, *source, *sink)
		if err != nil {
			return err
		}
		if *asJSON {
			return a.PrintRaw(response.Body)
		}
		if len(list.Subscriptions) == 0 {
			a.Say("No subscriptions. `platform subscriptions create` creates one.")
			return nil
		}
		rows := make([][]string, len(list.Subscriptions))
		for i := range list.Subscriptions {
			s := &list.Subscriptions[i]
			rows[i] = []string{s.ID, term.Clean(s.Source), term.Clean(s.Sink), a.streamState(s.State), lagText(s.LagRecords), lagAge(s.LagRecords, s.LagSeconds), strconv.Itoa(s.TopicPartitions), strconv.Itoa(s.Blocked)}
		}
		a.Print.Table("", []string{"ID", "SOURCE", "SINK", "STATE", "LAG", "LAG-TIME", "PARTITIONS", "BLOCKED"}, rows)
		a.saySilent(list.Silent)
		return nil
	})
	return cmd
}

// saySilent prints why data are missing: the nodes that did not report, and the partitions without
// a leader.
func (a *commands) saySilent(reasons []string) {
	for _, reason := range reasons {
		a.Say("Incomplete, no report from %s", term.Clean(reason))
	}
}

// streamState colours a state.
func (a *commands) streamState(state string) string {
	switch state {
	case "running":
		return a.Print.Green(state)
	case "blocked", "error", "orphaned":
		return a.Print.Red(state)
	}
	return a.Print.Yellow(state)
}

func lagText(lag *int64) string {
	if lag == nil {
		return "-"
	}
	return strconv.FormatInt(*lag, 10)
}

func lagTime(seconds *float64) string {
	if seconds == nil {
		return "-"
	}
	return term.Duration(time.Duration(*seconds * float64(time.Second)).Round(100 * time.Millisecond))
}

// lagAge is the age of the oldest record that is not delivered, which is not known while a
// subscription is paused.
func lagAge(records *int64, seconds *float64) string {
	if records == nil || *records > 0 && seconds != nil && *seconds == 0 {
		return "-"
	}
	return lagTime(seconds)
}

func (a *commands) subscriptionsDescribe() *cobra.Command {
	return command.ViewResponse(a.App, &cobra.Command{
		Use: "describe <subscription>", Aliases: []string{"get", "show"}, Short: "Show a subscription and its topic partitions", Args: cobra.ExactArgs(1),
		Example: "  platform subscriptions describe sub_1… --watch\n  platform subscriptions describe kafka://main/orders",
	}, func(ctx context.Context, args []string) (client.Subscription, *client.Response, error) {
		sub, err := a.subscription(ctx, args[0])
		if err != nil {
			return sub, nil, err
		}
		return a.Client.Subscription(ctx, sub.ID)
	}, func(_ context.Context, sub client.Subscription) error {
		a.showSubscription(&sub)
		return nil
	})
}

func (a *commands) showSubscription(s *client.Subscription) {
	state := a.streamState(s.State)
	if s.Reason != "" {
		state += " (" + term.Clean(s.Reason) + ")"
	}
	since := ""
	if !s.Since.IsZero() {
		since = a.Print.Time(s.Since)
	}
	paused := ""
	if s.Paused != nil {
		paused = fmt.Sprintf("%s by %s", a.Print.Time(s.Paused.At), term.Clean(s.Paused.By))
		if s.Paused.Reason != "" {
			paused += ": " + term.Clean(s.Paused.Reason)
		}
	}
	a.Print.Fields("",
		term.Field{Name: "ID", Value: s.ID},
		term.Field{Name: "Source", Value: term.Clean(s.Source)},
		term.Field{Name: "Sink", Value: term.Clean(s.Sink)},
		term.Field{Name: "State", Value: state},
		term.Field{Name: "Since", Value: since},
		term.Field{Name: "Cause", Value: term.Clean(s.Message)},
		term.Field{Name: "Paused", Value: paused},
		term.Field{Name: "Lag", Value: lagFields(s)},
		term.Field{Name: "Dead letters", Value: deadLetterText(s)},
		term.Field{Name: "Start", Value: startText(&s.Start)},
		term.Field{Name: "Incarnation", Value: strconv.FormatUint(s.Incarnation, 10)},
		term.Field{Name: "Ordering", Value: s.Ordering},
		term.Field{Name: "On error", Value: onErrorText(s)},
		term.Field{Name: "Tombstones", Value: s.Tombstones},
		term.Field{Name: "On recreate", Value: s.OnRecreate},
		term.Field{Name: "Headers", Value: term.Clean(strings.Join(s.Headers, ", "))},
		term.Field{Name: "Scope", Value: term.Clean(s.Scope)},
		term.Field{Name: "Limit key", Value: term.Clean(s.LimitKey)},
		term.Field{Name: "Max in flight", Value: strconv.FormatUint(uint64(s.MaxInFlight), 10)},
		term.Field{Name: "Options", Value: propertyText(s.Options)},
		term.Field{Name: "Created", Value: a.Print.Time(s.CreatedAt)},
	)
	a.showTopicPartitions(s.Partitions)
	a.showNotices(s.Info)
	a.saySilent(s.Silent)
}

func (a *commands) showNotices(notices []client.Notice) {
	for _, n := range notices {
		a.Say("Note: %s", term.Clean(n.Message))
	}
}

func lagFields(s *client.Subscription) string {
	if s.LagRecords == nil {
		return ""
	}
	text := units.Counted(int(*s.LagRecords), "record")
	if age := lagAge(s.LagRecords, s.LagSeconds); age != "-" {
		text += ", " + age
	}
	return text
}

func startText(s *client.SubscriptionStart) string {
	text := s.From
	if !s.Timestamp.IsZero() {
		text += " " + s.Timestamp.Format(time.RFC3339Nano)
	}
	if s.Otherwise != "" {
		text += ", otherwise " + s.Otherwise
	}
	if !s.Resolved {
		text += " (not resolved yet)"
	}
	return text
}

func propertyText(properties map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		parts = append(parts, term.Clean(name+"="+properties[name]))
	}
	return strings.Join(parts, ", ")
}

func (a *commands) showTopicPartitions(list []client.TopicPartition) {
	if len(list) == 0 {
		return
	}
	a.Print.Println()
	a.Print.Heading("Topic partitions")
	rows := make([][]string, len(list))
	blocked := false
	for i := range list {
		p := &list[i]
		cause := p.Message
		if p.Blocked != nil {
			blocked = true
			cause = fmt.Sprintf("offset %d: %s: %s", p.Blocked.Offset, p.Blocked.Reason, p.Blocked.Message)
		} else if cause == "" && p.LastError != "" {
			cause = "last error: " + p.LastError
		}
		rows[i] = []string{
			fmt.Sprintf("%s/%d", term.Clean(p.Topic), p.Partition), a.streamState(p.State), command.NodeID(p.Node), strconv.FormatInt(p.Position, 10),
			lagText(p.EndOffset), lagText(p.LagRecords), lagAge(p.LagRecords, &p.LagSeconds), strconv.FormatUint(uint64(p.InFlight), 10),
			strconv.FormatUint(p.Skipped+p.DeadLettered, 10), command.OrDash(term.Clean(cause)),
		}
	}
	a.Print.Table("", []string{"PARTITION", "STATE", "NODE", "POSITION", "END", "LAG", "LAG-TIME", "IN-FLIGHT", "LEFT-OUT", "CAUSE"}, rows)
	if blocked {
		a.Say("`platform subscriptions record <subscription>` shows blocked records, `retry` tries them again, `skip` leaves them out.")
	}
}
