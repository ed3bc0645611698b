package admin

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/eventlog"
	"platform/internal/feature"
	"platform/metadata"
)

func TestEventsOfTheClusterAreMergedAndFiltered(t *testing.T) {
	w := atLevel4(t)
	_, err := w.store.RegisterNode(t.Context(), metadata.Node{Name: "n1", Incarnation: "i", FabricAddress: "http://n1:5122/", FeatureLevel: feature.Level4})
	require.NoError(t, err)
	at := func(s int) time.Time { return time.Unix(1_800_000_000+int64(s), 0) }
	node := func(s int, kind eventlog.Kind, name string) eventlog.Event {
		return eventlog.Event{At: at(s), Kind: kind, Node: name, Partition: eventlog.NoPartition}
	}
	elected := eventlog.Event{At: at(3), Kind: eventlog.LeaderElected, Node: "n2", Partition: 0, Detail: "term 7"}
	w.cluster.events = []NodeEvents{
		{ID: 1, Name: "n1", Events: []eventlog.Event{node(1, eventlog.NodeStarted, "n1"), node(2, eventlog.NodeDied, "n3")}},
		{ID: 2, Name: "n2", Events: []eventlog.Event{node(2, eventlog.NodeDied, "n3"), elected}},
		{ID: 3, Name: "n3", Reason: "it cannot be reached"},
	}
	all := requireStatus(t, http.StatusOK, w.ask(t, "GET", "/cluster/events", ""))
	require.JSONEq(t, `{"complete": false, "nodes": [{"id":"N1","name":"n1"},{"id":"N2","name":"n2"},{"id":"N3","name":"n3","reason":"it cannot be reached"}], "events": [
		{"at":"2027-01-15T08:00:03.000000000Z","kind":"leader_elected","node":"n2","partition":0,"detail":"term 7"},
		{"at":"2027-01-15T08:00:02.000000000Z","kind":"node_died","node":"n3"},
		{"at":"2027-01-15T08:00:01.000000000Z","kind":"node_started","node":"n1"}]}`, all)
	for query, want := range map[string]string{
		"?node=n1":             `"node_started"`,
		"?node=N1":             `"node_started"`,
		"?node=1":              `"node_started"`,
		"?partition=0":         `"leader_elected"`,
		"?limit=1":             `"leader_elected"`,
		"?node=n3":             `"node_died"`, // not a member
		"?partition=1&limit=5": `"events":[]`,
	} {
		body := requireStatus(t, http.StatusOK, w.ask(t, "GET", "/cluster/events"+query, ""))
		require.Contains(t, body, want, query)
		require.NotContains(t, body, `},{"at"`, query)
	}
	unknown := requireStatus(t, http.StatusNotFound, w.ask(t, "GET", "/cluster/events?node=n3&node=n9", ""))
	require.Contains(t, unknown, "The requested node 'n9' does not exist; the cluster has n1 (N1)")
	for _, bad := range []string{"?limit=0", "?limit=1001", "?limit=x", "?partition=-1", "?partition=x", "?other=1"} {
		requireStatus(t, http.StatusBadRequest, w.ask(t, "GET", "/cluster/events"+bad, ""))
	}
}

func TestEventsOfTheClusterNeedTheirFeatureLevel(t *testing.T) {
	w := newTestServer(t, nil)
	require.Contains(t, requireStatus(t, http.StatusConflict, w.ask(t, "GET", "/cluster/events", "")), "needs feature level 4")
}
