package subscriptions

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/client"
)

func editFlag(flags *pflag.FlagSet) *bool {
	return flags.Bool("edit", false, "open the result in an editor (EDITOR) before it is sent")
}

// editProperties calls apply with properties, after the user has edited them if edit is set.
func (a *commands) editProperties(ctx context.Context, edit bool, properties map[string]string, apply func(map[string]string) error) error {
	if !edit {
		return apply(properties)
	}
	const about = "# Properties of Kafka clients, under the names of librdkafka, a line each: name=value. Secrets that are shown as *** stay as they are.\n"
	return a.editLines(ctx, about+propertyLines(properties), apply)
}

const bootstrapServers = "bootstrap.servers"

// editLines opens lines of the form name=value in the user's editor and calls apply with what was edited.
func (a *commands) editLines(ctx context.Context, lines string, apply func(map[string]string) error) error {
	return a.EditDocument(ctx, []byte(lines), "platform-kafka-*.properties", func(edited []byte) (again bool, err error) {
		values := map[string]string{}
		if err := parseProperties(edited, values); err != nil {
			return true, err
		}
		err = apply(values)
		return command.IsMistake(err) || command.IsUsageError(err), err
	})
}

// propertyLines returns properties as parseProperties reads them.
func propertyLines(properties map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		value := properties[name]
		if strings.TrimSpace(value) != value || strings.HasPrefix(value, `"`) || strings.Contains(value, "\n") {
			value = fmt.Sprintf("%q", value)
		}
		b.WriteString(name + "=" + value + "\n")
	}
	return b.String()
}

// settingNames are the flags of subscriptionFlags, in the order of a document.
var settingNames = []string{"ordering", "on-error", "dead-letter-topic", "tombstones", "on-recreate", "headers", "scope", "limit-key", "max-in-flight"}

// usualSettings are the settings of a subscription that has no others.
var usualSettings = map[string]string{"ordering": "key", "on-error": "block", "tombstones": "deliver", "on-recreate": "error", "headers": "*", "max-in-flight": "1000"}

// settingsOf returns the settings of a subscription, as the flags take them.
func settingsOf(s *client.Subscription) map[string]string {
	return map[string]string{
		"ordering": s.Ordering, "on-error": s.OnError, "dead-letter-topic": s.DeadLetterTopic, "tombstones": s.Tombstones, "on-recreate": s.OnRecreate,
		"headers": cmp.Or(strings.Join(s.Headers, ","), "none"), "scope": s.Scope, "limit-key": s.LimitKey, "max-in-flight": strconv.FormatUint(uint64(s.MaxInFlight), 10),
	}
}

// lines returns settings as lines, with those of the flags that were given.
func (f *subscriptionFlags) lines(settings map[string]string) string {
	var b strings.Builder
	for _, name := range settingNames {
		value := settings[name]
		switch {
		case !f.flags.Changed(name):
		case name == "headers":
			value = strings.Join(f.headers, ",")
		default:
			value = f.flags.Lookup(name).Value.String()
		}
		b.WriteString(name + "=" + value + "\n")
	}
	return b.String()
}

// set sets the flag of a setting.
func (f *subscriptionFlags) set(name, value string) error {
	if name == "headers" {
		f.headers = nil // the flag adds to them
	}
	if f.flags.Set(name, value) != nil { // all others are text
		return command.UsageError(fmt.Sprintf("%s=%s is not a number", name, value))
	}
	return nil
}

// editSettings opens the settings and properties of a subscription in the user's editor. It sets the flags of the
// settings that were changed, and calls apply with the properties and the sink.
func (a *commands) editSettings(ctx context.Context, f *subscriptionFlags, settings map[string]string, sink string, options map[string]string, apply func(sink string, options map[string]string) error) error {
	const about = "# A line each: name=value. Settings that are removed are not changed, properties that are removed are unset.\n"
	before := f.lines(settings)
	shown := map[string]string{}
	if err := parseProperties([]byte(before), shown); err != nil {
		return err
	}
	original := maps.Clone(shown)
	document := about + "sink=" + sink + "\n" + before + "\n# Properties of Kafka clients, which override those of the cluster.\n" + propertyLines(options)
	return a.editLines(ctx, document, func(values map[string]string) error {
		handler := sink
		if given, ok := values["sink"]; ok {
			handler = given
			delete(values, "sink")
		}
		for _, name := range settingNames {
			value, ok := values[name]
			delete(values, name)
			if !ok { // an earlier version of the text may have changed it
				value = original[name]
			}
			if value == shown[name] {
				continue
			}
			if err := f.set(name, value); err != nil {
				return err
			}
			shown[name] = value
		}
		return apply(handler, values)
	})
}
