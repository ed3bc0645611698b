package otlp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	"golang.org/x/net/http/httpguts"
)

// Signal is a kind of telemetry, named as in the variables of its exporter.
type Signal string

// The signals.
const (
	Traces  Signal = "traces"
	Metrics Signal = "metrics"
	Logs    Signal = "logs"
)

// Settings say what exports, and read where to from the variables OTEL_….
type Settings struct {
	Cluster, Node, Version string
	Getenv                 func(string) string
	Log                    *slog.Logger
}

// Transport is how to reach a collector.
type Transport struct {
	HTTP     bool   // OTLP over HTTP; otherwise gRPC
	Endpoint string // URL with the scheme http or https; empty: the exporter reads it from the environment
}

var errJSON = errors.New("OTLP with JSON is not supported; use otlp+http, which every collector accepts at the same port")

// ParseEndpoint parses the URL of a collector for a signal. Its scheme selects the transport:
// http, https, grpc and grpc+otlp are OTLP over gRPC; otlp+http and otlp+https are OTLP over HTTP.
func ParseEndpoint(endpoint string, signal Signal) (Transport, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" {
		return Transport{}, fmt.Errorf("%q is not a URL such as http://localhost:4317 or otlp+http://localhost:4318/v1/%s", endpoint, signal)
	}
	t := Transport{}
	switch u.Scheme {
	case "http", "grpc", "grpc+otlp", "otlp":
		u.Scheme = "http"
	case "https", "grpcs", "otlps":
		u.Scheme = "https"
	case "otlp+http", "otlp+http+proto":
		u.Scheme, t.HTTP = "http", true
	case "otlp+https", "otlp+https+proto":
		u.Scheme, t.HTTP = "https", true
	case "otlp+http+json", "otlp+https+json":
		return Transport{}, errJSON
	default:
		return Transport{}, fmt.Errorf("unknown scheme %q: use http or https for OTLP over gRPC, otlp+http or otlp+https for OTLP over HTTP", u.Scheme)
	}
	switch noPath := u.Path == "" || u.Path == "/"; {
	case t.HTTP && noPath:
		u.Path = "/v1/" + string(signal)
	case !t.HTTP && !noPath: // it would have no effect
		return Transport{}, fmt.Errorf("%q has a path, but http and https mean OTLP over gRPC, which has none; use otlp+%s://%s%s for OTLP over HTTP", endpoint, u.Scheme, u.Host, u.Path)
	}
	t.Endpoint = u.String()
	return t, nil
}

// Transport returns how to reach the collector of a signal according to the environment; false
// if the signal is not exported.
func (s *Settings) Transport(signal Signal) (t Transport, enabled bool, err error) {
	const endpoint, protocol = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_PROTOCOL"
	upper := strings.ToUpper(string(signal))
	endpointOf, protocolOf := "OTEL_EXPORTER_OTLP_"+upper+"_ENDPOINT", "OTEL_EXPORTER_OTLP_"+upper+"_PROTOCOL"
	switch {
	case strings.EqualFold(s.Getenv("OTEL_SDK_DISABLED"), "true"), s.Getenv("OTEL_"+upper+"_EXPORTER") == "none":
		return t, false, nil
	case s.Getenv(endpoint) == "" && s.Getenv(endpointOf) == "":
		return t, false, nil
	}
	address := endpointOf
	if s.Getenv(address) == "" {
		address = endpoint
	}
	u, err := url.Parse(s.Getenv(address))
	if err != nil || u.Host == "" && u.Scheme != "unix" {
		return t, false, fmt.Errorf("%s: %q is not a URL such as http://localhost:4318", address, s.Getenv(address))
	}
	name := protocolOf
	if s.Getenv(name) == "" {
		name = protocol
	}
	switch value := s.Getenv(name); value {
	case "", "http/protobuf":
		t.HTTP = true
	case "grpc":
	case "http/json":
		return t, false, fmt.Errorf("%s: %w", name, errJSON)
	default:
		return t, false, fmt.Errorf("%s: %q is unknown; it is grpc or http/protobuf", name, value)
	}
	return t, true, s.Check(signal)
}

// Check returns an error for variables of a signal that the exporters would ignore if they are invalid.
func (s *Settings) Check(signal Signal) error {
	for _, prefix := range []string{"OTEL_EXPORTER_OTLP_", "OTEL_EXPORTER_OTLP_" + strings.ToUpper(string(signal)) + "_"} {
		if err := s.checkCertificates(prefix); err != nil {
			return err
		}
		for i, header := range strings.Split(s.Getenv(prefix+"HEADERS"), ",") {
			if strings.TrimSpace(header) != "" && !validHeader(header) { // values are secrets, so the error has none
				return fmt.Errorf("%sHEADERS: header %d is not name=value, with the value encoded as in URLs", prefix, i+1)
			}
		}
	}
	return nil
}

func (s *Settings) checkCertificates(prefix string) error {
	if path := s.Getenv(prefix + "CERTIFICATE"); path != "" {
		pem, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("%sCERTIFICATE: %w", prefix, err)
		}
		if !x509.NewCertPool().AppendCertsFromPEM(pem) {
			return fmt.Errorf("%sCERTIFICATE: %s has no certificate in PEM", prefix, path)
		}
	}
	cert, key := s.Getenv(prefix+"CLIENT_CERTIFICATE"), s.Getenv(prefix+"CLIENT_KEY")
	if (cert == "") != (key == "") {
		return fmt.Errorf("%[1]sCLIENT_CERTIFICATE and %[1]sCLIENT_KEY need each other", prefix)
	}
	if cert == "" {
		return nil
	}
	if _, err := tls.LoadX509KeyPair(cert, key); err != nil {
		return fmt.Errorf("%sCLIENT_CERTIFICATE: %w", prefix, err)
	}
	return nil
}

func validHeader(header string) bool {
	name, value, ok := strings.Cut(header, "=")
	_, err := url.PathUnescape(value)
	return ok && err == nil && httpguts.ValidHeaderFieldName(strings.TrimSpace(name))
}

// Resource describes this node to the collector.
func (s *Settings) Resource(ctx context.Context) (*resource.Resource, error) {
	fromEnv, err := resource.New(ctx, resource.WithFromEnv()) // OTEL_RESOURCE_ATTRIBUTES, OTEL_SERVICE_NAME
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	own := resource.NewSchemaless(
		attribute.String("service.name", "Platform"), attribute.String("service.namespace", s.Cluster),
		attribute.String("service.instance.id", s.Cluster+"/"+s.Node), attribute.String("service.version", s.Version),
	)
	merged, err := resource.Merge(own, fromEnv) // the environment takes precedence
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	return merged, nil
}
