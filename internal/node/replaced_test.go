package node

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/metadata"
	"platform/test/harness/ports"
)

// TestTheReplacementOfANodeKeepsItsName removes a node, starts another one with its name, and lets the
// former one return, which has been running for longer.
func TestTheReplacementOfANodeKeepsItsName(t *testing.T) {
	c := newTestCluster(t, 3)
	c.healthy(3, 0, 1, 2)
	c.stop(2)
	former := filepath.Join(t.TempDir(), "n3")
	copyPart(t, c.dataOf(2), former)
	require.NoError(t, os.RemoveAll(c.dataOf(2)))
	code, body := c.do(0, true, "DELETE", "/cluster/nodes/n3?force=true", "")
	require.Equal(t, http.StatusOK, code, body)
	c.start(2)
	c.healthy(3, 0, 1, 2)
	for i := range 3 {
		c.stop(i)
	}

	cfg, free := *c.nodes[2].cfg, ports.Free(t, 3)
	cfg.BaseDir, cfg.BindPort, cfg.Ingress.BindPort, cfg.Admin.BindPort = filepath.Dir(former), free[0], free[1], free[2]
	c.nodes = append(c.nodes, &member{cfg: &cfg})
	c.start(3)
	require.Eventually(t, func() bool {
		code, _ := c.do(3, true, "GET", "/version", "")
		return code == http.StatusOK
	}, waitTimeout, 20*time.Millisecond)
	for i := range 3 {
		c.start(i)
	}
	c.healthy(3, 0, 1, 2)
	select {
	case err := <-c.nodes[3].done:
		require.ErrorIs(t, err, metadata.ErrNodeRemoved)
		c.nodes[3].cancel = nil
	case err := <-c.nodes[2].done:
		require.NoError(t, err, "the replacement ends")
	case <-time.After(waitTimeout):
		require.FailNow(t, "the former node continues")
	}
}
