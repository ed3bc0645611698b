package node

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestChangesAreKnownEverywhere makes changes on each node in turn and checks immediately that the
// others have them.
func TestChangesAreKnownEverywhere(t *testing.T) {
	c := newTestCluster(t, 3)
	c.healthy(3, 0, 1, 2)
	c.counter(0)
	for round := range 30 {
		want := fmt.Sprintf(`"idempotency_retention":"%dm"`, round+1)
		code, body := c.do(round%3, true, "PATCH", "/services/Counter", "{"+want+"}")
		require.Equal(t, http.StatusOK, code, body)
		for i := range c.nodes {
			_, body := c.do(i, true, "GET", "/services/Counter", "")
			require.Contains(t, body, want, "node %d does not know of change %d", i, round)
		}
	}
}

// TestChangesDoNotWaitForDeadNodes makes changes while a node is down.
func TestChangesDoNotWaitForDeadNodes(t *testing.T) {
	c := newTestCluster(t, 3)
	c.healthy(3, 0, 1, 2)
	c.counter(0)
	c.stop(2)
	code, body := c.do(0, true, "PATCH", "/services/Counter", `{"public":false}`)
	require.Equal(t, http.StatusOK, code, body)
	code, body = c.do(1, false, "POST", "/platform/call/Counter/a/add", "1")
	require.Equal(t, http.StatusBadRequest, code, body)
	require.Contains(t, body, "not public")
}
