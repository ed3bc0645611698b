package metrics

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

func TestMetricsHaveTheLabelsOfTheRegistry(t *testing.T) {
	response := httptest.NewRecorder()
	NewRegistry(prometheus.Labels{"node_name": "n1"}).Handler().ServeHTTP(response, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	require.Equal(t, 200, response.Code)
	require.Contains(t, response.Body.String(), `go_goroutines{node_name="n1"} `)
	require.NotContains(t, response.Body.String(), `errors_total{cause="encoding"}`, "the handler's metrics lack the labels")
}

func TestExemplarsAreServed(t *testing.T) {
	registry := NewRegistry(nil)
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "h"})
	registry.MustRegister(h)
	h.(prometheus.ExemplarObserver).ObserveWithExemplar(1, prometheus.Labels{"trace_id": "abc"})
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	r.Header.Set("Accept", "application/openmetrics-text")
	w := httptest.NewRecorder()
	registry.Handler().ServeHTTP(w, r)
	require.Contains(t, w.Body.String(), `# {trace_id="abc"} 1.0`)
}

func TestCollectorsMayShareAMetric(t *testing.T) {
	registry := NewRegistry(nil)
	for i, pool := range []string{"invoker", "bodies"} {
		d := PoolUsage(pool)
		registry.MustRegister(NewCollector(func(out Values) { out.Gauge(d, float64(i)) }, d))
	}
	response := httptest.NewRecorder()
	registry.Handler().ServeHTTP(response, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	require.Contains(t, response.Body.String(), "platform_memory_pool_usage_bytes{name=\"bodies\"} 1\nplatform_memory_pool_usage_bytes{name=\"invoker\"} 0\n")
}
