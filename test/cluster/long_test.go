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

// TestLongCallsOutlastFailovers lets calls and attaches wait at one node while the two
// others are killed and restarted in turn, so that the partitions of most of them change
// their leader three times and more. All of them must be answered.
func TestLongCallsOutlastFailovers(t *testing.T) {
	b := newBed(t, bedOptions{})
	const asked = 2 // the node that is not restarted
	client := b.Nodes[asked].Client
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()

	const calls = 48
	results := make(chan error, 2*calls)
	words := make([]string, calls) // the awakeables that the calls wait for
	for i := range calls {
		name := "long-" + strconv.Itoa(i)
		body, err := json.Marshal(name)
		require.NoError(t, err)
		answer, err := client.Send(ctx, harness.Path("Waiting", "awakeable"), body, "idempotency-key", name)
		require.NoError(t, err)
		var sent harness.Sent
		require.NoError(t, answer.Decode(&sent))
		go func() {
			results <- expect(client.Call(ctx, harness.Path("Waiting", "awakeable"), body, "idempotency-key", name))
		}()
		go func() { results <- expect(client.Attach(ctx, sent.InvocationID)) }()
		require.Eventually(t, func() bool {
			values := b.results.Values(name)
			if len(values) > 0 {
				words[i] = values[0]
			}
			return len(values) > 0
		}, time.Minute, 10*time.Millisecond)
	}

	terms := make(map[int]int)
	for _, p := range state(ctx, t, b.Nodes[asked]).Partitions {
		terms[p.ID] = p.Term
	}
	for round := range number(t, "CLUSTER_FAILOVERS", 4) {
		i := round % 2
		if round%4 < 2 {
			b.Nodes[i].Kill()
			require.NoError(t, b.Nodes[i].Restart(ctx))
		} else {
			require.NoError(t, b.roll(ctx, i))
		}
		require.NoError(t, b.AwaitReplicated(ctx, wholeIn))
		require.Eventually(t, func() bool { // it leads again
			state, err := b.Nodes[asked].State(ctx)
			return err == nil && state.PartitionsLed(b.Nodes[i].Name()) > 0
		}, time.Minute, 50*time.Millisecond)
		require.Empty(t, results, "a call ended too early")
	}
	often := 0
	for _, p := range state(ctx, t, b.Nodes[asked]).Partitions {
		if p.Term-terms[p.ID] >= 3 {
			often++
		}
	}
	require.Greater(t, often, len(terms)/4, "too few partitions changed their leader three times")

	for i, id := range words {
		require.Eventually(t, func() bool {
			a, err := client.Post(ctx, "platform/awakeables/"+id+"/resolve", fmt.Appendf(nil, "%q", "word-"+strconv.Itoa(i)))
			return err == nil && a.Status == http.StatusAccepted
		}, time.Minute, 100*time.Millisecond)
	}
	for range 2 * calls {
		require.NoError(t, <-results)
	}
}

func state(ctx context.Context, t *testing.T, n *harness.Server) harness.ClusterState {
	s, err := n.State(ctx)
	require.NoError(t, err)
	return s
}

// expect turns an answer other than 200 into an error.
func expect(a harness.Response, err error) error {
	if err == nil && a.Status != http.StatusOK {
		err = fmt.Errorf("%d %s", a.Status, a.Body)
	}
	return err
}
