package telemetry

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"platform/internal/errcode"
	"platform/internal/units"
)

// lineHandler prints one human-readable line per record:
//
//	2026-11-20T18:13:50.298Z INFO  platform/ingress: listening address=[::]:8080
type lineHandler struct {
	mu     *sync.Mutex // serializes writes to w
	w      io.Writer
	colour bool
	bound  []field
	group  string
}

func newLineHandler(w io.Writer, colour bool) *lineHandler {
	return &lineHandler{mu: new(sync.Mutex), w: w, colour: colour}
}

// Enabled returns true: the enclosing handler filters records.
func (h *lineHandler) Enabled(context.Context, slog.Level) bool { return true }

// Handle writes one line.
func (h *lineHandler) Handle(_ context.Context, record slog.Record) error {
	var line strings.Builder
	fields := recordFields(h.bound, h.group, record)
	target := rootComponent
	for _, f := range fields {
		if f.key == componentKey {
			target = f.value.String()
		}
	}
	h.paint(&line, dim, record.Time.UTC().Format("2006-01-02T15:04:05.000Z"))
	line.WriteByte(' ')
	h.paint(&line, levelColour(record.Level), fmt.Sprintf("%-5s", levelName(record.Level)))
	line.WriteByte(' ')
	h.paint(&line, dim, target+":")
	line.WriteByte(' ')
	line.WriteString(oneLine(record.Message))
	for _, f := range fields {
		if f.key != componentKey {
			line.WriteByte(' ')
			h.paint(&line, dim, f.key+"=")
			line.WriteString(quoteIfNeeded(valueText(f.value)))
		}
	}
	line.WriteByte('\n')
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := io.WriteString(h.w, line.String())
	return err
}

// WithAttrs binds attributes.
func (h *lineHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	bound := *h
	bound.bound = appendFields(h.bound[:len(h.bound):len(h.bound)], h.group, attrs)
	return &bound
}

// WithGroup prefixes the keys that follow.
func (h *lineHandler) WithGroup(name string) slog.Handler {
	bound := *h
	bound.group = joinGroup(h.group, name)
	return &bound
}

const dim, red, yellow, green, blue = "2", "31", "33", "32", "34"

func (h *lineHandler) paint(line *strings.Builder, colour, text string) {
	if h.colour {
		text = "\x1b[" + colour + "m" + text + "\x1b[0m"
	}
	line.WriteString(text)
}

func levelColour(level slog.Level) string {
	switch {
	case level >= slog.LevelError:
		return red
	case level >= slog.LevelWarn:
		return yellow
	case level >= slog.LevelInfo:
		return green
	}
	return blue
}

func levelName(level slog.Level) string {
	if level == levelTrace {
		return "TRACE"
	}
	return level.String()
}

// valueText formats a value for humans. Coded errors show their code exactly once.
func valueText(v slog.Value) string {
	switch v.Kind() {
	case slog.KindDuration:
		return units.FormatDuration(rounded(v.Duration()))
	case slog.KindTime:
		return v.Time().UTC().Format(timeFormat)
	case slog.KindAny:
		if err, ok := v.Any().(error); ok {
			return truncate(errcode.Text(err))
		}
	}
	return truncate(v.String())
}

// timeFormat is RFC 3339 with as many digits as matter.
const timeFormat = "2006-01-02T15:04:05.999Z07:00"

// rounded returns a duration, which usually is measured, without the digits that do not matter.
func rounded(d time.Duration) time.Duration {
	switch {
	case d >= 10*time.Millisecond:
		return d.Round(time.Millisecond)
	case d >= 10*time.Microsecond:
		return d.Round(time.Microsecond)
	}
	return d
}

// maxValueBytes bounds the printed length of a value. User-defined values, such as object
// keys, and endpoint responses can be arbitrarily long.
const maxValueBytes = 8 << 10

// truncate shortens a long text and appends its original length.
func truncate(text string) string {
	if len(text) <= maxValueBytes {
		return text
	}
	return fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(text[:maxValueBytes], ""), len(text))
}

func quoteIfNeeded(text string) string {
	if text == "" || strings.ContainsFunc(text, func(r rune) bool { return r == '"' || r == '=' || unicode.IsSpace(r) || !unicode.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}

// oneLine escapes control characters, which could break the line or the terminal.
func oneLine(text string) string {
	if strings.ContainsFunc(text, unicode.IsControl) {
		quoted := strconv.Quote(text)
		return quoted[1 : len(quoted)-1]
	}
	return text
}
