package rest

import (
	"encoding/json"
	"time"
)

// Timestamp is a time in milliseconds since 1970, encoded in RFC 3339 in UTC with nine fractional
// digits. Zero means none.
type Timestamp int64

// latest is the last time of the year 9999, the last one that RFC 3339 can represent. Handlers may
// sleep for longer.
const latest Timestamp = 253402300799_999

// MarshalJSON implements json.Marshaler. Later times than the year 9999 are its end.
func (t Timestamp) MarshalJSON() ([]byte, error) {
	return []byte(time.UnixMilli(int64(min(t, latest))).UTC().Format(`"2006-01-02T15:04:05.000000000Z"`)), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *Timestamp) UnmarshalJSON(b []byte) error {
	var at time.Time
	err := json.Unmarshal(b, &at)
	*t = TimestampOf(at)
	return err
}

// TimestampOf converts a time, truncated to milliseconds.
func TimestampOf(t time.Time) Timestamp { return Timestamp(t.UnixMilli()) }
