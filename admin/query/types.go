package query

import (
	"strconv"
	"time"
)

// Type is the type of a column.
type Type string

// The types of columns. SQLite only has numbers, text and blobs, so the declared type determines
// how a value is encoded in a result.
const (
	Text      Type = "text"
	U32       Type = "u32"
	U64       Type = "u64"
	Bool      Type = "bool"
	Timestamp Type = "timestamp"  // text, RFC 3339 in UTC with milliseconds, so that it sorts
	Duration  Type = "duration"   // milliseconds; ISO 8601 in results
	Binary    Type = "binary"     // lower-case hexadecimal digits in results
	U32List   Type = "list<u32>"  // a JSON array
	TextList  Type = "list<text>" // a JSON array
)

// declared are the type names in SQLite declarations. SQLite derives the affinity from the words
// in them, and returns them for result columns that come directly from a table.
var declared = map[Type]string{
	Text: "TEXT", U32: "U32 INTEGER", U64: "U64 INTEGER", Bool: "BOOL INTEGER", Timestamp: "UTC TEXT",
	Duration: "DURATION INTEGER", Binary: "BINARY BLOB", U32List: "U32 LIST TEXT", TextList: "TEXT LIST TEXT",
}

// typeOf returns the type of a result column; empty if it is computed.
var typeOf = func() map[string]Type {
	m := map[string]Type{}
	for t, name := range declared {
		m[name] = t
	}
	return m
}()

const timestampLayout = "2006-01-02T15:04:05.000Z"

// earliest and latest are the times that texts of this layout, which are compared as such, can represent. Handlers
// may sleep for longer.
var (
	earliest = time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(9999, 12, 31, 23, 59, 59, 999_000_000, time.UTC)
)

func timestampText(t time.Time) string {
	switch {
	case t.Before(earliest):
		t = earliest
	case t.After(latest):
		t = latest
	}
	return t.UTC().Format(timestampLayout)
}

// isoDuration formats a duration in milliseconds in ISO 8601.
func isoDuration(ms int64) string {
	if ms == 0 {
		return "P0D"
	}
	sign := ""
	if ms < 0 {
		sign, ms = "-", -ms
	}
	text := sign + "PT" + strconv.FormatInt(ms/1000, 10)
	if rest := ms % 1000; rest != 0 {
		frac := strconv.FormatInt(1000+rest, 10)[1:]
		for frac[len(frac)-1] == '0' {
			frac = frac[:len(frac)-1]
		}
		text += "." + frac
	}
	return text + "S"
}

// The functions below convert Go values to SQLite values. Zero values that mean "not yet" or "none"
// become NULL.

type value = any

func text(s string) value {
	if s == "" {
		return nil
	}
	return s
}

func boolean(b bool) value {
	if b {
		return int64(1)
	}
	return int64(0)
}

// millis converts a timestamp in milliseconds since 1970.
func millis(ms int64) value {
	if ms == 0 {
		return nil
	}
	return timestampText(time.UnixMilli(ms))
}

func moment(t time.Time) value {
	if t.IsZero() {
		return nil
	}
	return timestampText(t)
}

func number[N ~int | ~int32 | ~int64 | ~uint8 | ~uint32 | ~uint64](n N) value { return int64(n) }

// positive converts a number that is NULL if zero.
func positive[N ~int | ~int32 | ~int64 | ~uint8 | ~uint32 | ~uint64](n N) value {
	if n == 0 {
		return nil
	}
	return int64(n)
}
