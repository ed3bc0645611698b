package tracing

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEndpointsSelectTheTransport(t *testing.T) {
	for endpoint, want := range map[string]transport{
		"http://collector:4317":            {endpoint: "http://collector:4317"},
		"grpc://collector:4317":            {endpoint: "http://collector:4317"},
		"grpc+otlp://collector:4317":       {endpoint: "http://collector:4317"},
		"https://collector:4317":           {endpoint: "https://collector:4317"},
		"otlp+http://collector:4318":       {http: true, endpoint: "http://collector:4318/v1/traces"},
		"otlp+http+proto://collector:4318": {http: true, endpoint: "http://collector:4318/v1/traces"},
		"otlp+https://collector/otel/in":   {http: true, endpoint: "https://collector/otel/in"},
	} {
		got, err := parseEndpoint(endpoint)
		require.NoError(t, err, endpoint)
		require.Equal(t, want, got, endpoint)
	}
	for endpoint, want := range map[string]string{
		"collector:4317":              "is not a URL",
		"/v1/traces":                  "is not a URL",
		"udp://collector:4317":        `unknown scheme "udp"`,
		"otlp+http+json://collector/": "JSON is not supported",
	} {
		_, err := parseEndpoint(endpoint)
		require.ErrorContains(t, err, want, endpoint)
	}
}

// settings are those of an environment.
func settings(env map[string]string) *Settings {
	return &Settings{Getenv: func(name string) string { return env[name] }}
}

func TestTheEnvironmentEnablesTheExport(t *testing.T) {
	const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT"
	for _, c := range []struct {
		env     map[string]string
		want    transport
		enabled bool
	}{
		{},
		{env: map[string]string{endpoint: "http://c:4318"}, want: transport{http: true}, enabled: true},
		{env: map[string]string{endpoint: "http://c:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, enabled: true},
		{env: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}, enabled: true},
		{env: map[string]string{endpoint: "http://c", "OTEL_SDK_DISABLED": "TRUE"}},
		{env: map[string]string{endpoint: "http://c", "OTEL_TRACES_EXPORTER": "none"}},
	} {
		got, enabled, err := settings(c.env).transport()
		require.NoError(t, err, c.env)
		require.Equal(t, c.enabled, enabled, c.env)
		require.Equal(t, c.want, got, c.env)
	}
	_, _, err := settings(map[string]string{endpoint: "http://c", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}).transport()
	require.ErrorContains(t, err, "JSON is not supported")
}

func TestSamplers(t *testing.T) {
	for _, c := range []struct {
		sampler, argument string
		ratio             float64
		parentFirst       bool
	}{
		{"", "", 1, true},
		{"always_on", "", 1, false},
		{"parentbased_always_off", "", 0, true},
		{"traceidratio", "0.25", 0.25, false},
		{"parentbased_traceidratio", "0.5", 0.5, true},
	} {
		ratio, parentFirst, err := settings(map[string]string{"OTEL_TRACES_SAMPLER": c.sampler, "OTEL_TRACES_SAMPLER_ARG": c.argument}).sampler()
		require.NoError(t, err)
		require.Equal(t, c.ratio, ratio, c.sampler)
		require.Equal(t, c.parentFirst, parentFirst, c.sampler)
	}
	for sampler, argument := range map[string]string{"jaeger_remote": "", "traceidratio": "2", "parentbased_traceidratio": "NaN"} {
		_, _, err := settings(map[string]string{"OTEL_TRACES_SAMPLER": sampler, "OTEL_TRACES_SAMPLER_ARG": argument}).sampler()
		require.Error(t, err, sampler)
	}
	configured := settings(map[string]string{"OTEL_TRACES_SAMPLER": "always_off"})
	half := 0.5
	configured.Ratio = &half
	ratio, parentFirst, err := configured.sampler()
	require.NoError(t, err)
	require.Equal(t, 0.5, ratio)
	require.True(t, parentFirst)
}
