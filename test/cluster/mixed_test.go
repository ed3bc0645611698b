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

// shortFaults are the faults of the short form. Graceful restarts have a separate test.
var shortFaults = []string{"kill-one", "isolate-one", "kill-two", "wipe-one"}

// TestMixedFaults injects one fault after another under load. No acknowledged effect may
// be lost or duplicated, and while a majority is connected no request to one of its nodes
// may fail.
func TestMixedFaults(t *testing.T) {
	b := newTestbed(t, snapshotOptions(t))
	b.directReads = true
	kinds, rounds := selectFaults(t, b)
	total := newSummary()
	defer func() { t.Log(total.String()) }()
	for n := range rounds {
		f := kinds[n%len(kinds)]
		if !total.add(f, b.round(t, f)) && t.Failed() {
			t.Fatalf("round %d: the cluster did not recover from %s", n, f.name)
		}
	}
	require.NoError(t, total.err())
}

// frequentSnapshots truncates logs so early that a replica that was away for a second
// catches up by a snapshot.
const frequentSnapshots = "checkpoint-commands=500,trailing-logs=20"

// snapshotOptions returns options for a server with frequent snapshots if
// CLUSTER_SNAPSHOTS is set, otherwise for the default server.
func snapshotOptions(t *testing.T) testbedOptions {
	o := testbedOptions{diskSize: defaultDiskSize()}
	if os.Getenv("CLUSTER_SNAPSHOTS") == "" {
		return o
	}
	var err error
	o.binary, err = harness.BuildWithFailpoints("platform/cmd/platform-server")
	require.NoError(t, err)
	o.failpoints = frequentSnapshots
	return o
}

// selectFaults returns the faults to inject and the number of rounds.
func selectFaults(t *testing.T, b *testbed) ([]fault, int) {
	names := shortFaults
	if text := os.Getenv("CLUSTER_FAULTS"); text != "" {
		names = strings.Split(text, ",")
	} else if os.Getenv("CLUSTER_ROUNDS") != "" {
		names = nil
	}
	var kinds []fault
	var known, skipped []string
	for _, f := range faults {
		known = append(known, f.name)
		if names != nil && !slices.Contains(names, f.name) {
			continue
		}
		if err := f.supported(b); err != nil {
			skipped = append(skipped, fmt.Sprintf("skipped %s: %v", f.name, err))
			continue
		}
		kinds = append(kinds, f)
	}
	require.Subset(t, known, names, "CLUSTER_FAULTS names an unknown fault")
	if len(kinds) == 0 {
		t.Skip(strings.Join(skipped, "\n"))
	}
	for _, reason := range skipped {
		t.Log(reason)
	}
	rand.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	return kinds, intSetting(t, "CLUSTER_ROUNDS", len(kinds))
}

// roundResult is the result of one round.
type roundResult struct {
	load.Report
	err       error         // from injecting the fault or from waiting for recovery
	recovery  time.Duration // from the end of the fault until all nodes were healthy and replicated
	recovered bool
}

const (
	warmupRequests    = 150                    // successful requests before a fault
	recoveryTimeout   = 60 * time.Second       // limit for the recovery of the cluster
	loadAfterRecovery = 500 * time.Millisecond // duration of load after recovery
	maxFailuresShown  = 20                     // failed requests of a round; an outage can have hundreds of thousands
)

// round injects one fault under load and reports problems.
func (b *testbed) round(t *testing.T, f fault) (r roundResult) {
	run := b.startLoad(t, f.zombies)
	for begin := time.Now(); time.Since(begin) < recoveryTimeout; harness.Sleep(t.Context(), 5*time.Millisecond) {
		if small, large := run.Succeeded(); small >= warmupRequests && large >= b.largeCallers {
			break
		}
	}
	if f.quorumLoss {
		b.targets.SetQuorumLost(true)
	}
	r.err = f.inject(t.Context(), b)
	begin := time.Now()
	if err := b.awaitRecoveryOf(t.Context(), f); err != nil && r.err == nil {
		r.err = err
	}
	r.recovered = r.err == nil
	r.recovery = time.Since(begin)
	harness.Sleep(t.Context(), loadAfterRecovery)
	r.Report = run.Stop(t.Context())
	t.Logf("%-14s %5d succeeded, %3d tolerated, %d failed, %d violations, longest gap %s, recovered after %s", f.name,
		r.OK, r.Tolerated, len(r.Failures), len(r.Violations), r.Longest, r.recovery.Round(time.Millisecond))
	if b.largeCallers > 0 {
		t.Logf("%-14s %5d large calls, %d requests repeated", "", r.LargeOK, r.LargeRepeated)
	}
	for _, err := range r.problems() {
		t.Errorf("%s: %.3000s", f.name, err)
	}
	return r
}

// awaitRecovery waits until the cluster is healthy and fully replicated, and marks all
// nodes healthy.
func (b *testbed) awaitRecovery(ctx context.Context) error {
	return b.awaitRecoveryOf(ctx, fault{})
}

// awaitRecoveryOf is awaitRecovery for a fault. If nodes may exit because of it, it restarts those that
// have: a process that decided to exit just before the end of the fault can still respond after it.
func (b *testbed) awaitRecoveryOf(ctx context.Context, f fault) error {
	err := b.awaitReplicas(ctx)
	if err != nil && f.mayExit && b.restartExited(ctx) {
		err = b.awaitReplicas(ctx)
	}
	for i := range b.Nodes {
		b.targets.MarkHealthy(i)
	}
	b.targets.SetQuorumLost(false)
	return err
}

// awaitReplicas waits until all nodes are healthy and have their replicas.
func (b *testbed) awaitReplicas(ctx context.Context) error {
	if err := b.AwaitHealthy(ctx); err != nil {
		return err
	}
	return b.AwaitReplicated(ctx, recoveryTimeout)
}

// restartExited restarts the nodes that have exited. It returns false if there is none, or if one does
// not start.
func (b *testbed) restartExited(ctx context.Context) bool {
	restarted := false
	for _, n := range b.Nodes {
		select {
		case <-n.Process.Exited():
			if n.Restart(ctx) != nil {
				return false
			}
			restarted = true
		default:
		}
	}
	return restarted
}

func (r roundResult) problems() []error {
	errs := slices.Clone(r.Violations)
	if r.err != nil {
		errs = append(errs, r.err)
	}
	for _, f := range r.Failures[:min(len(r.Failures), maxFailuresShown)] {
		errs = append(errs, fmt.Errorf("failed request: %s", f))
	}
	if hidden := len(r.Failures) - maxFailuresShown; hidden > 0 {
		errs = append(errs, fmt.Errorf("%d more failed requests", hidden))
	}
	return errs
}

// summary aggregates the results of all rounds by kind of fault.
type summary struct {
	kinds map[string]*faultSummary
}

type faultSummary struct {
	name                 string
	maxGap               time.Duration
	quorumLoss           bool
	rounds               int
	succeeded, tolerated int
	failed               int
	lost, duplicates     int
	violations           int
	gaps, recoveries     []time.Duration
}

const (
	// minGapSamples is the number of gaps from which on their 99th percentile says more than
	// their maximum, and is compared with the limit of the fault.
	minGapSamples = 200
	// maxOutage limits each gap while a majority is available. A key that is unavailable for
	// longer does not wait for a slow machine.
	maxOutage = 30 * time.Second
)

// checkGaps returns an error if keys were unavailable for too long. The limit of the fault
// is only meaningful for many rounds on a machine that is not overloaded.
func (k *faultSummary) checkGaps() error {
	if worst := quantile(k.gaps, 1); !k.quorumLoss && worst > maxOutage {
		return fmt.Errorf("%s: a key was unavailable for %s, more than %s", k.name, worst, maxOutage)
	}
	if worst := quantile(k.gaps, 0.99); len(k.gaps) >= minGapSamples && k.maxGap > 0 && worst > k.maxGap {
		return fmt.Errorf("%s: a key was unavailable for %s (p99), more than %s", k.name, worst, k.maxGap)
	}
	return nil
}

// requests returns the number of requests that reached a node or should have.
func (k *faultSummary) requests() int { return k.succeeded + k.tolerated + k.failed }

func newSummary() *summary { return &summary{kinds: map[string]*faultSummary{}} }

// add adds a round and reports whether the cluster recovered.
func (s *summary) add(f fault, r roundResult) bool {
	k := s.kinds[f.name]
	if k == nil {
		k = &faultSummary{name: f.name, maxGap: f.maxGap, quorumLoss: f.quorumLoss}
		s.kinds[f.name] = k
	}
	k.rounds++
	k.succeeded += r.OK
	k.tolerated += r.Tolerated
	k.failed += len(r.Failures)
	k.lost += r.Count("lost")
	k.duplicates += r.Count("duplicate")
	k.violations += len(r.Violations)
	k.gaps = append(k.gaps, r.Gaps...)
	k.recoveries = append(k.recoveries, r.recovery)
	return r.recovered
}

// err returns the first problem, by kind of fault.
func (s *summary) err() error {
	for _, k := range s.sorted() {
		if k.failed+k.lost+k.duplicates+k.violations > 0 {
			return fmt.Errorf("%s: %d requests failed although a majority was connected, %d effects lost, %d duplicated, %d violations in total", k.name, k.failed, k.lost, k.duplicates, k.violations)
		}
		if err := k.checkGaps(); err != nil {
			return err
		}
		if share := float64(k.succeeded) / float64(k.requests()); !k.quorumLoss && share < 0.3 {
			return fmt.Errorf("%s: only %.0f %% of the requests succeeded, too few for a meaningful result", k.name, 100*share)
		}
	}
	return nil
}

func (s *summary) sorted() []*faultSummary {
	var list []*faultSummary
	for _, k := range s.kinds {
		list = append(list, k)
	}
	slices.SortFunc(list, func(a, b *faultSummary) int { return cmp.Compare(a.name, b.name) })
	return list
}

// String returns a table. Tolerated requests failed at a faulty node, or anywhere during a
// loss of quorum; any other failure fails the test, as do lost and duplicate effects. A
// gap is the time between successive responses for one key.
func (s *summary) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%-18s %6s %9s %9s %9s %7s %5s %5s %11s  %-26s %s\n", "fault", "rounds", "requests", "succeeded", "tolerated", "failed", "lost", "dup", "violations", "gap p50 / p99 / max", "recovery p50 / max")
	for _, k := range s.sorted() {
		fmt.Fprintf(&b, "%-18s %6d %9d %9d %9d %7d %5d %5d %11d  %-26s %s / %s\n", k.name, k.rounds, k.requests(), k.succeeded, k.tolerated, k.failed, k.lost, k.duplicates, k.violations,
			fmt.Sprintf("%s / %s / %s", quantile(k.gaps, 0.5), quantile(k.gaps, 0.99), quantile(k.gaps, 1)), quantile(k.recoveries, 0.5), quantile(k.recoveries, 1))
	}
	return b.String()
}

// quantile sorts durations and returns their q-quantile.
func quantile(d []time.Duration, q float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[min(len(d)-1, int(q*float64(len(d))))].Round(time.Millisecond)
}
