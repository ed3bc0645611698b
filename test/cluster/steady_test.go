package cluster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Without faults nothing may fail, which also tells that the load itself is sound.
func TestSteadyLoad(t *testing.T) {
	b := newBed(t, bedOptions{})
	run := b.load(t, false)
	pause(t.Context(), 3*time.Second)
	report := run.Stop(t.Context())
	t.Logf("%d requests, %d failed, gaps %s", report.OK, len(report.Failures), report.Gaps)
	require.NoError(t, report.Err())
	require.Positive(t, report.OK)
	require.Zero(t, report.Excused)
}
