package cluster

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/test/harness"
	"platform/test/history"
)

const (
	scopeLimit  = 5
	callerCount = 64
	holdTime    = 200 * time.Millisecond
)

// TestConcurrencyLimitAcrossFailovers makes more concurrent calls than a rule admits.
// While leaders are killed, the limit must never be exceeded. The long form requires that
// without faults a released slot is reused within the time of a call.
func TestConcurrencyLimitAcrossFailovers(t *testing.T) {
	b := newTestbed(t, testbedOptions{env: map[string]string{
		"EXPERIMENTAL_ENABLE_PROTOCOL_V7": "true", "EXPERIMENTAL_ENABLE_VQUEUES": "true",
		"DEFAULT_NUM_PARTITIONS": "1", // so that its leader is the leader of the scope
	}})
	b.setLimit(t, "tenant", scopeLimit)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var callers sync.WaitGroup
	defer callers.Wait()
	defer cancel()
	for i := range callerCount {
		callers.Go(func() { b.callRepeatedly(ctx, t, i) })
	}
	b.awaitSlotUsage(t, func(u history.SlotUsage) bool { return u.Peak >= scopeLimit && u.Completed >= 2*scopeLimit })
	if os.Getenv("CLUSTER_KILLS") != "" {
		b.requireUtilization(t)
	}

	for range intSetting(t, "CLUSTER_KILLS", 3) {
		b.killLeader(t)
		completed := b.slotUsage(t).Completed
		b.awaitSlotUsage(t, func(u history.SlotUsage) bool { return u.Completed >= completed+2*scopeLimit })
	}
	usage := b.slotUsage(t)
	t.Logf("with kills: peak concurrency %d, %d completed", usage.Peak, usage.Completed)
	require.Equal(t, scopeLimit, usage.Peak)
}

// callRepeatedly makes calls that hold a slot. It retries failed calls at another node
func (b *testbed) callRepeatedly(ctx context.Context, t *testing.T, caller int) {
	body := []byte(strconv.FormatInt(int64(holdTime), 10))
	for n := 0; ctx.Err() == nil; n++ {
		key := strconv.Itoa(caller) + "-" + strconv.Itoa(n)
		for attempt := caller; ctx.Err() == nil; attempt++ {
			client := b.Nodes[attempt%len(b.Nodes)].Client
			resp, err := client.Post(ctx, b.Nodes[0].Target.Prefix+"/scope/tenant/call/Slots/hold", body, "idempotency-key", key)
			if err == nil && resp.Status == http.StatusOK {
				break
			}
			if err == nil && resp.Status < http.StatusInternalServerError {
				t.Errorf("hold: %d %s", resp.Status, resp.Body)
				return
			}
			harness.Sleep(ctx, 20*time.Millisecond)
		}
	}
}

// requireUtilization requires one interval with high utilization. On a busy machine not
// every interval has it.
func (b *testbed) requireUtilization(t *testing.T) {
	for range 4 {
		if b.measureUtilization(t, 3*time.Second) {
			return
		}
	}
	require.Fail(t, "slots are unused although callers are waiting")
}

// measureUtilization reports whether the slots are in use for most of d. Reassigning a
// slot takes the server about as long as a call without work, which can be long on a
// busy machine.
func (b *testbed) measureUtilization(t *testing.T, d time.Duration) bool {
	calls := 0
	first, begin := b.slotUsage(t), time.Now()
	last := first
	for time.Since(begin) < d {
		last = b.slotUsage(t)
		calls++
	}
	elapsed := time.Since(begin)
	completed, capacity, held := last.Completed-first.Completed, scopeLimit*elapsed, last.Held-first.Held
	utilization := float64(held) / float64(capacity)
	callTime, gap := elapsed/time.Duration(calls), (capacity-held)/time.Duration(max(completed, 1))
	t.Logf("%.1f completed/s, utilization %.1f %%, slots reassigned after %s on average; a call takes %s",
		float64(completed)/elapsed.Seconds(), 100*utilization, gap.Round(time.Microsecond), callTime.Round(time.Microsecond))
	require.Equal(t, scopeLimit, last.Peak)
	return utilization >= 0.95 || gap <= 2*callTime
}

// awaitSlotUsage waits until a report meets a condition.
func (b *testbed) awaitSlotUsage(t *testing.T, condition func(history.SlotUsage) bool) {
	t.Helper()
	require.Eventually(t, func() bool { return condition(b.slotUsage(t)) }, recoveryTimeout, 10*time.Millisecond)
}

// slotUsage returns the report of the service, through any available node.
func (b *testbed) slotUsage(t *testing.T) (usage history.SlotUsage) {
	ctx, cancel := context.WithTimeout(t.Context(), recoveryTimeout)
	defer cancel()
	for i := 0; ; i++ {
		resp, err := b.Nodes[i%len(b.Nodes)].Client.Call(ctx, harness.Path("Slots", "report"), nil)
		if err == nil && resp.Status == http.StatusOK {
			require.NoError(t, json.Unmarshal(resp.Body, &usage))
			return usage
		}
		require.True(t, harness.Sleep(ctx, 5*time.Millisecond), "no report: %v %s", err, resp.Body)
	}
}

// setLimit sets the concurrency limit of a scope.
func (b *testbed) setLimit(t *testing.T, scope string, concurrency int) {
	body := `[{"pattern":"` + scope + `","limits":{"concurrency":` + strconv.Itoa(concurrency) + `}}]`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, b.Nodes[0].Admin()+"/limits/rules", strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("content-type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)
}

// killLeader kills and restarts the leader of the only partition.
func (b *testbed) killLeader(t *testing.T) {
	leader := -1
	require.Eventually(t, func() bool {
		for i, n := range b.Nodes {
			if state, err := n.State(t.Context()); err == nil && state.PartitionsLed(n.Name()) > 0 {
				leader = i
				return true
			}
		}
		return false
	}, recoveryTimeout, 10*time.Millisecond)
	b.Nodes[leader].Kill()
	harness.Sleep(t.Context(), randomDuration(100*time.Millisecond, time.Second))
	require.NoError(t, b.Nodes[leader].Restart(t.Context()))
}
