package cli

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
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
	alive, dead, silent := client.Node{State: "alive", Answers: true}, client.Node{State: "dead"}, client.Node{State: "alive"}
	full := client.Node{State: "alive", Answers: true, Disk: "is full (0 B free): its replicas are closed until space is freed"}
	require.Contains(t, unavailableHint([]client.Node{alive, full}), "Free space on the full disks")
	require.Contains(t, unavailableHint([]client.Node{alive, dead}), "`platform docs cluster` describes the recovery")
	require.Contains(t, unavailableHint([]client.Node{alive}), "All nodes are up")
	require.Contains(t, unavailableHint([]client.Node{alive, silent}), "A node does not respond")
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

func TestUnknownLogTargetsAreReported(t *testing.T) {
	var stderr bytes.Buffer
	a := &app{hint: term.New(&stderr, func(string) string { return "" }, false, term.Human)}
	levels := client.LogLevels{Nodes: []client.NodeLogLevels{{Name: "n1", Targets: []string{"platform/invoker", "raft"}}, {Name: "n2", Reason: "down"}}}
	a.noteUnknownTargets("warn,platform=info,raft=off", levels)
	require.Empty(t, stderr.String())
	a.noteUnknownTargets("warn,platfrm=info", levels)
	require.Contains(t, stderr.String(), `No node has a log target "platfrm" now; `)
}

func TestSuggestionsUseTheCommandThatWasStarted(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "platform"), []byte("#!/bin/sh\n"), 0o755))
	t.Setenv("PATH", dir)
	require.Equal(t, "platform", selfCommand("/usr/bin/platform"))
	t.Setenv("PATH", t.TempDir())
	require.Equal(t, "bin/platform", selfCommand("bin/platform"))
}
