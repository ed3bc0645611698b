package subscriptions

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"platform/admin/rest"
	"platform/flowcontrol"
	"platform/internal/errcode"
	"platform/internal/subscription"
)

// startText is the start of a subscription in JSON: a name, or an object.
type startText = json.RawMessage

// subscriptionRequest is the body of POST and PATCH of subscriptions. Nil fields are not set or not
// changed.
type subscriptionRequest struct {
	Source          *string            `json:"source"`
	Topics          []string           `json:"topics"`
	TopicPattern    *string            `json:"topic_pattern"`
	Sink            *string            `json:"sink"`
	Options         *map[string]string `json:"options"`
	Start           startText          `json:"start"`
	Ordering        *string            `json:"ordering"`
	OnError         *string            `json:"on_error"`
	DeadLetterTopic *string            `json:"dead_letter_topic"`
	Tombstones      *string            `json:"tombstones"`
	OnRecreate      *string            `json:"on_recreate"`
	Headers         *[]string          `json:"headers"`
	Scope           *string            `json:"scope"`
	LimitKey        *string            `json:"limit_key"`
	MaxInFlight     *uint32            `json:"max_in_flight"`
}

// create converts a request to a subscription.
func (r *subscriptionRequest) create() (sub subscription.Subscription, err error) {
	if r.Source == nil || r.Sink == nil {
		return sub, errcode.New(errcode.META0009, "a subscription needs the fields 'source' (kafka://<cluster>/<topic>) and 'sink' (service://<service>/<handler>)")
	}
	if sub.Source, err = subscription.ParseSource(*r.Source); err != nil {
		return sub, errcode.InField(err, "source")
	}
	pattern := ""
	if r.TopicPattern != nil {
		pattern = *r.TopicPattern
	}
	if sub.Source, err = sub.Source.WithTopics(r.Topics, pattern); err != nil {
		return sub, errcode.InField(err, "source")
	}
	if err := sub.Source.Check(); err != nil {
		return sub, errcode.InField(err, "source")
	}
	sub.AllHeaders, sub.MaxInFlight = true, subscription.DefaultMaxInFlight
	if err := r.edit(&sub); err != nil {
		return sub, err
	}
	if r.Start != nil && !isNull(r.Start) {
		sub.Start, err = parseStart(r.Start, &sub.Source)
	}
	return sub, err
}

// edit applies the fields of a request to a subscription.
func (r *subscriptionRequest) edit(sub *subscription.Subscription) (err error) {
	if r.Sink != nil {
		if sub.Sink, err = subscription.ParseSink(*r.Sink); err != nil {
			return errcode.InField(err, "sink")
		}
	}
	if r.Options != nil {
		if err := rejectLocalFiles(*r.Options); err != nil {
			return err
		}
		if sub.Properties, err = subscription.Unredact(*r.Options, sub.Properties); err != nil {
			return err
		}
	}
	if err := r.editTexts(sub); err != nil {
		return err
	}
	if r.Headers != nil {
		sub.AllHeaders = slices.Equal(*r.Headers, []string{allHeaders})
		sub.Headers = nil
		if !sub.AllHeaders {
			sub.Headers = subscription.NormalHeaders(*r.Headers)
		}
	}
	if r.MaxInFlight != nil {
		sub.MaxInFlight = *r.MaxInFlight
	}
	return nil
}

// allHeaders selects all headers of records.
const allHeaders = "*"

func (r *subscriptionRequest) editTexts(sub *subscription.Subscription) (err error) {
	for _, field := range []struct {
		value *string
		set   func(string) error
	}{
		{r.Ordering, func(s string) error { sub.Ordering, err = subscription.ParseOrdering(s); return err }},
		{r.OnError, func(s string) error {
			sub.OnError, err = subscription.ParseOnError(s)
			if sub.OnError != subscription.DeadLetters {
				sub.DeadLetterTopic = "" // a topic in the request is rejected
			}
			return err
		}},
		{r.DeadLetterTopic, func(s string) error { sub.DeadLetterTopic = s; return nil }},
		{r.Tombstones, func(s string) error { sub.Tombstones, err = subscription.ParseTombstones(s); return err }},
		{r.OnRecreate, func(s string) error { sub.OnRecreate, err = subscription.ParseOnRecreate(s); return err }},
		{r.Scope, func(s string) error { return setTemplate(&sub.Scope, "scope", s) }},
		{r.LimitKey, func(s string) error { return setTemplate(&sub.LimitKey, "limit_key", s) }},
	} {
		if field.value == nil {
			continue
		}
		if err := field.set(*field.value); err != nil {
			return err
		}
	}
	return nil
}

var placeholder = regexp.MustCompile(`\{[^{}]*\}`)

func setTemplate(into *subscription.Template, field, text string) error {
	t, err := subscription.ParseTemplate(text)
	if err != nil {
		return errcode.New(errcode.META0009, "%s: %v", field, err).In(field)
	}
	allowed := "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"
	if field == "limit_key" {
		allowed += "/"
	}
	if never := strings.Trim(placeholder.ReplaceAllString(text, ""), allowed); never != "" {
		return errcode.New(errcode.META0009, "%s: %s has characters that are not allowed there: %s", field, rest.Shorten(text), rest.Shorten(never)).In(field)
	}
	if shortest := placeholder.ReplaceAllString(text, "x"); text != "" && !possible(field, shortest) {
		return errcode.New(errcode.META0009, "%s: %s is invalid for every record: expected %s of 1 to %d characters", field, rest.Shorten(text),
			map[string]string{"scope": "a scope", "limit_key": "one or two parts, separated by '/', each"}[field], flowcontrol.MaxPartBytes).In(field)
	}
	*into = t
	return nil
}

// possible reports whether a text can be a scope or limit key.
func possible(field, text string) bool {
	if field == "scope" {
		return flowcontrol.CheckScope(text) == nil
	}
	_, err := flowcontrol.ParseLimitKey(text)
	return err == nil
}

func isNull(raw json.RawMessage) bool { return string(bytes.TrimSpace(raw)) == "null" }

// StartObject is the object form of a start.
type StartObject struct {
	From      string                     `json:"from"`
	Timestamp json.RawMessage            `json:"timestamp"`
	Offsets   map[string]json.RawMessage `json:"offsets"`
	Otherwise string                     `json:"otherwise"`
}

var startKinds = map[string]subscription.StartKind{
	"latest": subscription.StartLatest, "earliest": subscription.StartEarliest, "timestamp": subscription.StartTimestamp,
	"offsets": subscription.StartOffsets, "group": subscription.StartGroup,
}

// parseStart parses the start of a subscription.
func parseStart(raw startText, source *subscription.Source) (start subscription.Start, err error) {
	var o StartObject
	var name string
	if json.Unmarshal(raw, &name) == nil {
		o.From = name
	} else if err := json.Unmarshal(raw, &o); err != nil || isNull(raw) {
		return start, rest.Unprocessable("the field 'start' must be latest, earliest, group, or an object with from, timestamp, offsets and otherwise")
	} else if err := rest.CheckFields(raw, reflect.TypeFor[StartObject](), "start."); err != nil {
		return start, err
	}
	switch {
	case o.From == "" && o.Timestamp != nil && o.Offsets == nil:
		o.From = "timestamp"
	case o.From == "" && o.Offsets != nil && o.Timestamp == nil:
		o.From = "offsets"
	}
	start.Kind = startKinds[o.From]
	if start.Kind == 0 {
		return start, badStart("from is %s, expected latest, earliest, timestamp, offsets or group", rest.Shorten(o.From))
	}
	if (o.Timestamp != nil) != (start.Kind == subscription.StartTimestamp) {
		return start, badStart("a timestamp and from \"timestamp\" belong together")
	}
	if (o.Offsets != nil) != (start.Kind == subscription.StartOffsets) {
		return start, badStart("offsets and from \"offsets\" belong together")
	}
	if start.Timestamp, err = startTime(o.Timestamp); err != nil {
		return start, err
	}
	if start.Offsets, err = startOffsets(o.Offsets, source); err != nil {
		return start, err
	}
	return start, setOtherwise(&start, o.Otherwise)
}

func badStart(format string, args ...any) error {
	return errcode.New(errcode.META0009, "start: %s", fmt.Sprintf(format, args...)).In("start")
}

func setOtherwise(start *subscription.Start, text string) error {
	partial := start.Kind == subscription.StartOffsets || start.Kind == subscription.StartGroup
	switch {
	case text == "" && partial:
		start.Otherwise = subscription.StartLatest
	case text == "":
	case !partial:
		return badStart("otherwise is for offsets and group only")
	default:
		start.Otherwise = startKinds[text]
		if start.Otherwise != subscription.StartLatest && start.Otherwise != subscription.StartEarliest {
			return badStart("otherwise is %s, expected latest or earliest", rest.Shorten(text))
		}
	}
	return nil
}

// startTime parses a time in RFC 3339 or milliseconds since 1970.
func startTime(raw json.RawMessage) (time.Time, error) {
	if raw == nil {
		return time.Time{}, nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		at, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			return at, badStart("the timestamp %s is not a time such as 2026-01-31T12:00:00Z", rest.Shorten(text))
		}
		return at.UTC().Truncate(time.Millisecond), nil
	}
	ms, err := strconv.ParseInt(string(bytes.TrimSpace(raw)), 10, 64)
	if err != nil {
		return time.Time{}, badStart("the timestamp is neither a time such as 2026-01-31T12:00:00Z nor a number of milliseconds since 1970")
	}
	return time.UnixMilli(ms).UTC(), nil
}

// startOffsets parses offsets by partition, or by topic and partition.
func startOffsets(fields map[string]json.RawMessage, source *subscription.Source) (list []subscription.TopicOffsets, err error) {
	byTopic, single := map[string]map[string]json.RawMessage{}, map[string]json.RawMessage{}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		var nested map[string]json.RawMessage
		if json.Unmarshal(fields[name], &nested) == nil && nested != nil {
			byTopic[name] = nested
			continue
		}
		single[name] = fields[name]
	}
	if len(single) > 0 {
		if len(byTopic) > 0 || len(source.Topics) != 1 {
			return nil, badStart("the source has not exactly one topic, so offsets are written as {\"<topic>\": {\"<partition>\": <offset>}}")
		}
		byTopic[source.Topics[0]] = single
	}
	for _, topic := range slices.Sorted(maps.Keys(byTopic)) {
		if len(byTopic[topic]) == 0 {
			return nil, badStart("the topic %s has no offsets", rest.Shorten(topic))
		}
		offsets := subscription.TopicOffsets{Topic: topic}
		for number, raw := range byTopic[topic] {
			partition, err := strconv.ParseUint(number, 10, 31)
			offset, err2 := strconv.ParseInt(string(bytes.TrimSpace(raw)), 10, 64)
			if err != nil || err2 != nil || offset < 0 || offset == math.MaxInt64 {
				return nil, badStart("offsets have an entry %q: %s, expected a partition number and an offset from 0", number, rest.Shorten(string(raw)))
			}
			offsets.Offsets = append(offsets.Offsets, subscription.PartitionOffset{Partition: int32(partition), Offset: offset})
		}
		slices.SortFunc(offsets.Offsets, func(a, b subscription.PartitionOffset) int { return int(a.Partition - b.Partition) })
		list = append(list, offsets)
	}
	return list, nil
}
