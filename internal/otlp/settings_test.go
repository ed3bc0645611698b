package otlp

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEndpointsSelectTheTransport(t *testing.T) {
	for endpoint, want := range map[string]Transport{
		"http://collector:4317":            {Endpoint: "http://collector:4317"},
		"grpc://collector:4317":            {Endpoint: "http://collector:4317"},
		"grpc+otlp://collector:4317":       {Endpoint: "http://collector:4317"},
		"https://collector:4317":           {Endpoint: "https://collector:4317"},
		"otlp+http://collector:4318":       {HTTP: true, Endpoint: "http://collector:4318/v1/traces"},
		"otlp+http+proto://collector:4318": {HTTP: true, Endpoint: "http://collector:4318/v1/traces"},
		"otlp+https://collector/otel/in":   {HTTP: true, Endpoint: "https://collector/otel/in"},
	} {
		got, err := ParseEndpoint(endpoint, Traces)
		require.NoError(t, err, endpoint)
		require.Equal(t, want, got, endpoint)
	}
	for endpoint, want := range map[string]string{
		"collector:4317":              "is not a URL",
		"/v1/traces":                  "is not a URL",
		"http://c:4318/v1/traces":     "use otlp+http://c:4318/v1/traces",
		"udp://collector:4317":        `unknown scheme "udp"`,
		"otlp+http+json://collector/": "JSON is not supported",
	} {
		_, err := ParseEndpoint(endpoint, Traces)
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
		want    Transport
		enabled bool
	}{
		{},
		{env: map[string]string{endpoint: "http://c:4318"}, want: Transport{HTTP: true}, enabled: true},
		{env: map[string]string{endpoint: "http://c:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, enabled: true},
		{env: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}, enabled: true},
		{env: map[string]string{endpoint: "http://c", "OTEL_SDK_DISABLED": "TRUE"}},
		{env: map[string]string{endpoint: "http://c", "OTEL_TRACES_EXPORTER": "none"}},
	} {
		got, enabled, err := settings(c.env).Transport(Traces)
		require.NoError(t, err, c.env)
		require.Equal(t, c.enabled, enabled, c.env)
		require.Equal(t, c.want, got, c.env)
	}
	_, _, err := settings(map[string]string{endpoint: "http://c", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}).Transport(Traces)
	require.ErrorContains(t, err, "JSON is not supported")
	_, _, err = settings(map[string]string{endpoint: "localhost:4318"}).Transport(Traces)
	require.ErrorContains(t, err, `OTEL_EXPORTER_OTLP_ENDPOINT: "localhost:4318" is not a URL`)
}

// The exporters would write invalid ones to the standard error output and ignore them.
func TestInvalidVariablesAreErrors(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.pem")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	for _, c := range []struct {
		name, value, want string
	}{
		{"OTEL_EXPORTER_OTLP_CERTIFICATE", "/none.pem", "OTEL_EXPORTER_OTLP_CERTIFICATE: open /none.pem"},
		{"OTEL_EXPORTER_OTLP_CERTIFICATE", empty, "has no certificate in PEM"},
		{"OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", "/none.pem", "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE: open"},
		{"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", empty, "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and OTEL_EXPORTER_OTLP_CLIENT_KEY need each other"},
		{"OTEL_EXPORTER_OTLP_HEADERS", "a=1,secret", "OTEL_EXPORTER_OTLP_HEADERS: header 2 is not name=value"},
		{"OTEL_EXPORTER_OTLP_HEADERS", "a b=secret", "header 1 is not"},
		{"OTEL_EXPORTER_OTLP_TRACES_HEADERS", "a=secret%", "OTEL_EXPORTER_OTLP_TRACES_HEADERS: header 1 is not"},
	} {
		err := settings(map[string]string{c.name: c.value}).Check(Traces)
		require.ErrorContains(t, err, c.want)
		require.NotContains(t, err.Error(), "secret")
	}
	require.ErrorContains(t, settings(map[string]string{
		"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": empty, "OTEL_EXPORTER_OTLP_CLIENT_KEY": empty,
	}).Check(Traces), "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE: tls:")
	require.NoError(t, settings(map[string]string{
		"OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20abc, x-empty=,", "OTEL_EXPORTER_OTLP_METRICS_CERTIFICATE": "/none.pem",
	}).Check(Traces))
}
