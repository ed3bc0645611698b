package cluster

import (
	"context"
	"encoding/json"
	"net/http"
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
	limitOfScope = 5
	crowdCallers = 64
	stayTime     = 200 * time.Millisecond
)

// TestALimitHoldsAndIsUsed lets many more call than a rule admits. While nodes that
// lead are killed there are never more inside than the rule says; while nothing is
// broken a slot that is given back is taken again within the time of a call.
func TestALimitHoldsAndIsUsed(t *testing.T) {
	b := newBed(t, bedOptions{env: map[string]string{
		"EXPERIMENTAL_ENABLE_PROTOCOL_V7": "true", "EXPERIMENTAL_ENABLE_VQUEUES": "true",
		"DEFAULT_NUM_PARTITIONS": "1", // whoever leads it leads the scope's
	}})
	b.limit(t, "tenant", limitOfScope)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	var callers sync.WaitGroup
	defer callers.Wait()
	defer end()
	for i := range crowdCallers {
		callers.Go(func() { b.visitCrowd(ctx, t, i) })
	}
	require.Eventually(t, func() bool { return b.crowd(t).Completed >= 2*limitOfScope }, 30*time.Second, 10*time.Millisecond)
	b.requireBusy(t)

	for range number(t, "CLUSTER_KILLS", 3) {
		b.killLeader(t)
		left := b.crowd(t).Completed
		require.Eventually(t, func() bool { return b.crowd(t).Completed >= left+2*limitOfScope }, 30*time.Second, 10*time.Millisecond)
	}
	seen := b.crowd(t)
	t.Logf("with kills: most at once %d, %d stays", seen.Peak, seen.Completed)
	require.Equal(t, limitOfScope, seen.Peak)
}

// visitCrowd calls again and again. A call that fails is repeated at another node, as
// the same one.
func (b *bed) visitCrowd(ctx context.Context, t *testing.T, caller int) {
	body := []byte(strconv.FormatInt(int64(stayTime), 10))
	for n := 0; ctx.Err() == nil; n++ {
		once := strconv.Itoa(caller) + "-" + strconv.Itoa(n)
		for at := caller; ctx.Err() == nil; at++ {
			client := b.Nodes[at%len(b.Nodes)].Client
			answer, err := client.Post(ctx, b.Nodes[0].Target.Prefix+"/scope/tenant/call/Slots/hold", body, "idempotency-key", once)
			if err == nil && answer.Status == http.StatusOK {
				break
			}
			if err == nil && answer.Status < http.StatusInternalServerError {
				t.Errorf("stay: %d %s", answer.Status, answer.Body)
				return
			}
			pause(ctx, 20*time.Millisecond)
		}
	}
}

// requireBusy wants a stretch of time in which the slots are in use. On a busy machine
// not every stretch will do.
func (b *bed) requireBusy(t *testing.T) {
	for range 4 {
		if b.busy(t, 3*time.Second) {
			return
		}
	}
	require.Fail(t, "slots stay free although many wait for one")
}

// busy watches for how much of the time that there is the slots are in use. Whenever one
// changes hands the server needs about what it needs for a call that does nothing,
// which on a busy machine may be long.
func (b *bed) busy(t *testing.T, d time.Duration) bool {
	calls := 0
	first, begin := b.crowd(t), time.Now()
	last := first
	for time.Since(begin) < d {
		last = b.crowd(t)
		calls++
	}
	took := time.Since(begin)
	stays, there, spent := last.Completed-first.Completed, limitOfScope*took, last.Held-first.Held
	share := float64(spent) / float64(there)
	call, gap := took/time.Duration(calls), (there-spent)/time.Duration(max(stays, 1))
	t.Logf("%.1f stays/s, slots in use %.1f %% of the time, given on after %s on average; a call takes %s",
		float64(stays)/took.Seconds(), 100*share, gap.Round(time.Microsecond), call.Round(time.Microsecond))
	require.Equal(t, limitOfScope, last.Peak)
	return share >= 0.95 || gap <= 2*call
}

// crowd asks any node that answers who has been inside.
func (b *bed) crowd(t *testing.T) (seen history.SlotUsage) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for at := 0; ; at++ {
		answer, err := b.Nodes[at%len(b.Nodes)].Client.Call(ctx, harness.Path("Slots", "report"), nil)
		if err == nil && answer.Status == http.StatusOK {
			require.NoError(t, json.Unmarshal(answer.Body, &seen))
			return seen
		}
		require.True(t, pause(ctx, 5*time.Millisecond), "nobody reports: %v %s", err, answer.Body)
	}
}

// limit sets the rule of a scope.
func (b *bed) limit(t *testing.T, scope string, concurrency int) {
	body := `[{"pattern":"` + scope + `","limits":{"concurrency":` + strconv.Itoa(concurrency) + `}}]`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, b.Nodes[0].Admin()+"/limits/rules", strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("content-type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)
}

// killLeader kills the node that leads the only partition and starts it again.
func (b *bed) killLeader(t *testing.T) {
	leader := -1
	require.Eventually(t, func() bool {
		for i, n := range b.Nodes {
			if state, err := n.State(t.Context()); err == nil && state.PartitionsLed(n.Name()) > 0 {
				leader = i
				return true
			}
		}
		return false
	}, 30*time.Second, 10*time.Millisecond)
	b.Nodes[leader].Kill()
	pause(t.Context(), among(100*time.Millisecond, time.Second))
	require.NoError(t, b.Nodes[leader].Restart(t.Context()))
}
