package subscription

import (
	"fmt"
	"net/textproto"
	"strings"
	"unicode/utf8"
)

// maxTemplate bounds the text of a template.
const maxTemplate = 1000

// Template is a text with placeholders for parts of a record: {topic}, {partition}, {key} and
// {header:name}. The zero Template is none.
type Template struct {
	text  string
	parts []part
}

// part is literal text, or a placeholder.
type part struct {
	text string // literal text, or the name of the header
	kind partKind
}

type partKind uint8

const (
	literal partKind = iota
	topicPart
	partitionPart
	keyPart
	headerPart
)

// ParseTemplate parses a template; an empty text gives the zero Template.
func ParseTemplate(text string) (Template, error) {
	if len(text) > maxTemplate {
		return Template{}, fmt.Errorf("a template has at most %d bytes, not %d", maxTemplate, len(text))
	}
	t := Template{text: text}
	for rest := text; rest != ""; {
		open := strings.IndexAny(rest, "{}")
		if open < 0 {
			t.parts = append(t.parts, part{text: rest})
			break
		}
		if open > 0 {
			t.parts = append(t.parts, part{text: rest[:open]})
		}
		end := strings.IndexByte(rest, '}')
		if rest[open] == '}' || end < 0 {
			return Template{}, fmt.Errorf("the template %s has unbalanced braces", quote(text))
		}
		p, err := placeholder(rest[open+1 : end])
		if err != nil {
			return Template{}, err
		}
		t.parts = append(t.parts, p)
		rest = rest[end+1:]
	}
	return t, nil
}

func placeholder(name string) (part, error) {
	switch name {
	case "topic":
		return part{kind: topicPart}, nil
	case "partition":
		return part{kind: partitionPart}, nil
	case "key":
		return part{kind: keyPart}, nil
	}
	if header, ok := strings.CutPrefix(name, "header:"); ok && header != "" {
		return part{text: header, kind: headerPart}, nil
	}
	return part{}, fmt.Errorf("the placeholder %s is unknown; expected {topic}, {partition}, {key} or {header:<name>}", quote("{"+name+"}"))
}

// IsZero reports whether there is no template.
func (t Template) IsZero() bool { return t.text == "" }

// String returns the text of the template.
func (t Template) String() string { return t.text }

// recordText is what a template uses of a record.
type recordText interface {
	Topic() string
	Partition() int32
	// Key returns nil if there is none.
	Key() []byte
	// Header returns the value of the last header with a name, compared without case.
	Header(name string) ([]byte, bool)
}

// Expand returns the text for a record. It fails if the record lacks a part or if that is not
// UTF-8.
func (t Template) Expand(r recordText) (string, error) {
	var b strings.Builder
	for _, p := range t.parts {
		switch p.kind {
		case literal:
			b.WriteString(p.text)
		case topicPart:
			b.WriteString(r.Topic())
		case partitionPart:
			fmt.Fprintf(&b, "%d", r.Partition())
		case keyPart:
			key := r.Key()
			if key == nil {
				return "", fmt.Errorf("%s needs a key, which the record does not have", quote(t.text))
			}
			if !utf8.Valid(key) {
				return "", fmt.Errorf("%s needs a key that is UTF-8", quote(t.text))
			}
			b.Write(key)
		case headerPart:
			value, ok := r.Header(p.text)
			if !ok {
				return "", fmt.Errorf("%s needs the header %s, which the record does not have", quote(t.text), quote(p.text))
			}
			if !utf8.Valid(value) {
				return "", fmt.Errorf("%s needs the header %s in UTF-8", quote(t.text), quote(p.text))
			}
			b.Write(value)
		}
	}
	return b.String(), nil
}

// HeaderName returns the name under which handlers receive a record header, false if its name
// cannot be the name of an HTTP header.
func HeaderName(name string) (string, bool) {
	if name == "" || len(name) > 200 {
		return "", false
	}
	for i := range len(name) {
		if !isToken(name[i]) {
			return "", false
		}
	}
	return headerPrefix + strings.ToLower(name), true
}

// The names of the headers that handlers receive with a record.
const (
	headerPrefix = "kafka.header." // of the headers of the record
	OffsetHeader = "kafka.offset"
	TopicHeader  = "kafka.topic"
	PartHeader   = "kafka.partition"
	TimeHeader   = "kafka.timestamp" // milliseconds since 1970
	KeyHeader    = "kafka.key"       // URL-safe base64
	NullHeader   = "kafka.tombstone" // "true" if the record has no value
	IDHeader     = "platform.subscription.id"
	IDHeaderPeer = "restate.subscription.id" // the name under which existing handlers know it
)

func isToken(c byte) bool {
	return c > ' ' && c < 0x7f && !strings.ContainsRune(`"(),/:;<=>?@[\]{}`, rune(c))
}

// WantsHeader reports whether handlers receive a record header. name is in any case.
func (o *Options) WantsHeader(name string) bool {
	if o.AllHeaders {
		return true
	}
	for _, h := range o.Headers {
		if strings.EqualFold(h, name) {
			return true
		}
	}
	return false
}

// quote returns s as a quoted, printable text of limited length.
func quote(s string) string {
	const most = 100
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return fmt.Sprintf("%q", textproto.TrimString(s))
}
