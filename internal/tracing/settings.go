package tracing

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Settings say which spans are exported, and where to.
type Settings struct {
	// Endpoint is the URL of a collector. Its scheme selects the transport: http, https,
	// grpc and grpc+otlp are OTLP over gRPC; otlp+http and otlp+https are OTLP over HTTP.
	// Empty: what the variables OTEL_EXPORTER_OTLP_… say, otherwise nothing is exported.
	Endpoint string
	Headers  map[string]string // of the requests to the collector
	// Ratio of the traces that begin at this cluster and are recorded, 0 to 1; nil: what
	// OTEL_TRACES_SAMPLER says, otherwise all. A trace that a caller began is recorded if
	// the caller records it.
	Ratio *float64
	// KeepFailed records failed invocations and attempts of traces that are not recorded.
	KeepFailed bool
	// KeepSlow records invocations that take at least this long likewise; 0: none.
	KeepSlow time.Duration

	Cluster, Node, Version string
	Getenv                 func(string) string
	Log                    *slog.Logger
}

// transport is how to reach a collector.
type transport struct {
	http     bool   // OTLP over HTTP; otherwise gRPC
	endpoint string // URL with the scheme http or https; empty: from the environment
}

var errJSON = errors.New("OTLP with JSON is not supported; use otlp+http, which every collector accepts at the same port")

func parseEndpoint(endpoint string) (transport, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" {
		return transport{}, fmt.Errorf("%q is not a URL such as http://localhost:4317 or otlp+http://localhost:4318/v1/traces", endpoint)
	}
	t := transport{}
	switch u.Scheme {
	case "http", "grpc", "grpc+otlp", "otlp":
		u.Scheme = "http"
	case "https", "grpcs", "otlps":
		u.Scheme = "https"
	case "otlp+http", "otlp+http+proto":
		u.Scheme, t.http = "http", true
	case "otlp+https", "otlp+https+proto":
		u.Scheme, t.http = "https", true
	case "otlp+http+json", "otlp+https+json":
		return transport{}, errJSON
	default:
		return transport{}, fmt.Errorf("unknown scheme %q: use http or https for OTLP over gRPC, otlp+http or otlp+https for OTLP over HTTP", u.Scheme)
	}
	if t.http && (u.Path == "" || u.Path == "/") {
		u.Path = "/v1/traces"
	}
	t.endpoint = u.String()
	return t, nil
}

// transport returns how to reach the collector; false if nothing is exported.
func (s *Settings) transport() (t transport, enabled bool, err error) {
	if s.Endpoint != "" {
		if t, err = parseEndpoint(s.Endpoint); err != nil {
			return t, false, fmt.Errorf("tracing-endpoint: %w", err)
		}
		return t, true, nil
	}
	switch {
	case strings.EqualFold(s.Getenv("OTEL_SDK_DISABLED"), "true"), s.Getenv("OTEL_TRACES_EXPORTER") == "none":
		return t, false, nil
	case s.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && s.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == "":
		return t, false, nil
	}
	protocol := s.Getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL")
	if protocol == "" {
		protocol = s.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL")
	}
	switch protocol {
	case "", "http/protobuf":
		t.http = true
	case "grpc":
	case "http/json":
		return t, false, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL: %w", errJSON)
	default:
		return t, false, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL: %q is unknown; it is grpc or http/protobuf", protocol)
	}
	return t, true, nil
}

// sampler returns the share of new traces to record, and whether the decision of a caller
// takes precedence.
func (s *Settings) sampler() (ratio float64, parentFirst bool, err error) {
	if s.Ratio != nil {
		return *s.Ratio, true, nil
	}
	kind, parentFirst := strings.CutPrefix(s.Getenv("OTEL_TRACES_SAMPLER"), "parentbased_")
	switch kind {
	case "":
		return 1, true, nil
	case "always_on":
		return 1, parentFirst, nil
	case "always_off":
		return 0, parentFirst, nil
	case "traceidratio":
		text := s.Getenv("OTEL_TRACES_SAMPLER_ARG")
		if text == "" {
			return 1, parentFirst, nil
		}
		ratio, err = strconv.ParseFloat(text, 64)
		if err != nil || !(ratio >= 0 && ratio <= 1) {
			return 0, false, fmt.Errorf("OTEL_TRACES_SAMPLER_ARG: %q is not a number from 0 to 1", text)
		}
		return ratio, parentFirst, nil
	}
	return 0, false, fmt.Errorf("OTEL_TRACES_SAMPLER: %q is unknown; it is always_on, always_off or traceidratio, also with the prefix parentbased_", kind)
}
