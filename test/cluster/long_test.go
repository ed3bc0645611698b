package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/test/harness"
)

// TestLongCallsSurviveFailovers keeps calls and attaches waiting at one node while the
// other nodes are killed and restarted in turn, so that many partitions change their
// leader at least three times. All calls must complete.
func TestLongCallsSurviveFailovers(t *testing.T) {
	b := newTestbed(t, testbedOptions{})
	const stableNode = 2 // not restarted
	client := b.Nodes[stableNode].Client
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()

	const calls = 48
	results := make(chan error, 2*calls)
	awakeables := make([]string, calls) // awakeables that the calls wait for
	for i := range calls {
		name := "long-" + strconv.Itoa(i)
		body, err := json.Marshal(name)
		require.NoError(t, err)
		resp, err := client.Send(ctx, harness.Path("Waiting", "awakeable"), body, "idempotency-key", name)
		require.NoError(t, err)
		var sent harness.Sent
		require.NoError(t, resp.Decode(&sent))
		go func() {
			results <- checkOK(client.Call(ctx, harness.Path("Waiting", "awakeable"), body, "idempotency-key", name))
		}()
		go func() { results <- checkOK(client.Attach(ctx, sent.InvocationID)) }()
		require.Eventually(t, func() bool {
			values := b.results.Values(name)
			if len(values) > 0 {
				awakeables[i] = values[0]
			}
			return len(values) > 0
		}, time.Minute, 10*time.Millisecond)
	}

	terms := make(map[int]int)
	for _, p := range clusterState(ctx, t, b.Nodes[stableNode]).Partitions {
		terms[p.ID] = p.Term
	}
	// Each round moves the leadership of some partitions, how many depends on how quickly the
	// cluster balances them again.
	rounds := intSetting(t, "CLUSTER_FAILOVERS", 4)
	for round := 0; round < rounds || round < 4*rounds && !b.changedLeaders(ctx, t, stableNode, terms); round++ {
		i := round % 2
		if round%4 < 2 {
			b.Nodes[i].Kill()
			require.NoError(t, b.Nodes[i].Restart(ctx))
		} else {
			require.NoError(t, b.restartGracefully(ctx, i))
		}
		require.NoError(t, b.AwaitReplicated(ctx, recoveryTimeout))
		require.Eventually(t, func() bool { // it leads again
			state, err := b.Nodes[stableNode].State(ctx)
			return err == nil && state.PartitionsLed(b.Nodes[i].Name()) > 0
		}, time.Minute, 50*time.Millisecond)
		require.Empty(t, results, "a call completed too early")
	}
	require.True(t, b.changedLeaders(ctx, t, stableNode, terms), "too few partitions changed their leader three times")

	for i, id := range awakeables {
		require.Eventually(t, func() bool {
			a, err := client.Post(ctx, "platform/awakeables/"+id+"/resolve", fmt.Appendf(nil, "%q", "word-"+strconv.Itoa(i)))
			return err == nil && a.Status == http.StatusAccepted
		}, time.Minute, 100*time.Millisecond)
	}
	for range 2 * calls {
		require.NoError(t, <-results)
	}
}

// changedLeaders reports whether more than a quarter of the partitions have changed their
// leader at least three times since the given terms.
func (b *testbed) changedLeaders(ctx context.Context, t *testing.T, node int, terms map[int]int) bool {
	changed := 0
	for _, p := range clusterState(ctx, t, b.Nodes[node]).Partitions {
		if p.Term-terms[p.ID] >= 3 {
			changed++
		}
	}
	return changed > len(terms)/4
}

func clusterState(ctx context.Context, t *testing.T, n *harness.Server) harness.ClusterState {
	s, err := n.State(ctx)
	require.NoError(t, err)
	return s
}

// checkOK returns an error for a response other than 200.
func checkOK(a harness.Response, err error) error {
	if err == nil && a.Status != http.StatusOK {
		err = fmt.Errorf("%d %s", a.Status, a.Body)
	}
	return err
}
