package cluster

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
)

func TestFeatureText(t *testing.T) {
	a := &commands{App: &command.App{Print: term.New(&bytes.Buffer{}, func(string) string { return "" }, false, term.Human)}}
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

// Waiting does not repeat a request that cannot succeed, but one that meets a node that starts.
func TestWaitingEndsWithRequestsThatAreRefused(t *testing.T) {
	requests, status := 0, http.StatusUnauthorized
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests++; requests == 4 {
			_, _ = w.Write([]byte(`{"status":"healthy"}`))
			return
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(`{"message":"no"}`))
	}))
	defer server.Close()
	admin := client.New(client.Options{AdminURL: server.URL, ConnectTimeout: time.Minute, RequestTimeout: time.Minute, Log: slog.New(slog.DiscardHandler)})
	a := &commands{App: &command.App{Client: admin, Print: term.New(&bytes.Buffer{}, func(string) string { return "" }, false, term.Human)}}
	_, _, err := a.health(t.Context(), time.Hour, 0)
	require.ErrorContains(t, err, "no")
	require.ErrorContains(t, a.awaitDrained(t.Context(), "n3", time.Hour), "no")
	require.Equal(t, 2, requests)
	status = http.StatusServiceUnavailable
	health, _, err := a.health(t.Context(), time.Hour, 0)
	require.NoError(t, err)
	require.Equal(t, "healthy", health.Status)
}

// A node that has just been started is not a member yet, and the cluster is healthy without it.
func TestWaitingForNodesThatJoin(t *testing.T) {
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		body := `{"status":"healthy","nodes":[{"id":"N1"},{"id":"N2"},{"id":"N3"}]}`
		if requests > 2 {
			body = `{"status":"healthy","nodes":[{"id":"N1"},{"id":"N2"},{"id":"N3"},{"id":"N4"}]}`
		}
		_, _ = w.Write([]byte(body))
	}))
	defer server.Close()
	admin := client.New(client.Options{AdminURL: server.URL, ConnectTimeout: time.Minute, RequestTimeout: time.Minute, Log: slog.New(slog.DiscardHandler)})
	a := &commands{App: &command.App{Client: admin, Print: term.New(&bytes.Buffer{}, func(string) string { return "" }, false, term.Human)}}
	health, _, err := a.health(t.Context(), time.Hour, 4)
	require.NoError(t, err)
	require.Len(t, health.Nodes, 4)
	require.Equal(t, 3, requests)
}

func TestProvisionOfAnExistingClusterDoesNotPrompt(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(`{"name":"c","num_partitions":8,"replication":3}`))
	}))
	defer server.Close()
	var out bytes.Buffer
	a := &commands{App: &command.App{
		Print:  term.New(&out, func(string) string { return "" }, false, term.Human),
		Client: client.New(client.Options{AdminURL: server.URL, ConnectTimeout: time.Minute, RequestTimeout: time.Minute, Log: slog.New(slog.DiscardHandler)}),
	}}
	require.NoError(t, a.provision(t.Context(), client.Provisioning{}))
	require.Equal(t, "Nothing was changed: the cluster c exists already, with 8 partitions and replication 3\n", out.String())
}

func TestUnknownLogTargetsAreReported(t *testing.T) {
	var stderr bytes.Buffer
	a := &commands{App: &command.App{Hint: term.New(&stderr, func(string) string { return "" }, false, term.Human)}}
	levels := client.LogLevels{Nodes: []client.NodeLogLevels{{Name: "n1", Targets: []string{"platform/invoker", "raft"}}, {Name: "n2", Reason: "down"}}}
	a.noteUnknownTargets("warn,platform=info,raft=off", levels)
	require.Empty(t, stderr.String())
	a.noteUnknownTargets("warn,platfrm=info", levels)
	require.Contains(t, stderr.String(), `No node has a log target "platfrm" now; `)
}

func TestUnknownLagIsNoNumber(t *testing.T) {
	nodes := []client.Node{{ID: 1, Name: "n1"}, {ID: 2, Name: "n2"}, {ID: 3, Name: "n3"}}
	leader := client.Replica{Node: 1, Role: "leader", LagKnown: true}
	for want, others := range map[string][]client.Replica{
		"0":               nil,
		"7":               {{Node: 2, Role: "voter", LagKnown: true, Lag: 7}, {Node: 3, Role: "voter", LagKnown: true}},
		"7, unknown: n3":  {{Node: 2, Role: "voter", LagKnown: true, Lag: 7}, {Node: 3, Role: "voter", Lag: 5000}},
		"unknown: n2, n3": {{Node: 2, Role: "learner"}, {Node: 3, Role: "voter"}},
		"unknown: n2":     {{Node: 2, Role: "voter"}, {Node: 3, Role: "none"}},
	} {
		require.Equal(t, want, replicaLag(client.PartitionState{Leader: 1, Replicas: append([]client.Replica{leader}, others...)}, nodes))
	}
}
