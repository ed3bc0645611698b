package partition

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"platform/flowcontrol"
	"platform/partition/listing"
	"platform/partition/machine"
)

// The metrics have what runs and waits, and how much of a limit is used.
func TestUnfinishedInvocationsAndLimitsAreCountedForMetrics(t *testing.T) {
	g := &gated{release: make(chan struct{})}
	c := newTestNodeWith(t, 1, func(cfg *Config) { cfg.Flow.Enable = true }, g.service())
	p := c.partitions[0]
	const limit, calls = 2, 5
	setRules(t, p, 1, flowcontrol.Rule{Pattern: flowcontrol.Pattern{Scope: "s"}, Limits: flowcontrol.Limits{Concurrency: limit}, Version: 1})
	census := NewCensus(func() iter.Seq[*Partition] { return slices.Values([]*Partition{p}) }, func() []string { return []string{"Idle"} })
	census.pause = 0
	registry := prometheus.NewRegistry()
	registry.MustRegister(census.Collector())
	samples := func() string {
		families, err := registry.Gather()
		require.NoError(t, err)
		var lines []string
		for _, family := range families {
			for _, m := range family.Metric {
				var labels []string
				for _, l := range m.Label {
					labels = append(labels, l.GetValue())
				}
				if value := m.GetGauge().GetValue(); value != 0 {
					lines = append(lines, fmt.Sprintf("%s %s %g", family.GetName(), strings.Join(labels, " "), value))
				}
			}
		}
		return strings.Join(lines, "\n")
	}
	require.Empty(t, samples(), "nothing is counted yet")
	var running sync.WaitGroup
	running.Go(func() { _ = census.Run(t.Context()) })
	t.Cleanup(running.Wait)
	var done sync.WaitGroup
	for range calls {
		done.Go(func() {
			_, o, err := p.Call(t.Context(), scoped("s", "a"))
			if err != nil || o.Code != machine.OK {
				t.Errorf("%v %v", o.Code, err)
			}
		})
	}
	const want = `platform_invocations Gated pending 3
platform_invocations Gated running 2
platform_limit_usage s 1
platform_limit_waiting_invocations s 3`
	var last string
	require.Eventually(t, func() bool { last = samples(); return last == want }, time.Minute, 5*time.Millisecond, &last)
	close(g.release)
	done.Wait()
	require.Eventually(t, func() bool { last = samples(); return last == "" }, time.Minute, 5*time.Millisecond, &last)
	families, err := registry.Gather()
	require.NoError(t, err)
	require.Equal(t, "platform_invocations", families[0].GetName())
	require.Len(t, families[0].Metric, 2*7, "services without invocations have zeros")
}

// The names are in records, which are in memory that the database uses again.
func TestCountsKeepNoReferenceToRecords(t *testing.T) {
	counts := serviceCounts{}
	record := []byte("Greeter")
	counts.add(unsafe.String(&record[0], len(record)), listing.Running)
	copy(record, "\xff\x00other")
	counts.add("Greeter", listing.Running)
	require.Equal(t, []string{"Greeter"}, slices.Collect(maps.Keys(counts)))
	require.Equal(t, 2, counts["Greeter"][listing.Running])
}
