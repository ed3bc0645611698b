package cluster

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/test/cluster/load"
	"platform/test/harness"
)

// shortRounds are the faults of the short form. Restarts in order have a test of
// their own.
var shortRounds = []string{"kill-one", "isolate-one", "kill-two", "wipe-one"}

// TestMixedFaults breaks a cluster in one way after the other under load. Nothing that
// was acknowledged may be lost or happen twice, and while a majority is connected no
// request at one of its nodes may fail.
func TestMixedFaults(t *testing.T) {
	b := newBed(t, snapshotting(t))
	b.readers = true
	kinds, rounds := plan(t, b)
	all := newSummary()
	defer func() { t.Log(all.String()) }()
	for n := range rounds {
		f := kinds[n%len(kinds)]
		if !all.add(f, b.round(t, f)) && t.Failed() {
			t.Fatalf("round %d, %s, has left a cluster that cannot go on", n, f.name)
		}
	}
	require.NoError(t, all.err())
}

// frequentSnapshots cut logs so early that a replica that was away for a second
// catches up by a snapshot.
const frequentSnapshots = "checkpoint-commands=500,trailing-logs=20"

// snapshotting returns the options of a server with frequent snapshots if
// CLUSTER_SNAPSHOTS is set, otherwise those of the usual server.
func snapshotting(t *testing.T) bedOptions {
	o := bedOptions{disks: diskSize()}
	if os.Getenv("CLUSTER_SNAPSHOTS") == "" {
		return o
	}
	var err error
	o.binary, err = harness.BuildWithFailpoints("platform/cmd/platform-server")
	require.NoError(t, err)
	o.failpoints = frequentSnapshots
	return o
}

// plan returns the faults to go through and how many rounds.
func plan(t *testing.T, b *bed) ([]fault, int) {
	names := shortRounds
	if text := os.Getenv("CLUSTER_FAULTS"); text != "" {
		names = strings.Split(text, ",")
	} else if os.Getenv("CLUSTER_ROUNDS") != "" {
		names = nil
	}
	var kinds []fault
	var known, without []string
	for _, f := range faults {
		known = append(known, f.name)
		if names != nil && !slices.Contains(names, f.name) {
			continue
		}
		if err := f.possible(b); err != nil {
			without = append(without, fmt.Sprintf("without %s: %v", f.name, err))
			continue
		}
		kinds = append(kinds, f)
	}
	require.Subset(t, known, names, "CLUSTER_FAULTS names a fault that there is not")
	if len(kinds) == 0 {
		t.Skip(strings.Join(without, "\n"))
	}
	for _, missing := range without {
		t.Log(missing)
	}
	rand.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	return kinds, number(t, "CLUSTER_ROUNDS", len(kinds))
}

// result is what one round came to.
type result struct {
	load.Report
	err   error         // of the fault itself, or of the cluster that does not come back
	back  time.Duration // from the end of the fault until all nodes answered and were whole
	whole bool
}

const (
	warm      = 150                    // answered requests before a fault
	wholeIn   = 60 * time.Second       // how long the cluster may take to be whole again
	afterHeal = 500 * time.Millisecond // load on the whole cluster
)

// round puts the cluster through one fault.
func (b *bed) round(t *testing.T, f fault) (r result) {
	run := b.load(t, f.zombies)
	for begin := time.Now(); run.Acknowledged() < warm && time.Since(begin) < wholeIn; {
		pause(t.Context(), 5*time.Millisecond)
	}
	if f.outage {
		b.nodes.Outage(true)
	}
	r.err = f.inject(t.Context(), b)
	begin := time.Now()
	if err := b.mend(t.Context()); err != nil && r.err == nil {
		r.err = err
	}
	r.whole = r.err == nil
	r.back = time.Since(begin)
	pause(t.Context(), afterHeal)
	r.Report = run.Stop(t.Context())
	t.Logf("%-14s %5d answered, %3d excused, %d failed, %d violations, longest gap %s, whole after %s", f.name,
		r.OK, r.Excused, len(r.Failures), len(r.Violations), slices.Max(r.Gaps).Round(time.Millisecond), r.back.Round(time.Millisecond))
	for _, err := range r.problems() {
		t.Errorf("%s: %.3000s", f.name, err)
	}
	return r
}

// mend waits until the cluster is whole and no node is in trouble.
func (b *bed) mend(ctx context.Context) error {
	err := b.AwaitHealthy(ctx)
	if err == nil {
		err = b.AwaitReplicated(ctx, wholeIn)
	}
	for i := range b.Nodes {
		b.nodes.Well(i)
	}
	b.nodes.Outage(false)
	return err
}

func (r result) problems() []error {
	errs := slices.Clone(r.Violations)
	if r.err != nil {
		errs = append(errs, r.err)
	}
	for _, f := range r.Failures {
		errs = append(errs, fmt.Errorf("failed request: %s", f))
	}
	return errs
}

// summary is what all rounds came to, by kind of fault.
type summary struct {
	kinds map[string]*kindSummary
}

type kindSummary struct {
	name              string
	limit             time.Duration
	outage            bool
	rounds            int
	answered, excused int
	failed            int
	lost, doubled     int
	violations        int
	gaps, back        []time.Duration
}

// requests are all that reached a node, or should have.
func (k *kindSummary) requests() int { return k.answered + k.excused + k.failed }

func newSummary() *summary { return &summary{kinds: map[string]*kindSummary{}} }

// add takes a round in and says whether the cluster is fit for another.
func (s *summary) add(f fault, r result) bool {
	k := s.kinds[f.name]
	if k == nil {
		k = &kindSummary{name: f.name, limit: f.gap, outage: f.outage}
		s.kinds[f.name] = k
	}
	k.rounds++
	k.answered += r.OK
	k.excused += r.Excused
	k.failed += len(r.Failures)
	k.lost += r.Count("lost")
	k.doubled += r.Count("duplicate")
	k.violations += len(r.Violations)
	k.gaps = append(k.gaps, r.Gaps...)
	k.back = append(k.back, r.back)
	return r.whole
}

// err says what is wrong, by kind of fault.
func (s *summary) err() error {
	for _, k := range s.sorted() {
		if k.failed+k.lost+k.doubled+k.violations > 0 {
			return fmt.Errorf("%s: %d requests failed though a majority was connected, %d effects lost, %d doubled, %d violations in all", k.name, k.failed, k.lost, k.doubled, k.violations)
		}
		if worst := quantile(k.gaps, 0.99); k.limit > 0 && worst > k.limit {
			return fmt.Errorf("%s: a key was without an answer for %s (p99), more than %s", k.name, worst, k.limit)
		}
		if share := float64(k.answered) / float64(k.requests()); !k.outage && share < 0.3 {
			return fmt.Errorf("%s: only %.0f %% of the requests were answered, which proves little", k.name, 100*share)
		}
	}
	return nil
}

func (s *summary) sorted() []*kindSummary {
	var list []*kindSummary
	for _, k := range s.kinds {
		list = append(list, k)
	}
	slices.SortFunc(list, func(a, b *kindSummary) int { return cmp.Compare(a.name, b.name) })
	return list
}

// String is a table. Excused are requests that failed at the node that was broken, or
// anywhere while no majority was left; any other failure fails the test, as do lost and
// doubled effects. Gaps are of keys, from one answer to the next.
func (s *summary) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%-14s %6s %9s %9s %8s %7s %5s %8s %11s  %-26s %s\n", "fault", "rounds", "requests", "answered", "excused", "failed", "lost", "doubled", "violations", "gap p50 / p99 / max", "whole again p50 / max")
	for _, k := range s.sorted() {
		fmt.Fprintf(&b, "%-14s %6d %9d %9d %8d %7d %5d %8d %11d  %-26s %s / %s\n", k.name, k.rounds, k.requests(), k.answered, k.excused, k.failed, k.lost, k.doubled, k.violations,
			fmt.Sprintf("%s / %s / %s", quantile(k.gaps, 0.5), quantile(k.gaps, 0.99), quantile(k.gaps, 1)), quantile(k.back, 0.5), quantile(k.back, 1))
	}
	return b.String()
}

// quantile returns the q-quantile of durations, which it sorts.
func quantile(d []time.Duration, q float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[min(len(d)-1, int(q*float64(len(d))))].Round(time.Millisecond)
}
