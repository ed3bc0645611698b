package admin

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLogLevels(t *testing.T) {
	w := threeNodes(t, nil)
	const path = "/cluster/log-levels"
	body := requireStatus(t, http.StatusOK, w.ask(t, "GET", path, ""))
	require.Nil(t, w.cluster.logChange)
	require.Contains(t, body, `{"nodes":[{"id":"N1","name":"n1","log_filter":"debug","configured_log_filter":"info","targets":["fabric"]},`)

	w.cluster.logUntil = time.UnixMilli(1000)
	body = requireStatus(t, http.StatusOK, w.ask(t, "PUT", path, `{"log_filter": "warn,fabric=debug", "for": "10m", "nodes": ["n2", "1"]}`))
	require.Equal(t, &LogLevelsChange{Filter: "warn,fabric=debug", For: 10 * time.Minute}, w.cluster.logChange)
	require.JSONEq(t, `{"nodes": [
		{"id": "N2", "name": "n2", "log_filter": "debug", "configured_log_filter": "info", "until": "1970-01-01T00:00:01.000000000Z", "targets": ["fabric"]},
		{"id": "N1", "name": "n1", "reason": "it does not respond"}]}`, body)

	requireStatus(t, http.StatusOK, w.ask(t, "DELETE", path+"?node=n1", ""))
	require.Equal(t, new(LogLevelsChange), w.cluster.logChange)

	w.cluster.logChange = nil
	for bad, status := range map[string]int{
		`{}`: 422, `{"log_filter": ""}`: 422, `{"log_filter": "loud"}`: 422, `{"log_filter": 3}`: 422, `{"log_filter": "info", "for": "1ms"}`: 422,
		`{"log_filter": "info", "for": "8d"}`: 422, `{"log_filter": "info", "until": "x"}`: 422, `{"log_filter": "info", "nodes": ["n9"]}`: 404, `{`: 400,
	} {
		requireStatus(t, status, w.ask(t, "PUT", path, bad))
	}
	requireStatus(t, http.StatusNotFound, w.ask(t, "GET", path+"?node=n9", ""))
	require.Nil(t, w.cluster.logChange)
}
