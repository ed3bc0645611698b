package term

import (
	"fmt"
	"strings"
	"time"

	"platform/internal/units"
)

// TimeFormat is a format of points in time.
type TimeFormat string

// The time formats.
const (
	Human   TimeFormat = "human"   // local time with the offset, down to seconds
	ISO8601 TimeFormat = "iso8601" // with the offset, down to milliseconds
	RFC2822 TimeFormat = "rfc2822" // as in mail headers
)

// ParseTimeFormat parses the value of --time-format.
func ParseTimeFormat(name string) (TimeFormat, error) {
	switch format := TimeFormat(strings.ToLower(name)); format {
	case Human, ISO8601, RFC2822:
		return format, nil
	}
	return "", fmt.Errorf("%q is not a time format; use human, iso8601 or rfc2822", name)
}

// Time formats a point in time, the zero time as "".
func (p *Printer) Time(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	switch p.times {
	case ISO8601:
		return t.Format("2006-01-02T15:04:05.000Z07:00")
	case RFC2822:
		return t.Local().Format(time.RFC1123Z)
	}
	return LocalTime(t)
}

// LocalTime formats a point in time for people, in the local time zone with its offset.
func LocalTime(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05Z07:00") }

// Duration formats a duration with a precision that suits its length: milliseconds for a few
// seconds, seconds for minutes, minutes for hours, hours for days.
func Duration(d time.Duration) string { return units.Rough(d) }
