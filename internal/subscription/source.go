package subscription

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"platform/internal/errcode"
)

const (
	sourceForm  = "kafka://<cluster>/<topic>"
	sinkForm    = "service://<service>/<handler>"
	patternKey  = "pattern"
	maxTopic    = 249 // as Kafka
	maxSinkName = 1000
)

// invalid returns an error with code META0009.
func invalid(format string, args ...any) *errcode.Error {
	return errcode.New(errcode.META0009, format, args...)
}

// ParseSource parses kafka://<cluster>/<topic>, with several topics separated by commas,
// kafka://<cluster>?pattern=<regular expression>, or only kafka://<cluster>, in which case the
// result has neither topics nor a pattern.
func ParseSource(text string) (Source, error) {
	rest, ok := strings.CutPrefix(text, "kafka://")
	if !ok {
		if scheme, _, is := strings.Cut(text, "://"); is {
			return Source{}, invalid("the source %s has the scheme %s; the only kind of source is %s", quote(text), quote(scheme), sourceForm)
		}
		return Source{}, invalid("the source %s is not of the form %s", quote(text), sourceForm)
	}
	rest, query, hasQuery := strings.Cut(rest, "?")
	cluster, topics, hasTopics := strings.Cut(rest, "/")
	if cluster == "" {
		return Source{}, invalid("the source %s names no cluster; expected %s", quote(text), sourceForm)
	}
	if err := checkClusterName(cluster); err != nil {
		return Source{}, err
	}
	s := Source{Cluster: cluster}
	if hasTopics && topics != "" {
		s.Topics = strings.Split(topics, ",")
	}
	if hasQuery {
		values, err := url.ParseQuery(query)
		if err != nil || len(values) != 1 || len(values[patternKey]) != 1 || values.Get(patternKey) == "" {
			return Source{}, invalid("the source %s has the query %s; expected ?pattern=<regular expression>, escaped as in URLs", quote(text), quote(query))
		}
		s.Pattern = values.Get(patternKey)
	}
	return s.normalized()
}

// WithTopics returns the source with topics or a pattern that were given separately.
func (s Source) WithTopics(topics []string, pattern string) (Source, error) {
	if (len(topics) > 0 || pattern != "") && (len(s.Topics) > 0 || s.Pattern != "") {
		return s, invalid("topics are given in the source %s and separately; write the source as kafka://%s", quote(s.String()), s.Cluster)
	}
	if len(topics) > 0 {
		s.Topics = slices.Clone(topics)
	}
	if pattern != "" {
		s.Pattern = pattern
	}
	return s.normalized()
}

func (s Source) normalized() (Source, error) {
	if len(s.Topics) > 0 && s.Pattern != "" {
		return s, invalid("a source has either topics or a pattern, not both")
	}
	for _, t := range s.Topics {
		if err := checkTopic(t); err != nil {
			return s, err
		}
	}
	slices.Sort(s.Topics)
	s.Topics = slices.Compact(s.Topics)
	if len(s.Topics) > maxTopics {
		return s, invalid("a subscription has at most %d topics, not %d; use a pattern", maxTopics, len(s.Topics))
	}
	if len(s.Pattern) > maxPattern {
		return s, invalid("the pattern has %d bytes; at most %d are allowed", len(s.Pattern), maxPattern)
	}
	if s.Pattern != "" {
		if _, err := regexp.Compile(s.Pattern); err != nil {
			return s, invalid("the pattern %s is not a regular expression: %v", quote(s.Pattern), err)
		}
	}
	return s, nil
}

// Check returns why records cannot be read from the source, nil if they can.
func (s Source) Check() error {
	if len(s.Topics) == 0 && s.Pattern == "" {
		return invalid("the source %s names no topic; expected %s", quote(s.String()), sourceForm)
	}
	if err := checkClusterName(s.Cluster); err != nil {
		return err
	}
	_, err := s.normalized()
	return err
}

// String returns the form that ParseSource accepts.
func (s Source) String() string {
	text := "kafka://" + s.Cluster
	if len(s.Topics) > 0 {
		text += "/" + strings.Join(s.Topics, ",")
	}
	if s.Pattern != "" {
		text += "?" + url.Values{patternKey: {s.Pattern}}.Encode()
	}
	return text
}

// Matcher returns a function that reports whether a topic belongs to the source. Internal topics of
// Kafka, whose names start with two underscores, do not match patterns.
func (s Source) Matcher() func(topic string) bool {
	if s.Pattern == "" {
		return func(topic string) bool { return slices.Contains(s.Topics, topic) }
	}
	re, err := regexp.Compile("^(?:" + s.Pattern + ")$")
	if err != nil {
		return func(string) bool { return false } // normalized has compiled it
	}
	return func(topic string) bool { return !strings.HasPrefix(topic, "__") && re.MatchString(topic) }
}

func checkTopic(topic string) error {
	switch {
	case topic == "", topic == ".", topic == "..":
		return invalid("%s is not the name of a topic", quote(topic))
	case len(topic) > maxTopic:
		return invalid("the topic name %s has %d characters; at most %d are allowed", quote(topic), len(topic), maxTopic)
	}
	for i := range len(topic) {
		if !nameByte(topic[i]) && topic[i] != '_' {
			return invalid("the topic name %s has a character outside A-Z, a-z, 0-9, '.', '_' and '-'; for a pattern use topic_pattern", quote(topic))
		}
	}
	return nil
}

func nameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '-'
}

// ParseSink parses service://<service>/<handler>.
func ParseSink(text string) (Sink, error) {
	rest, ok := strings.CutPrefix(text, "service://")
	if !ok {
		if scheme, _, is := strings.Cut(text, "://"); is {
			return Sink{}, invalid("the sink %s has the scheme %s; the only kind of sink is %s", quote(text), quote(scheme), sinkForm)
		}
		return Sink{}, invalid("the sink %s is not of the form %s", quote(text), sinkForm)
	}
	service, handler, _ := strings.Cut(rest, "/")
	switch {
	case service == "":
		return Sink{}, invalid("the sink %s names no service; expected %s", quote(text), sinkForm)
	case handler == "" || strings.Contains(handler, "/"):
		return Sink{}, invalid("the sink %s does not name one handler; expected %s", quote(text), sinkForm)
	case len(rest) > maxSinkName:
		return Sink{}, invalid("the sink has %d bytes; at most %d are allowed", len(rest), maxSinkName)
	}
	for _, r := range rest {
		if r < ' ' || r == 0x7f || r == 0xfffd {
			return Sink{}, invalid("the sink %s has control characters or is not UTF-8", quote(text))
		}
	}
	return Sink{service, handler}, nil
}

// String returns the form that ParseSink accepts.
func (s Sink) String() string { return "service://" + s.Service + "/" + s.Handler }

const maxClusterName = 253 // as host names

// checkClusterName returns why a name cannot be the name of a cluster, nil if it can.
func checkClusterName(name string) error {
	if name == "" || len(name) > maxClusterName {
		return invalid("the cluster name %s has %d characters, expected 1 to %d", quote(name), len(name), maxClusterName)
	}
	for _, label := range strings.Split(name, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return invalid("the cluster name %s does not have the form of a host name: letters, digits and '-', in parts of up to 63 that are separated by '.'", quote(name))
		}
		for i := range len(label) {
			if c := label[i]; !nameByte(c) && c != '_' {
				return invalid("the cluster name %s does not have the form of a host name: letters, digits and '-', in parts of up to 63 that are separated by '.'", quote(name))
			}
		}
	}
	return nil
}
