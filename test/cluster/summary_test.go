package cluster

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestGapLimits requires that the limit of a fault applies to many samples only, and the
// general limit to each of them.
func TestGapLimits(t *testing.T) {
	gaps := func(n int, d time.Duration) []time.Duration { return slices.Repeat([]time.Duration{d}, n) }
	for _, c := range []struct {
		name       string
		gaps       []time.Duration
		quorumLoss bool
		want       string
	}{
		{"one slow round", gaps(36, 3*time.Second), false, ""},
		{"slow in the 99th percentile", append(gaps(minGapSamples, time.Second), gaps(10, 3*time.Second)...), false, "unavailable for 3s (p99), more than 2s"},
		{"a rare slow gap", append(gaps(minGapSamples, time.Second), 3*time.Second), false, ""},
		{"an outage", append(gaps(36, time.Second), 31*time.Second), false, "unavailable for 31s, more than 30s"},
		{"an outage without a majority", gaps(36, 31*time.Second), true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := faultSummary{name: "transfer", maxGap: 2 * time.Second, gaps: c.gaps, quorumLoss: c.quorumLoss}
			if err := k.checkGaps(); c.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.want)
			}
		})
	}
}
