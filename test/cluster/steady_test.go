package cluster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/test/harness"
)

// TestSteadyLoad requires that nothing fails without faults, which also validates the load.
func TestSteadyLoad(t *testing.T) {
	b := newTestbed(t, testbedOptions{})
	run := b.startLoad(t, false)
	harness.Sleep(t.Context(), 3*time.Second)
	report := run.Stop(t.Context())
	t.Logf("%d requests, %d failed, gaps %s", report.OK, len(report.Failures), report.Gaps)
	require.NoError(t, report.Err())
	require.Positive(t, report.OK)
	require.Zero(t, report.Tolerated)
}
