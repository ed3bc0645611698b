package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/httpserver"
)

func TestHealthQueriesTheServerOfThisConfiguration(t *testing.T) {
	status, body := http.StatusOK, ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "/health", r.URL.Path)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "http://")
	_, port, _ := strings.Cut(address, ":")

	require.NoError(t, checkHealth(t.Context(), nil, []string{"PLATFORM_ADMIN__BIND_PORT=" + port}))
	status, body = http.StatusServiceUnavailable, `{"message":"the node is stopping","platform_code":null}`
	require.EqualError(t, checkHealth(t.Context(), nil, []string{"PLATFORM_ADMIN__BIND_ADDRESS=" + address}), "not ready: the node is stopping")
	body = "<html>"
	require.EqualError(t, checkHealth(t.Context(), nil, []string{"PLATFORM_ADMIN__BIND_PORT=" + port}), "not ready: 503 Service Unavailable")

	server.Close()
	require.ErrorContains(t, checkHealth(t.Context(), nil, []string{"PLATFORM_ADMIN__BIND_PORT=" + port}), "the server does not respond")
	require.Error(t, checkHealth(t.Context(), []string{"--nonsense"}, nil))
}

func TestTheHealthCheckNeedsTheConfigurationOfTLS(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(map[string]string{"message": httpserver.RequiresTLS})
	}))
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "http://")
	require.ErrorContains(t, checkHealth(t.Context(), nil, []string{"PLATFORM_ADMIN__BIND_ADDRESS=" + address}), "requires TLS: give this command the configuration")
}

func TestReachable(t *testing.T) {
	for listen, want := range map[string]string{
		"[::]:9070": "127.0.0.1:9070", "0.0.0.0:1": "127.0.0.1:1", ":9070": "127.0.0.1:9070",
		"10.0.0.1:9070": "10.0.0.1:9070", "[::1]:9070": "[::1]:9070", "host:1": "host:1", "odd": "odd",
	} {
		require.Equal(t, want, reachable(listen))
	}
}
