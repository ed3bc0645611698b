package partition

import (
	"math"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"platform/internal/stats"
	"platform/partition/journal"
	"platform/partition/machine"
)

// An invocation that was cancelled long before it was due took no time.
func TestTheDelayOfAnInvocationIsNotItsDuration(t *testing.T) {
	reg := prometheus.NewRegistry()
	o := observer{stats: stats.NewCounters(stats.NewHandlers(reg, "p", true))}
	for _, due := range []int64{1_800_000_000_000, math.MaxInt64/2 + 1, math.MaxInt64} {
		o.ended(&machine.Finish{Target: machine.Target{Service: "S", Handler: "h"}, Stopped: true, DueAt: due, EndedAt: 1_700_000_000_000})
	}
	families, err := reg.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() == "p_invocation_duration_seconds" {
			require.EqualValues(t, 3, f.GetMetric()[0].GetHistogram().GetSampleCount())
			require.Zero(t, f.GetMetric()[0].GetHistogram().GetSampleSum())
			return
		}
	}
	t.Fatal("there is no such metric")
}

// What an operator or a client ends does not count as a failure of the handler.
func TestCancelledInvocationsAreNotCountedAsFailed(t *testing.T) {
	reg := prometheus.NewRegistry()
	o := observer{stats: stats.NewCounters(stats.NewHandlers(reg, "p", true))}
	failed := journal.Result{Failure: &journal.Failure{Code: 409, Message: "killed"}}
	for _, e := range []machine.Finish{{Result: failed, Stopped: true}, {Result: failed}, {}} {
		e.Target = machine.Target{Service: "S", Handler: "h"}
		o.ended(&e)
	}
	require.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP p_invocations_completed_total Invocations that ended on partitions led by this node, by result: success, failure, or cancelled, which includes killed.
# TYPE p_invocations_completed_total counter
p_invocations_completed_total{handler="h",result="cancelled",service="S"} 1
p_invocations_completed_total{handler="h",result="failure",service="S"} 1
p_invocations_completed_total{handler="h",result="success",service="S"} 1
`), "p_invocations_completed_total"))
}
