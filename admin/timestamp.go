package admin

import (
	"encoding/json"
	"strconv"
	"time"

	"platform/internal/units"
)

// Timestamp is a time in milliseconds since 1970, encoded in RFC 3339 in UTC with nine fractional
// digits. Zero means none.
type Timestamp int64

// latest is the last time of the year 9999, the last one that RFC 3339 can represent. Handlers may sleep for longer.
const latest Timestamp = 253402300799_999

// MarshalJSON implements json.Marshaler. Later times than the year 9999 are its end.
func (t Timestamp) MarshalJSON() ([]byte, error) {
	return []byte(time.UnixMilli(int64(min(t, latest))).UTC().Format(`"2006-01-02T15:04:05.000000000Z"`)), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *Timestamp) UnmarshalJSON(b []byte) error {
	var at time.Time
	err := json.Unmarshal(b, &at)
	*t = timestamp(at)
	return err
}

// timestamp converts a time, truncated to milliseconds.
func timestamp(t time.Time) Timestamp { return Timestamp(t.UnixMilli()) }

// duration converts a duration to its text form, nil to nil.
func duration(d *time.Duration) *units.Duration {
	if d == nil {
		return nil
	}
	text := units.Duration(*d)
	return &text
}

// factor formats a number with at least one decimal, such as 2.0.
func factor(f float64) json.Number {
	text := strconv.FormatFloat(f, 'f', -1, 64)
	if f == float64(int64(f)) {
		text += ".0"
	}
	return json.Number(text)
}
