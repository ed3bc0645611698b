package subscription

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"platform/internal/errcode"
)

const maxPauseReason = 1000

// Check returns why a subscription cannot be stored, nil if it can. Errors have code META0009.
func (s *Subscription) Check() error {
	if err := s.Source.Check(); err != nil {
		return errcode.InField(err, "source")
	}
	if _, err := ParseSink(s.Sink.String()); err != nil {
		return errcode.InField(err, "sink")
	}
	if err := s.Options.check(); err != nil {
		return err
	}
	if err := s.checkDeadLetterTopic(); err != nil {
		return err
	}
	if err := s.Start.check(&s.Source); err != nil {
		return errcode.InField(err, "start")
	}
	n := 0
	for i := range s.Offsets {
		n += len(s.Offsets[i].Offsets)
	}
	if n > maxStartPartitions {
		return invalid("the topics of a subscription have at most %d partitions together, not %d; use several subscriptions", maxStartPartitions, n)
	}
	if s.Paused != nil && len(s.Paused.Reason) > maxPauseReason {
		return invalid("the reason has %d bytes; at most %d are allowed", len(s.Paused.Reason), maxPauseReason)
	}
	_, err := checkProperties(s.Properties, false)
	return err
}

// checkDeadLetterTopic rejects a dead-letter topic that the subscription reads: its records would
// be dead-lettered repeatedly. With a pattern, the name is known only when there is a record.
func (s *Subscription) checkDeadLetterTopic() error {
	names := s.Topics
	if s.Pattern != "" && !strings.Contains(s.DeadLetterTopic, "{topic}") {
		names = []string{""}
	}
	for _, t := range names {
		if s.DeadLetterTopic != "" && s.ReadsDeadLetters(t) {
			return invalid("dead_letter_topic %s is a topic that the subscription reads; use another one", quote(s.DeadLetterTopicOf(t))).In("dead_letter_topic")
		}
	}
	return nil
}

// DeadLetterTopicOf returns the dead-letter topic of a topic.
func (s *Subscription) DeadLetterTopicOf(topic string) string {
	return strings.ReplaceAll(s.DeadLetterTopic, "{topic}", topic)
}

// ReadsDeadLetters reports whether the subscription reads the dead-letter topic of a topic.
func (s *Subscription) ReadsDeadLetters(topic string) bool {
	return s.Matcher()(s.DeadLetterTopicOf(topic))
}

func (o *Options) check() error {
	switch {
	case int(o.Ordering) >= len(orderingNames):
		return invalid("the ordering %d is unknown", o.Ordering).In("ordering")
	case int(o.OnError) >= len(onErrorNames):
		return invalid("on_error %d is unknown", o.OnError).In("on_error")
	case int(o.OnRecreate) >= len(recreateNames):
		return invalid("on_recreate %d is unknown", o.OnRecreate).In("on_recreate")
	case int(o.Tombstones) >= len(tombstoneNames):
		return invalid("tombstones %d is unknown", o.Tombstones).In("tombstones")
	case o.OnError != DeadLetters && o.DeadLetterTopic != "":
		return invalid("dead_letter_topic needs on_error \"dead-letter\", not %q", o.OnError).In("dead_letter_topic")
	case o.MaxInFlight == 0 || o.MaxInFlight > maxMaxInFlight:
		return invalid("max_in_flight is %d, expected 1 to %d", o.MaxInFlight, maxMaxInFlight).In("max_in_flight")
	case o.Scope.IsZero() && !o.LimitKey.IsZero():
		return invalid("limit_key needs a scope").In("limit_key")
	case len(o.Headers) > maxHeaders:
		return invalid("headers has %d names; at most %d are allowed", len(o.Headers), maxHeaders).In("headers")
	case o.AllHeaders && len(o.Headers) > 0:
		return invalid("headers lists names although all headers are handed on").In("headers")
	}
	if o.DeadLetterTopic != "" {
		if o.DeadLetterTopic == "{topic}" {
			return invalid("dead_letter_topic is the topic of the record itself; use for example \"{topic}.dlq\"").In("dead_letter_topic")
		}
		if err := checkTopic(strings.ReplaceAll(o.DeadLetterTopic, "{topic}", "t")); err != nil {
			return invalid("dead_letter_topic %s: %s", quote(o.DeadLetterTopic), detail(err)).In("dead_letter_topic")
		}
	}
	for _, h := range o.Headers {
		if _, ok := HeaderName(h); !ok {
			return invalid("headers: %s cannot be the name of an HTTP header", quote(h)).In("headers")
		}
	}
	return nil
}

// NormalHeaders returns names of headers as Options has them.
func NormalHeaders(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = strings.ToLower(n)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

var (
	firstTimestamp = time.UnixMilli(0)
	lastTimestamp  = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)
)

func (s *Start) check(source *Source) error {
	switch s.Kind {
	case StartLatest, StartEarliest:
		return nil
	case StartTimestamp:
		if s.Timestamp.Before(firstTimestamp) || s.Timestamp.After(lastTimestamp) {
			return invalid("the timestamp of start is out of range; expected a time from 1970 to 9999")
		}
		return nil
	case StartOffsets:
		if len(s.Offsets) == 0 {
			return invalid("start has no offsets")
		}
	case StartGroup:
	default:
		return invalid("start %d is unknown", s.Kind)
	}
	if s.Otherwise != StartLatest && s.Otherwise != StartEarliest {
		return invalid("start of other topic partitions is %s, expected latest or earliest", quote(s.Otherwise.String()))
	}
	n := 0
	for _, t := range s.Offsets {
		if !source.Matcher()(t.Topic) {
			return invalid("start has offsets of topic %s, which the source %s does not have", quote(t.Topic), quote(source.String()))
		}
		for i, o := range t.Offsets {
			if o.Partition < 0 || o.Offset < 0 || i > 0 && o.Partition <= t.Offsets[i-1].Partition {
				return invalid("start has offset %d of partition %d, expected numbers from 0, and each partition once", o.Offset, o.Partition)
			}
		}
		n += len(t.Offsets)
	}
	if n > maxStartPartitions {
		return invalid("start has %d offsets; at most %d are allowed", n, maxStartPartitions)
	}
	return nil
}

// Check returns why a cluster cannot be stored, nil if it can. Errors have code META0009.
func (c *Cluster) Check() error {
	if err := checkClusterName(c.Name); err != nil {
		return errcode.InField(err, "name")
	}
	_, err := checkProperties(c.Properties, true)
	return err
}

// Incomplete returns what the properties lack to connect to brokers, "" if nothing. Such a cluster can be
// stored, since subscriptions can set the rest, but without a notice it fails only at the first of them.
func (c *Cluster) Incomplete() string {
	if c.Check() != nil {
		return ""
	}
	err := new(Client).secure(c.Properties)
	if err == nil {
		return ""
	}
	return "only subscriptions that set what is missing can use the cluster: " + detail(err)
}

func checkSizes(properties map[string]string) error {
	if len(properties) > maxProperties {
		return invalid("there are %d properties; at most %d are allowed", len(properties), maxProperties)
	}
	for _, name := range sortedNames(properties) {
		value := properties[name]
		if len(value) > maxPropertyBytes {
			return invalid("the property %s has %d bytes; at most %d are allowed", quote(name), len(value), maxPropertyBytes).In(name)
		}
		if !utf8.ValidString(value) || strings.ContainsFunc(value, control) {
			return invalid("the property %s has control characters or is not UTF-8", quote(name)).In(name)
		}
	}
	return nil
}

func control(r rune) bool { return r < ' ' && r != '\n' && r != '\r' && r != '\t' || r == 0x7f }
