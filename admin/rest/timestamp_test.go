package rest

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// One invocation that is scheduled for a year with more digits must not make lists unreadable for clients.
func TestTimestampsAreRFC3339(t *testing.T) {
	for ms, want := range map[Timestamp]string{
		1:                                       "1970-01-01T00:00:00.001000000Z",
		latest:                                  "9999-12-31T23:59:59.999000000Z",
		latest + 1:                              "9999-12-31T23:59:59.999000000Z",
		math.MaxInt64:                           "9999-12-31T23:59:59.999000000Z",
		TimestampOf(time.Unix(-62135596800, 0)): "0001-01-01T00:00:00.000000000Z",
	} {
		text, err := json.Marshal(ms)
		require.NoError(t, err)
		require.Equal(t, `"`+want+`"`, string(text))
		var at time.Time
		require.NoError(t, json.Unmarshal(text, &at))
	}
}
