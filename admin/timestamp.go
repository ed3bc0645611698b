package admin

import (
	"encoding/json"
	"strconv"
	"time"

	"platform/internal/units"
)

// Timestamp is a time in milliseconds since 1970, printed as RFC 3339 in UTC with
// nanosecond digits. The zero value is none.
type Timestamp int64

// MarshalJSON prints the time.
func (t Timestamp) MarshalJSON() ([]byte, error) {
	return []byte(time.UnixMilli(int64(t)).UTC().Format(`"2006-01-02T15:04:05.000000000Z"`)), nil
}

// timestamp is a time without what is below milliseconds.
func timestamp(t time.Time) Timestamp { return Timestamp(t.UnixMilli()) }

// duration is the text for people, nil where there is none to show.
func duration(d *time.Duration) *units.Duration {
	if d == nil {
		return nil
	}
	text := units.Duration(*d)
	return &text
}

// factor is a number that shows it need not be whole: 2.0.
func factor(f float64) json.Number {
	text := strconv.FormatFloat(f, 'f', -1, 64)
	if f == float64(int64(f)) {
		text += ".0"
	}
	return json.Number(text)
}
