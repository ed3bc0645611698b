package endpoint

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// Pools of endpoints that are no longer used are dropped; a pool with connections, or of a
// request that is being sent, is kept.
func TestPoolsAreBounded(t *testing.T) {
	used := serve(t, true, func(w http.ResponseWriter, _ *http.Request) {})
	c := newClient(t, nil)
	l := listen(used)
	c.Open(l)
	require.NoError(t, <-l.ends)
	sending, err := c.pool(&Address{key: "sending"})
	require.NoError(t, err)
	for i := range 2 * maxPools {
		p, err := c.pool(&Address{key: fmt.Sprint(i)})
		require.NoError(t, err)
		c.leave(p)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	require.LessOrEqual(t, len(c.pools), maxPools)
	require.Contains(t, c.pools, used.key)
	require.Same(t, sending, c.pools["sending"])
	require.False(t, sending.closed)
}
