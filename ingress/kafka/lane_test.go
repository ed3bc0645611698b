package kafka

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A lane repeats a command soon after a partition accepts records again, and not often while it does
// not for long.
func TestLanesContinueSoonAfterAnOutage(t *testing.T) {
	for outage := 20 * time.Millisecond; outage <= time.Minute; outage += 10 * time.Millisecond {
		at, wait, attempts := time.Duration(0), minLaneRetry, 0
		for at < outage {
			at += wait
			wait = longer(wait)
			attempts++
		}
		require.LessOrEqual(t, at-outage, min(minLaneRetry+outage/4, maxLaneRetry), "%s", outage)
		require.LessOrEqual(t, attempts, 25+int(outage/time.Second), "%s", outage)
	}
}
