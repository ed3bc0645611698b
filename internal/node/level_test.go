package node

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheLevelOfAHeldClusterIsRaisedManually(t *testing.T) {
	c := newTestCluster(t, 1, "--feature-level-hold")
	c.healthy(1, 0)
	_, health := c.do(0, true, "GET", "/cluster-health", "")
	require.Contains(t, health, `"feature_level":{"level":1,"supported":4,"highest":4,"held":true,"waiting":["node n1 holds the level (feature-level-hold)"]}`)
	code, answer := c.do(0, true, "PATCH", "/cluster/config", `{"feature_level":5}`)
	require.Equal(t, http.StatusConflict, code)
	require.Contains(t, answer, "no node supports feature level 5; the highest is 4")
	code, answer = c.do(0, true, "PATCH", "/cluster/config", `{"feature_level":4}`)
	require.Equal(t, http.StatusOK, code, answer)
	code, answer = c.do(0, true, "PATCH", "/cluster/config", `{"feature_level":1}`)
	require.Equal(t, http.StatusConflict, code)
	require.Contains(t, answer, "the cluster is at feature level 4, which cannot be lowered")
	require.Equal(t, []map[string]any{{"feature_level": 4.0, "cluster_feature_level": 4.0}},
		c.sql(0, "SELECT feature_level, cluster_feature_level FROM nodes"))

	_, node := c.do(0, true, "GET", "/cluster/nodes/n1", "")
	require.Contains(t, node, `"feature_level":4,"feature_level_hold":true`)
}
