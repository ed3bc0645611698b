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

// These tests plant a fault and require that the checks find it: a check that never
// fails proves nothing.

func TestLiesAreFound(t *testing.T) {
	b := newBed(t, bedOptions{nodes: 1})
	b.patience = 3 * time.Second // what is lost does not come
	for _, c := range []struct {
		name  string
		lie   lie
		found string
	}{
		{"an acknowledgement before the commit", acknowledgeFirst(), "lost: "},
		{"a send without its key", forgetKeys(), "duplicate: "},
		{"a stale read", rememberReads(), "not linearizable"},
		{"an error of a healthy node", refuseSome(), "failed request: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			honest := b.nodes
			b.nodes = b.lied(t, c.lie)
			defer func() { b.nodes = honest }()
			run := b.load(t, false)
			await(t, run, 600)
			require.ErrorContains(t, run.Stop(t.Context()).Err(), c.found)
		})
	}
}

func TestServicesThatBreakPromisesAreFound(t *testing.T) {
	for promise, found := range map[string]string{
		"append-twice":   "duplicate: ",
		"shared-handler": "entered while",
		"short-sleep":    "early: ",
		"change-result":  "comes from no execution",
	} {
		t.Run(promise, func(t *testing.T) {
			b := newBed(t, bedOptions{nodes: 1, service: map[string]string{"DEFECT": promise}})
			run := b.load(t, false)
			await(t, run, 600)
			require.ErrorContains(t, run.Stop(t.Context()).Err(), found)
		})
	}
}

// await returns once load has had that many answers, which is enough for a lie or two
// of each kind, however slow the machine is.
func await(t *testing.T, run *load.Run, answers int) {
	t.Helper()
	require.Eventually(t, func() bool { return run.Acknowledged() >= answers }, time.Minute, 10*time.Millisecond)
}

// plants are defects of the server itself.
var plants = []struct {
	defect failpoint.Name
	faults []string // that make the defect visible
	found  string
}{
	{failpoint.AckBeforeCommit, []string{"kill-all", "kill-two", "kill-one"}, "lost: "},
	{failpoint.NoDeduplication, []string{"kill-one"}, ": "},
	{failpoint.IgnoreLocks, nil, ": "},
	{failpoint.EarlyTimers, nil, "early: "},
}

// TestPlantedDefectsAreFound checks the checks: each defect must be found. It takes
// minutes for each.
func TestPlantedDefectsAreFound(t *testing.T) {
	if os.Getenv("CLUSTER_PLANTS") == "" {
		t.Skip("CLUSTER_PLANTS is not set")
	}
	binary, err := harness.BuildWithFailpoints("platform/cmd/platform-server")
	require.NoError(t, err)
	for _, p := range plants {
		t.Run(string(p.defect), func(t *testing.T) {
			b := newBed(t, bedOptions{binary: binary, failpoints: string(p.defect)})
			require.ErrorContains(t, b.search(t, p.faults, p.found), p.found)
		})
	}
}

// search goes through faults until a check finds what is wrong, and returns what all
// have said.
func (b *bed) search(t *testing.T, names []string, found string) error {
	tries := []fault{{name: "none", inject: func(context.Context, *bed) error { return nil }}}
	if names != nil {
		tries = slices.DeleteFunc(slices.Clone(faults), func(f fault) bool { return !slices.Contains(names, f.name) })
	}
	var said error
	for begin, n := time.Now(), 0; time.Since(begin) < 4*time.Minute; n++ {
		run := b.load(t, false)
		pause(t.Context(), 2*time.Second)
		err := tries[n%len(tries)].inject(t.Context(), b)
		mended := b.mend(t.Context())
		said = errors.Join(said, err, mended, run.Stop(t.Context()).Err())
		if mended != nil || said != nil && strings.Contains(said.Error(), found) {
			return said // a cluster that falls apart is found, too
		}
	}
	return said
}
