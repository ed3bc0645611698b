package units

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Duration is a non-negative time.Duration with a human-readable text form.
type Duration time.Duration

// Std returns the duration as a time.Duration.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// String returns FormatDuration.
func (d Duration) String() string { return FormatDuration(time.Duration(d)) }

// MarshalText prints the compact form.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText accepts every form that ParseDuration does.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := ParseDuration(string(text))
	if err != nil {
		return err
	}
	*d = Duration(parsed)
	return nil
}

// Day is the length of the unit d: 24 hours, regardless of calendars and leap seconds.
const Day = 24 * time.Hour

var (
	errNegative = errors.New("a duration cannot be negative")
	errTooLong  = errors.New("a duration cannot exceed about 292 years")
	errEmpty    = errors.New("a duration cannot be empty")
)

// unitLengths maps every accepted unit word, in lower case, to its length.
var unitLengths = map[string]time.Duration{
	"ns": time.Nanosecond, "nsec": time.Nanosecond, "nsecs": time.Nanosecond,
	"nanosecond": time.Nanosecond, "nanoseconds": time.Nanosecond,
	"us": time.Microsecond, "µs": time.Microsecond, "μs": time.Microsecond,
	"usec": time.Microsecond, "usecs": time.Microsecond,
	"microsecond": time.Microsecond, "microseconds": time.Microsecond,
	"ms": time.Millisecond, "msec": time.Millisecond, "msecs": time.Millisecond, "millis": time.Millisecond,
	"millisecond": time.Millisecond, "milliseconds": time.Millisecond,
	"s": time.Second, "sec": time.Second, "secs": time.Second, "second": time.Second, "seconds": time.Second,
	"m": time.Minute, "min": time.Minute, "mins": time.Minute, "minute": time.Minute, "minutes": time.Minute,
	"h": time.Hour, "hr": time.Hour, "hrs": time.Hour, "hour": time.Hour, "hours": time.Hour,
	"d": Day, "day": Day, "days": Day,
	"w": 7 * Day, "wk": 7 * Day, "week": 7 * Day, "weeks": 7 * Day,
}

// ParseDuration parses a duration in human-readable form (1h 30m, 5 hours, 60sec, 500ms,
// 1.5s, 2 days), in ISO 8601 form without years and months (PT90S, P1DT12H), or the number
// 0. Negative durations are rejected.
func ParseDuration(text string) (time.Duration, error) {
	s := strings.TrimSpace(text)
	switch {
	case s == "":
		return 0, errEmpty
	case strings.HasPrefix(s, "-"):
		return 0, errNegative
	case s == "0":
		return 0, nil
	case s[0] == 'P' || s[0] == 'p':
		return parseISO(s)
	}
	return parseHuman(s)
}

func parseHuman(s string) (time.Duration, error) {
	var total time.Duration
	for rest := s; rest != ""; {
		number, tail := cutNumber(rest)
		if number == "" {
			return 0, fmt.Errorf("%q is not a duration such as 30s or 1h 30m: it has no number where one is expected", s)
		}
		unit, tail := cutWord(strings.TrimLeft(tail, " "))
		if unit == "" {
			return 0, fmt.Errorf("%q lacks a unit after %s; write for example %sms or %ss", s, number, number, number)
		}
		length, known := unitLengths[strings.ToLower(unit)]
		if !known {
			return 0, fmt.Errorf("%q is not a unit of time; use ms, s, m, h or d", unit)
		}
		part, err := scale(number, length)
		if err != nil {
			return 0, err
		}
		if total, err = add(total, part); err != nil {
			return 0, err
		}
		rest = strings.TrimLeft(tail, " ")
	}
	return total, nil
}

// isoUnits lists the designators before and after the T, in the order that ISO 8601
// prescribes.
var isoUnits = [2]struct {
	letters string
	lengths map[byte]time.Duration
}{
	{"WD", map[byte]time.Duration{'W': 7 * Day, 'D': Day}},
	{"HMS", map[byte]time.Duration{'H': time.Hour, 'M': time.Minute, 'S': time.Second}},
}

func parseISO(s string) (time.Duration, error) {
	bad := fmt.Errorf("%q is not an ISO 8601 duration of weeks, days, hours, minutes and seconds, such as PT90S", s)
	date, clock, hasClock := strings.Cut(strings.ToUpper(s[1:]), "T")
	if (date == "" && clock == "") || (hasClock && clock == "") {
		return 0, bad
	}
	var total time.Duration
	for i, section := range [2]string{date, clock} {
		letters := isoUnits[i].letters
		for section != "" {
			number, tail := cutNumber(section)
			if number == "" || tail == "" {
				return 0, bad
			}
			at := strings.IndexByte(letters, tail[0])
			if at < 0 {
				return 0, bad
			}
			part, err := scale(number, isoUnits[i].lengths[tail[0]])
			if err != nil {
				return 0, err
			}
			if total, err = add(total, part); err != nil {
				return 0, err
			}
			letters, section = letters[at+1:], tail[1:]
		}
	}
	return total, nil
}

// cutNumber splits a leading unsigned decimal number off s.
func cutNumber(s string) (number, rest string) {
	end := strings.IndexFunc(s, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	if end < 0 {
		end = len(s)
	}
	return s[:end], s[end:]
}

// cutWord splits the leading letters off s.
func cutWord(s string) (word, rest string) {
	end := strings.IndexFunc(s, func(r rune) bool { return !unicode.IsLetter(r) })
	if end < 0 {
		end = len(s)
	}
	return s[:end], s[end:]
}

// scale multiplies a decimal number by a unit. The integer part is computed without
// floating point, to be exact.
func scale(number string, unit time.Duration) (time.Duration, error) {
	whole, fraction, _ := strings.Cut(number, ".")
	if strings.Contains(fraction, ".") || (whole == "" && fraction == "") {
		return 0, fmt.Errorf("%q is not a number", number)
	}
	var total time.Duration
	if whole != "" {
		n, err := strconv.ParseInt(whole, 10, 64)
		if err != nil || n > math.MaxInt64/int64(unit) {
			return 0, errTooLong
		}
		total = time.Duration(n) * unit
	}
	if fraction != "" {
		f, err := strconv.ParseFloat("0."+fraction, 64)
		if err != nil {
			return 0, fmt.Errorf("%q is not a number", number)
		}
		return add(total, time.Duration(math.Round(f*float64(unit))))
	}
	return total, nil
}

func add(a, b time.Duration) (time.Duration, error) {
	if a > math.MaxInt64-b {
		return 0, errTooLong
	}
	return a + b, nil
}

// printUnits are the units FormatDuration uses, longest first.
var printUnits = []struct {
	length time.Duration
	name   string
}{
	{Day, "d"}, {time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"},
	{time.Millisecond, "ms"}, {time.Microsecond, "us"}, {time.Nanosecond, "ns"},
}

// FormatDuration returns the compact form: 1d, 1m 30s, 500ms, and 0s for zero.
// ParseDuration of the result returns the same duration. A negative duration, which
// ParseDuration rejects, has a leading minus sign.
func FormatDuration(d time.Duration) string {
	if d == 0 {
		return "0s"
	}
	var out strings.Builder
	rest := uint64(d)
	if d < 0 {
		out.WriteByte('-')
		rest = -rest
	}
	space := ""
	for _, unit := range printUnits {
		if n := rest / uint64(unit.length); n > 0 {
			out.WriteString(space)
			out.WriteString(strconv.FormatUint(n, 10))
			out.WriteString(unit.name)
			rest, space = rest%uint64(unit.length), " "
		}
	}
	return out.String()
}

// Rough formats a duration for people, with a precision that suits its length: milliseconds for
// a few seconds, seconds for minutes, minutes for hours, hours for days.
func Rough(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return "0ms"
	case d < 10*time.Second:
		return FormatDuration(d.Truncate(time.Millisecond))
	case d < time.Hour:
		return FormatDuration(d.Truncate(time.Second))
	case d < Day:
		return FormatDuration(d.Truncate(time.Minute))
	}
	return FormatDuration(d.Truncate(time.Hour))
}
