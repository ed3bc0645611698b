package partition

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"platform/internal/stats"
	"platform/partition/journal"
	"platform/partition/machine"
)

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
