package subscriptions

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
)

func (a *commands) subscriptionsShowRecord() *cobra.Command {
	cmd := &cobra.Command{
		Use: "record <subscription> [topic/partition[/offset]]", Short: "Show a record with its key, value and headers", Args: cobra.RangeArgs(1, 2),
		Long: `Shows the record that blocks a topic partition, or the one at an offset, if the broker still has
it. Without a topic partition, it shows the records of all that are blocked. Long keys, values
and headers are cut.`,
		Example: "  platform subscriptions record kafka://main/orders\n  platform subscriptions record kafka://main/orders orders/3/1500",
	}
	asJSON := command.JSONFlag(cmd.Flags())
	cmd.RunE = command.Run(func(ctx context.Context, args []string) error {
		sub, err := a.subscription(ctx, args[0])
		if err != nil {
			return err
		}
		places, err := recordPlaces(&sub, args[1:])
		if err != nil {
			return err
		}
		for i, p := range places {
			record, response, err := a.Client.Record(ctx, sub.ID, p.topic, p.partition, p.offset)
			switch {
			case err != nil:
				return err
			case *asJSON:
				if err := a.PrintRaw(response.Body); err != nil {
					return err
				}
				continue
			case i > 0:
				a.Print.Println()
			}
			a.showRecord(&record)
		}
		return nil
	})
	return cmd
}

// place is where a record is.
type place struct {
	topic     string
	partition int32
	offset    int64
}

// recordPlaces returns the named record, or those that block.
func recordPlaces(sub *client.Subscription, name []string) ([]place, error) {
	if len(name) == 1 {
		if topic, partition, offset, err := recordPlace(name[0]); err == nil {
			return []place{{topic, partition, offset}}, nil
		}
	}
	blocked, err := blockedPartitions(sub, name)
	if err != nil {
		return nil, err
	}
	places := make([]place, len(blocked))
	for i, p := range blocked {
		places[i] = place{p.Topic, p.Partition, p.Blocked.Offset}
	}
	return places, nil
}

// showRecord prints a record, with further fields about it.
func (a *commands) showRecord(r *client.Record, more ...term.Field) {
	fields := append([]term.Field{
		{Name: "Record", Value: fmt.Sprintf("%s/%d/%d", term.Clean(r.Topic), r.Partition, r.Offset)},
		{Name: "Produced", Value: a.Print.Time(r.Timestamp)},
	}, more...)
	fields = append(fields, term.Field{Name: "Key", Value: recordText(r.Key, r.KeyBytes)})
	for _, h := range r.Headers {
		fields = append(fields, term.Field{Name: "Header", Value: term.Clean(h.Name) + ": " + recordText(h.Value, 0)})
	}
	a.Print.Fields("", append(fields, term.Field{Name: "Value", Value: recordText(r.Value, r.ValueBytes)})...)
}
