package cluster

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/failpoint"
	"platform/test/cluster/load"
	"platform/test/harness"
)

// These tests plant a defect and require that the checks detect it, since a check that
// never fails proves nothing.

func TestProxyDefectsAreDetected(t *testing.T) {
	b := newTestbed(t, testbedOptions{nodes: 1})
	b.retryTimeout = 5 * time.Second // lost effects never appear
	for _, c := range []struct {
		name  string
		lie   tamper
		found string
	}{
		{"an acknowledgement without an effect", ackWithoutForwarding(), "lost: "},
		{"a duplicate send", duplicateWithoutKey(), "duplicate: "},
		{"a stale read", staleReads(), "not linearizable"},
		{"an error from a healthy node", injectErrors(), "failed request: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			original := b.targets
			b.targets = b.proxied(t, c.lie)
			defer func() { b.targets = original }()
			run := b.startLoad(t, false)
			awaitSucceeded(t, run, 600)
			require.ErrorContains(t, run.Stop(t.Context()).Err(), c.found)
		})
	}
}

func TestServiceDefectsAreDetected(t *testing.T) {
	for defect, found := range map[string]string{
		"append-twice":   "duplicate: ",
		"shared-handler": "entered while",
		"short-sleep":    "early: ",
		"change-result":  "comes from no execution",
	} {
		t.Run(defect, func(t *testing.T) {
			b := newTestbed(t, testbedOptions{nodes: 1, serviceEnv: map[string]string{"DEFECT": defect}})
			run := b.startLoad(t, false)
			awaitSucceeded(t, run, 600)
			require.ErrorContains(t, run.Stop(t.Context()).Err(), found)
		})
	}
}

// awaitSucceeded waits until count requests have succeeded, which suffices for several
// tampered requests of each kind on machines of any speed.
func awaitSucceeded(t *testing.T, run *load.Run, count int) {
	t.Helper()
	require.Eventually(t, func() bool { small, _ := run.Succeeded(); return small >= count }, 5*time.Minute, 10*time.Millisecond)
}

// plantedDefects are defects of the server itself.
var plantedDefects = []struct {
	defect failpoint.Name
	faults []string // faults that expose the defect
	found  string
}{
	{failpoint.AckBeforeCommit, []string{"kill-all", "kill-two", "kill-one"}, "lost: "},
	{failpoint.NoDeduplication, []string{"kill-one"}, ": "},
	{failpoint.IgnoreLocks, nil, ": "},
	{failpoint.EarlyTimers, nil, "early: "},
}

// TestPlantedDefectsAreDetected requires that each defect is detected, which takes
// minutes for each.
func TestPlantedDefectsAreDetected(t *testing.T) {
	if os.Getenv("CLUSTER_PLANTS") == "" {
		t.Skip("CLUSTER_PLANTS is not set")
	}
	binary, err := harness.BuildWithFailpoints("platform/cmd/platform-server")
	require.NoError(t, err)
	for _, p := range plantedDefects {
		t.Run(string(p.defect), func(t *testing.T) {
			b := newTestbed(t, testbedOptions{binary: binary, failpoints: string(p.defect)})
			require.ErrorContains(t, b.detect(t, p.faults, p.found), p.found)
		})
	}
}

// detect injects faults until a check reports the violation, and returns all reported
// errors.
func (b *testbed) detect(t *testing.T, names []string, violation string) error {
	candidates := []fault{{name: "none", inject: func(context.Context, *testbed) error { return nil }}}
	if names != nil {
		candidates = slices.DeleteFunc(slices.Clone(faults), func(f fault) bool { return !slices.Contains(names, f.name) })
	}
	var found error
	for begin, n := time.Now(), 0; time.Since(begin) < 4*time.Minute; n++ {
		run := b.startLoad(t, false)
		harness.Sleep(t.Context(), 2*time.Second)
		err := candidates[n%len(candidates)].inject(t.Context(), b)
		recoveryErr := b.awaitRecovery(t.Context())
		found = errors.Join(found, err, recoveryErr, run.Stop(t.Context()).Err())
		if recoveryErr != nil || found != nil && strings.Contains(found.Error(), violation) {
			return found // a cluster that does not recover is also a detection
		}
	}
	return found
}
