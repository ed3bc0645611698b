package query

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// dateTrunc implements date_trunc('hour', t): the start of the unit that contains t.
func dateTrunc(_ *session, args []driver.Value) (driver.Value, error) {
	t, err := timeOf(args[1])
	if err != nil {
		return nil, err
	}
	t = t.UTC()
	day := time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
	switch unit := strings.ToLower(stringOf(args[0])); unit {
	case "millisecond":
	case "second":
		t = t.Truncate(time.Second)
	case "minute":
		t = t.Truncate(time.Minute)
	case "hour":
		t = t.Truncate(time.Hour)
	case "day":
		t = day
	case "week": // weeks start on Monday
		t = day.AddDate(0, 0, -(int(day.Weekday())+6)%7)
	case "month":
		t = day.AddDate(0, 0, 1-day.Day())
	case "quarter":
		t = time.Date(t.Year(), (t.Month()-1)/3*3+1, 1, 0, 0, 0, 0, time.UTC)
	case "year":
		t = time.Date(t.Year(), 1, 1, 0, 0, 0, 0, time.UTC)
	default:
		return nil, fmt.Errorf("date_trunc: %q is not a unit; units are millisecond, second, minute, hour, day, week, month, quarter, year", unit)
	}
	return timestampText(t), nil
}

// dateBin implements date_bin(interval, t, origin): the start of the interval that contains t, of
// those that follow each other from the origin on, which is 1970 by default.
func dateBin(_ *session, args []driver.Value) (driver.Value, error) {
	if len(args) != 2 && len(args) != 3 {
		return nil, errors.New("date_bin takes an interval, a time and optionally an origin")
	}
	width, badWidth := wholeOf(args[0])
	t, err := timeOf(args[1])
	origin := time.UnixMilli(0)
	var badOrigin error
	if len(args) == 3 {
		origin, badOrigin = timeOf(args[2])
	}
	if err := errors.Join(badWidth, err, badOrigin); err != nil {
		return nil, err
	}
	if width <= 0 {
		return nil, errors.New("date_bin: the interval must be longer than 0")
	}
	since := t.UnixMilli() - origin.UnixMilli()
	into := since % width
	if into < 0 {
		into += width
	}
	return timestampText(time.UnixMilli(t.UnixMilli() - into)), nil
}

// datePart implements date_part('hour', t).
func datePart(_ *session, args []driver.Value) (driver.Value, error) {
	t, err := timeOf(args[1])
	if err != nil {
		return nil, err
	}
	t = t.UTC()
	switch unit := strings.ToLower(stringOf(args[0])); unit {
	case "epoch":
		return float64(t.UnixMilli()) / 1000, nil
	case "millisecond":
		return int64(t.Second()*1000 + t.Nanosecond()/1e6), nil
	case "second":
		return int64(t.Second()), nil
	case "minute":
		return int64(t.Minute()), nil
	case "hour":
		return int64(t.Hour()), nil
	case "day":
		return int64(t.Day()), nil
	case "dow":
		return int64(t.Weekday()), nil
	case "doy":
		return int64(t.YearDay()), nil
	case "week":
		_, week := t.ISOWeek()
		return int64(week), nil
	case "month":
		return int64(t.Month()), nil
	case "year":
		return int64(t.Year()), nil
	default:
		return nil, fmt.Errorf("date_part: %q is not a part; parts are epoch, millisecond, second, minute, hour, day, dow, doy, week, month, year", unit)
	}
}

// maxPattern limits the length of a pattern, and so the cost of compiling it.
const maxPattern = 1000

// matches reports whether text matches a regular expression.
func (s *session) matches(text, pattern driver.Value) (driver.Value, error) {
	source := stringOf(pattern)
	if s.pattern == nil || s.pattern.String() != source {
		if len(source) > maxPattern {
			return nil, fmt.Errorf("the regular expression is longer than %d bytes", maxPattern)
		}
		compiled, err := regexp.Compile(source)
		if err != nil {
			return nil, fmt.Errorf("invalid regular expression: %w", err)
		}
		s.pattern = compiled
	}
	t := stringOf(text)
	if len(t) < longText {
		return boolean(s.pattern.MatchString(t)), nil
	}
	found := s.pattern.MatchReader(&endingReader{s: s, text: t})
	return boolean(found), s.ctx.Err()
}

// longText is the length in bytes from which matching is interruptible, which is slower.
const longText = 16 << 10
