package telemetry

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDurationsAreRounded(t *testing.T) {
	for d, want := range map[time.Duration]string{
		90 * time.Second: "1m 30s",
		98*time.Millisecond + 769*time.Microsecond + 64: "99ms",
		9*time.Millisecond + 769*time.Microsecond + 64:  "9ms 769us",
		9*time.Microsecond + 64:                         "9us 64ns",
		0:                                               "0s",
	} {
		require.Equal(t, want, valueText(slog.DurationValue(d)))
	}
}

func TestTimesHaveMilliseconds(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6_789_012, time.FixedZone("", 3600))
	require.Equal(t, "2026-01-02T02:04:05.006Z", valueText(slog.TimeValue(at)))
	require.Equal(t, "2026-01-02T02:04:05Z", valueText(slog.TimeValue(at.Truncate(time.Second))))
}
