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
		{"a send without its key", forgetKeys(), "doubled: "},
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
		"once":     "doubled: ",
		"alone":    "entered while",
		"in-time":  "early: ",
		"recorded": "comes from no execution",
	} {
		t.Run(promise, func(t *testing.T) {
			b := newBed(t, bedOptions{nodes: 1, service: map[string]string{"SABOTAGE": promise}})
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

// plants are faults in the server itself.
var plants = []struct {
	name   string
	patch  harness.Patch
	faults []string // that bring them to light
	found  string
}{
	{
		name: "ack before commit",
		patch: harness.Patch{
			File: "partition/client.go",
			Old:  "	o, err := l.propose(ctx, l.planned(named))\n",
			New:  "	go func() { _, _ = l.propose(context.WithoutCancel(ctx), l.planned(named)) }()\n	o, err := machine.Outcome{}, error(nil)\n",
		},
		faults: []string{"kill-all", "kill-two", "kill-one"},
		found:  "lost: ",
	},
	{
		name: "lost dedup",
		patch: harness.Patch{
			File: "partition/machine/apply_invoke.go",
			Old:  "	known, err := m.invocation(c.ID)\n	own := ",
			New:  "	known, err := m.invocation(c.ID)\n	if c.Sink == nil {\n		known = nil\n	}\n	own := ",
		},
		faults: []string{"kill-one"},
		found:  ": ",
	},
	{
		name: "lock ignored",
		patch: harness.Patch{
			File: "partition/machine/admission.go",
			Old:  "if lock.Holder.IsZero() {",
			New:  "if lock.Holder.IsZero() || m.meta.Attempt%7 == 0 {",
		},
		found: ": ",
	},
	{
		name: "early timer",
		patch: harness.Patch{
			File: "partition/machine/apply_command.go",
			Old:  "	if c.WakeUpTime <= m.now {\n",
			New:  "	c.WakeUpTime -= 50\n	if c.WakeUpTime <= m.now {\n",
		},
		found: "early: ",
	},
}

// TestPlantedFaultsAreFound builds servers with a fault each. That takes its time; the
// short form only sees to it that the faults can still be planted.
func TestPlantedFaultsAreFound(t *testing.T) {
	for _, p := range plants {
		t.Run(p.name, func(t *testing.T) {
			if os.Getenv("CLUSTER_PLANTS") == "" {
				require.NoError(t, p.patch.Check())
				return
			}
			binary, err := harness.BuildPatched("platform/cmd/platform-server", p.patch)
			require.NoError(t, err)
			b := newBed(t, bedOptions{binary: binary})
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
