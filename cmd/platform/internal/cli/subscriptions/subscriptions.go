package subscriptions

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
)

const subscriptionHint = "`platform subscriptions list` shows the subscriptions."

// commands is the receiver of the commands of this package.
type commands struct{ *command.App }

// Command returns the command subscriptions.
func Command(app *command.App) *cobra.Command {
	a := &commands{app}
	return command.Group(&cobra.Command{
		Use:     "subscriptions",
		Aliases: []string{"subscription", "sub", "subs"},
		Short:   "Deliver the records of Kafka topics to handlers",
		Long: `A subscription reads topics of a Kafka cluster and calls a handler with each record, exactly once.
` + "`platform kafka-clusters create`" + ` adds the cluster first; ` + "`platform docs events`" + ` is a tutorial.

A subscription is named by its id, or by its source or sink if only one subscription has it.`,
	}, a.subscriptionsCreate(), a.subscriptionsList(), a.subscriptionsDescribe(), a.subscriptionsEdit(), a.subscriptionsPause(), a.subscriptionsResume(),
		a.subscriptionsSeek(), a.subscriptionsShowRecord(), a.subscriptionsRecord("skip"), a.subscriptionsRecord("retry"), a.deadLetters(), a.subscriptionsDelete())
}

// subscriptionFlags are the settings of a subscription.
type subscriptionFlags struct {
	flags                                                                       *pflag.FlagSet
	ordering, onError, deadLetterTopic, tombstones, onRecreate, scope, limitKey string
	headers                                                                     []string
	maxInFlight                                                                 uint32
}

func (f *subscriptionFlags) bind(flags *pflag.FlagSet) {
	f.flags = flags
	flags.SortFlags = false
	flags.StringVar(&f.ordering, "ordering", "", "key (default): in order per record key; partition: one record of a topic partition at a time; none")
	flags.StringVar(&f.onError, "on-error", "", "treatment of records that cannot be delivered: block (default), skip or dead-letter")
	flags.StringVar(&f.deadLetterTopic, "dead-letter-topic", "", "topic for --on-error dead-letter; {topic} stands for the topic of the record; without it, the server keeps these records")
	flags.StringVar(&f.tombstones, "tombstones", "", "treatment of records without a value: deliver (default) or skip")
	flags.StringVar(&f.onRecreate, "on-recreate", "", "treatment of a topic that is deleted and created again: error (default) stops until a seek, earliest reads the new topic")
	flags.StringSliceVar(&f.headers, "headers", nil, "record headers that handlers receive, separated by commas; * for all (default), none for none")
	flags.StringVar(&f.scope, "scope", "", "scope of the invocations; {topic}, {partition}, {key} and {header:<name>} stand for parts of the record")
	flags.StringVar(&f.limitKey, "limit-key", "", "limit key of the invocations, with the same placeholders")
	flags.Uint32Var(&f.maxInFlight, "max-in-flight", 0, "records of a topic partition that are handed over and not acknowledged, at most (default 1000)")
}

// request returns the settings that were given.
func (f *subscriptionFlags) request() client.SubscriptionRequest {
	var r client.SubscriptionRequest
	for name, field := range map[string]struct {
		to    **string
		value *string
	}{
		"ordering": {&r.Ordering, &f.ordering}, "on-error": {&r.OnError, &f.onError}, "dead-letter-topic": {&r.DeadLetterTopic, &f.deadLetterTopic},
		"tombstones": {&r.Tombstones, &f.tombstones}, "on-recreate": {&r.OnRecreate, &f.onRecreate}, "scope": {&r.Scope, &f.scope}, "limit-key": {&r.LimitKey, &f.limitKey},
	} {
		if f.flags.Changed(name) {
			*field.to = field.value
		}
	}
	if f.flags.Changed("headers") {
		headers := f.headers
		if len(headers) == 1 && headers[0] == "none" {
			headers = []string{}
		}
		r.Headers = &headers
	}
	if f.flags.Changed("max-in-flight") {
		r.MaxInFlight = &f.maxInFlight
	}
	return r
}

func (a *commands) subscriptionsCreate() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create <source> <sink> [property=value]...",
		Short: "Create a subscription",
		Long: `Creates a subscription. The source is kafka://<cluster>/<topic>, with several topics separated by
commas, or kafka://<cluster> with --topic-pattern. The sink is service://<service>/<handler>.
Properties of Kafka clients, under the names of librdkafka, override those of the cluster.`,
		Args: cobra.MinimumNArgs(2),
		Example: `  platform subscriptions create kafka://main/orders service://Orders/add
  platform subscriptions create kafka://main/orders service://Orders/add --start earliest --on-error dead-letter --dead-letter-topic {topic}.dlq
  platform subscriptions create kafka://main/orders service://Orders/add group.id=billing --start group --check`,
	}
	var settings subscriptionFlags
	settings.bind(cmd.Flags())
	pattern := cmd.Flags().String("topic-pattern", "", "regular expression of the topics to read, also of later ones")
	start := cmd.Flags().String("start", "", "latest (default: records produced from now on), earliest, group, a time such as 2026-01-31T12:00:00Z, or the JSON of the API")
	file := propertiesFlag(cmd.Flags())
	check := cmd.Flags().Bool("check", false, "fail if the brokers cannot be reached or do not know the topics")
	edit := editFlag(cmd.Flags())
	asJSON := command.JSONFlag(cmd.Flags())
	cmd.RunE = command.Run(func(ctx context.Context, args []string) error {
		options, err := a.properties(*file, args[2:])
		if err != nil {
			return err
		}
		create := func(sink string, options map[string]string) error {
			r := settings.request()
			r.Source, r.Sink = &args[0], &sink
			if len(options) > 0 {
				r.Options = &options
			}
			if *pattern != "" {
				r.TopicPattern = pattern
			}
			if *start != "" {
				r.Start = startJSON(*start)
			}
			sub, response, err := a.Client.CreateSubscription(ctx, r, *check)
			if err != nil {
				return err
			}
			if *asJSON {
				return a.PrintRaw(response.Body)
			}
			a.Say("Created subscription %s. `platform subscriptions describe %[1]s --watch` shows its progress.", sub.ID)
			a.showSubscription(&sub)
			return nil
		}
		if *edit {
			return a.editSettings(ctx, &settings, usualSettings, args[1], options, create)
		}
		return create(args[1], options)
	})
	return cmd
}

// startJSON returns a start as the API reads it.
func startJSON(text string) json.RawMessage {
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		return json.RawMessage(text)
	}
	var value any = text
	if _, err := time.Parse(time.RFC3339Nano, text); err == nil {
		value = map[string]string{"timestamp": text}
	}
	data, err := json.Marshal(value)
	if err != nil {
		panic(err) // a text is always encoded
	}
	return data
}

// seekJSON returns the start that arguments describe: that of startJSON, or
// [<topic>/]<partition>=<offset> several times.
func seekJSON(args []string) (json.RawMessage, error) {
	if len(args) == 1 && (!strings.Contains(args[0], "=") || strings.HasPrefix(strings.TrimSpace(args[0]), "{")) {
		return startJSON(args[0]), nil
	}
	offsets := map[string]any{}
	for _, arg := range args {
		name, value, ok := strings.Cut(arg, "=")
		offset, err := strconv.ParseInt(value, 10, 64)
		if !ok || err != nil {
			return nil, command.UsageError(fmt.Sprintf("%q is not [<topic>/]<partition>=<offset>", arg))
		}
		topic, partition, hasTopic := strings.Cut(name, "/")
		known, given := offsets[topic]
		byPartition, nested := known.(map[string]int64)
		_, twice := byPartition[partition]
		switch {
		case twice, given && (!nested || !hasTopic):
			return nil, command.UsageError(fmt.Sprintf("%q is a second offset of the same partition", arg))
		case !hasTopic:
			offsets[name] = offset
		case !given:
			offsets[topic] = map[string]int64{partition: offset}
		default:
			byPartition[partition] = offset
		}
	}
	return json.Marshal(map[string]any{"offsets": offsets})
}

func (a *commands) subscriptionsEdit() *cobra.Command {
	cmd := &cobra.Command{
		Use: "edit <subscription> [property=value]...", Aliases: []string{"patch"}, Short: "Change settings of a subscription",
		Long: "Changes the settings that are given. The source cannot be changed; `platform subscriptions seek` changes the position.",
		Args: cobra.MinimumNArgs(1),
		Example: `  platform subscriptions edit sub_1… --on-error skip --max-in-flight 100
  platform subscriptions edit sub_1… client.rack=eu-1 --unset isolation.level`,
	}
	var settings subscriptionFlags
	settings.bind(cmd.Flags())
	sink := cmd.Flags().String("sink", "", "another handler: service://<service>/<handler>")
	unset := cmd.Flags().StringSlice("unset", nil, "remove these properties (separated by commas)")
	edit := editFlag(cmd.Flags())
	asJSON := command.JSONFlag(cmd.Flags())
	cmd.RunE = command.Run(func(ctx context.Context, args []string) error {
		changed, err := a.properties("", args[1:])
		if err != nil {
			return err
		}
		current, err := a.subscription(ctx, args[0])
		if err != nil {
			return err
		}
		options := ownOptions(&current)
		maps.Copy(options, changed)
		for _, name := range *unset {
			delete(options, name)
		}
		change := func(sink string, options map[string]string) error {
			r := settings.request()
			if sink != "" && (!*edit || sink != current.Sink) {
				r.Sink = &sink
			}
			if !maps.Equal(options, ownOptions(&current)) || len(changed)+len(*unset) > 0 {
				r.Options = &options
			}
			if *edit && reflect.DeepEqual(r, client.SubscriptionRequest{}) {
				a.Say("Nothing was changed.")
				return nil
			}
			sub, response, err := a.Client.EditSubscription(ctx, current.ID, r)
			if err != nil {
				return err
			}
			if *asJSON {
				return a.PrintRaw(response.Body)
			}
			a.showSubscription(&sub)
			return nil
		}
		if *edit {
			return a.editSettings(ctx, &settings, settingsOf(&current), cmp.Or(*sink, current.Sink), options, change)
		}
		return change(*sink, options)
	})
	return cmd
}

// ownOptions are the options of a subscription without those that the server adds.
func ownOptions(s *client.Subscription) map[string]string {
	options := maps.Clone(s.Options)
	if options == nil {
		options = map[string]string{}
	}
	maps.DeleteFunc(options, func(name, value string) bool {
		return name == "group.id" && value == s.ID || name == "client.id" && value == "platform"
	})
	return options
}

// subscription returns the subscription with an ID, or the only one with a source or sink.
func (a *commands) subscription(ctx context.Context, name string) (client.Subscription, error) {
	if !strings.Contains(name, "://") {
		sub, _, err := a.Client.Subscription(ctx, name)
		return sub, a.subscriptionNotFound(ctx, err, name)
	}
	list, _, err := a.Client.Subscriptions(ctx, "", "")
	if err != nil {
		return client.Subscription{}, err
	}
	var found []client.Subscription
	for _, sub := range list.Subscriptions {
		if sub.Source == name || sub.Sink == name {
			found = append(found, sub)
		}
	}
	if len(found) == 0 {
		return client.Subscription{}, command.WithHint(fmt.Errorf("no subscription has the source or sink %s", name), subscriptionHint)
	}
	if len(found) > 1 {
		return client.Subscription{}, command.WithHint(fmt.Errorf("%d subscriptions have the source or sink %s; name one by its id", len(found), name), subscriptionHint)
	}
	sub, _, err := a.Client.Subscription(ctx, found[0].ID)
	return sub, err
}

// subscriptionNotFound adds to the error of an unknown or malformed id which subscription reads the
// topic, or calls the service, of that name.
func (a *commands) subscriptionNotFound(ctx context.Context, err error, name string) error {
	response, ok := errors.AsType[*client.APIError](err)
	if !ok || response.Status != http.StatusNotFound && response.Status != http.StatusBadRequest {
		return err
	}
	hint := subscriptionHint
	list, _, listed := a.Client.Subscriptions(ctx, "", "")
	if listed == nil {
		names := make(map[string]string)
		var candidates []string
		for _, sub := range list.Subscriptions {
			topic := sub.Source[strings.LastIndexByte(sub.Source, '/')+1:]
			_, sink, _ := strings.Cut(sub.Sink, "://")
			serviceName, _, _ := strings.Cut(sink, "/")
			for _, candidate := range []string{topic, sink, serviceName} {
				names[candidate] = sub.ID + " (" + sub.Source + " to " + sub.Sink + ")"
				candidates = append(candidates, candidate)
			}
		}
		if near := command.Similar(name, candidates); near != "" {
			hint = "Did you mean " + term.Clean(names[near]) + "? " + hint
		}
	}
	return command.WithHint(err, hint)
}
