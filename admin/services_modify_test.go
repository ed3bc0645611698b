package admin

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/feature"
	"platform/metadata"
)

func TestModifyService(t *testing.T) {
	w := seeded(t, func(c *Config) {
		defaults := metadata.StandardDefaults()
		defaults.MaxJournalRetention = ptr(48 * time.Hour)
		c.Defaults = func() *metadata.Defaults { return &defaults }
	})
	before := text(t, w.ask(t, "GET", "/services/Counter", ""))
	same := w.ask(t, "PATCH", "/services/Counter", `{}`)
	require.Equal(t, http.StatusOK, same.StatusCode)
	require.JSONEq(t, before, text(t, same))

	changed := w.ask(t, "PATCH", "/v3/services/Counter", `{
		"public": false, "idempotency_retention": "PT1H", "journal_retention": "10 days", "inactivity_timeout": "0", "abort_timeout": "1m 30s",
		"enable_lazy_state": false,
		"retry_policy": {"initial_interval": "1s", "exponentiation_factor": 3, "max_attempts": null, "max_interval": "1h", "on_max_attempts": "Kill"}}`)
	body := text(t, changed)
	require.Equal(t, http.StatusOK, changed.StatusCode, body)
	goldenJSON(t, "modified", body)
	require.JSONEq(t, body, text(t, w.ask(t, "GET", "/services/Counter", "")))
	require.Contains(t, body, `"code":"RT0022"`)

	limited := text(t, w.ask(t, "PATCH", "/services/Counter", `{"retry_policy":{"max_attempts":3}}`))
	require.Contains(t, limited, `"max_attempts":3,"max_interval":"1h"`, "what is not given stays")
	require.Contains(t, text(t, w.ask(t, "PATCH", "/services/Counter", `{"retry_policy":{"max_attempts":"unlimited"}}`)), `"max_attempts":null,"max_interval":"1h"`)
}

func TestModifyServiceRejections(t *testing.T) {
	w := seeded(t, nil)
	for _, tc := range []struct {
		name, path, body string
		status           int
		message          string
	}{
		{"unknown service", "/services/Nobody", `{}`, 404, "The requested service 'Nobody' does not exist"},
		{"not a workflow", "/services/Counter", `{"workflow_completion_retention":"1h"}`, 400, "modifying retention time for service type VirtualObject is unsupported"},
		{"bad duration", "/services/Counter", `{"abort_timeout":"soon"}`, 422, "The request field 'abort_timeout' is invalid. Reason: "},
		{"negative duration", "/services/Counter", `{"journal_retention":"-1h"}`, 422, "'journal_retention' is invalid"},
		{"duration as number", "/services/Counter", `{"abort_timeout":5}`, 422, "the field 'abort_timeout' must be a string, not a number"},
		{"bad bool", "/services/Counter", `{"public":"no"}`, 422, "the field 'public' must be a boolean, not a string"},
		{"bad interval", "/services/Counter", `{"retry_policy":{"max_interval":"x"}}`, 422, "'retry_policy.max_interval' is invalid"},
		{"order of intervals", "/services/Greeter", `{"retry_policy":{"max_interval":"1ms"}}`, 422, "initial_interval 500ms is longer than max_interval 1ms"},
		{"no attempts", "/services/Counter", `{"retry_policy":{"max_attempts":0}}`, 422, "'retry_policy.max_attempts' is invalid. Reason: it must be an integer of 1 or more"},
		{"attempts in words", "/services/Counter", `{"retry_policy":{"max_attempts":"few"}}`, 422, "'retry_policy.max_attempts' is invalid"},
		{"shrinking", "/services/Counter", `{"retry_policy":{"exponentiation_factor":0.5}}`, 422, "it must be 1 or more"},
		{"end", "/services/Counter", `{"retry_policy":{"on_max_attempts":"explode"}}`, 422, `"explode" is neither Pause nor Kill`},
		{"syntax", "/services/Counter", `{`, 400, "not valid JSON"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			answer := w.ask(t, "PATCH", tc.path, tc.body)
			body := text(t, answer)
			require.Equal(t, tc.status, answer.StatusCode, body)
			requireError(t, answer, body, "", tc.message)
		})
	}
}

func TestServicesShowWhatOverridesWhat(t *testing.T) {
	w := seeded(t, nil)
	_, err := w.store.Provision(t.Context(), metadata.Cluster{Name: "localcluster", Partitions: 2, Replication: 1, FeatureLevel: feature.Level4})
	require.NoError(t, err)
	type seen struct {
		Overridden map[string]any
		Defaults   []string `json:"server_defaults"`
	}
	patch := func(body string) (s seen) {
		t.Helper()
		require.NoError(t, json.Unmarshal([]byte(requireStatus(t, http.StatusOK, w.ask(t, "PATCH", "/services/Greeter", body))), &s))
		return s
	}
	before := patch(`{}`)
	require.Nil(t, before.Overridden)
	require.Contains(t, before.Defaults, "abort_timeout")
	require.Contains(t, before.Defaults, "retry_policy")

	after := patch(`{"abort_timeout": "1h", "public": false, "retry_policy": {"max_attempts": 3}}`)
	require.Equal(t, "10m", after.Overridden["abort_timeout"])
	require.Equal(t, true, after.Overridden["public"])
	require.EqualValues(t, 70, after.Overridden["retry_policy"].(map[string]any)["max_attempts"])
	require.Len(t, after.Overridden, 3)
	require.NotContains(t, after.Defaults, "abort_timeout")
	require.Contains(t, after.Defaults, "inactivity_timeout")

	restored := patch(`{"abort_timeout": "10m", "public": true, "retry_policy": {"max_attempts": 70}}`)
	require.Nil(t, restored.Overridden, "the options have their announced values again")
}
