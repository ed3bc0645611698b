package cli

import (
	"bytes"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
)

func TestFeatureText(t *testing.T) {
	a := &app{print: term.New(&bytes.Buffer{}, func(string) string { return "" }, false, term.Human)}
	for want, f := range map[string]*client.FeatureLevel{
		"1":                      nil,
		"2":                      {Level: 2, Supported: 2, Highest: 2},
		"1, about to become 2":   {Level: 1, Supported: 2, Highest: 2},
		"1, not 2: node n2 is x": {Level: 1, Supported: 1, Highest: 2, Waiting: []string{"node n2 is x"}},
	} {
		require.Equal(t, want, a.featureText(f))
	}
	require.Contains(t, a.featureText(&client.FeatureLevel{Level: 2, Highest: 2, Since: time.UnixMilli(1_700_000_000_000)}), "2 since ")
}

func TestHintOfAnUnavailableCluster(t *testing.T) {
	alive, dead := client.Node{State: "alive"}, client.Node{State: "dead"}
	full := client.Node{State: "alive", Disk: "is full (0 B free): its replicas are closed until space is freed"}
	require.Contains(t, unavailableHint([]client.Node{alive, full}), "Free space on the full disks")
	require.Contains(t, unavailableHint([]client.Node{alive, dead}), "`platform docs cluster` describes the recovery")
	require.Contains(t, unavailableHint([]client.Node{alive}), "All nodes are up")
}

func TestNodesThatHoldTheLevelAreMarked(t *testing.T) {
	require.Equal(t, "-", nodeLevel(client.Node{}))
	require.Equal(t, "2", nodeLevel(client.Node{FeatureLevel: 2}))
	require.Equal(t, "2*", nodeLevel(client.Node{FeatureLevel: 2, FeatureHold: true}))
}

func TestProvisionOfAnExistingClusterDoesNotPrompt(t *testing.T) {
	a, out := at(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(`{"name":"c","num_partitions":8,"replication":3}`))
	})
	require.NoError(t, a.provision(t.Context(), client.Provisioning{}))
	require.Equal(t, "Nothing was changed: the cluster c exists already, with 8 partitions and replication 3\n", out.String())
}
