package tracing

import (
	"context"
	"crypto/tls"
	"encoding/hex"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	logscollector "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	metricscollector "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	tracescollector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"platform/test/harness"
	"platform/test/harness/ports"
)

// signals is an OTLP collector that keeps log records and the last value of each metric.
type signals struct {
	mu        sync.Mutex
	records   []*logs.LogRecord
	metrics   map[string]*metrics.Metric
	instances map[string]bool
	spans     int
	teams     map[string]bool // values of the header x-team, with the signal
}

type (
	logsService struct {
		logscollector.UnimplementedLogsServiceServer
		*signals
	}
	metricsService struct {
		metricscollector.UnimplementedMetricsServiceServer
		*signals
	}
	tracesService struct {
		tracescollector.UnimplementedTraceServiceServer
		*signals
	}
)

// Export implements the service over gRPC.
func (s logsService) Export(_ context.Context, in *logscollector.ExportLogsServiceRequest) (*logscollector.ExportLogsServiceResponse, error) {
	s.addLogs(in)
	return &logscollector.ExportLogsServiceResponse{}, nil
}

// Export implements the service over gRPC.
func (s metricsService) Export(_ context.Context, in *metricscollector.ExportMetricsServiceRequest) (*metricscollector.ExportMetricsServiceResponse, error) {
	s.addMetrics(in)
	return &metricscollector.ExportMetricsServiceResponse{}, nil
}

// Export implements the service over gRPC.
func (s tracesService) Export(context.Context, *tracescollector.ExportTraceServiceRequest) (*tracescollector.ExportTraceServiceResponse, error) {
	s.addSpans()
	return &tracescollector.ExportTraceServiceResponse{}, nil
}

func (s *signals) addSpans() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spans++
}

// intercept notes the headers of a call over gRPC.
func (s *signals) intercept(ctx context.Context, in any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	headers, _ := metadata.FromIncomingContext(ctx)
	signal := strings.Split(info.FullMethod, ".")[3] // of opentelemetry.proto.collector.SIGNAL.v1
	if signal == "trace" {
		signal = "traces"
	}
	s.note(signal, headers.Get("x-team"))
	return next(ctx, in)
}

func (s *signals) note(signal string, teams []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, team := range teams {
		s.teams[signal+" "+team] = true
	}
}

// from reports whether all signals came with a header x-team.
func (s *signals) from(team string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.teams["traces "+team] && s.teams["metrics "+team] && s.teams["logs "+team]
}

func (s *signals) addLogs(in *logscollector.ExportLogsServiceRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range in.ResourceLogs {
		s.instances[valueOf(of.Resource.Attributes, "service.instance.id")] = true
		for _, scope := range of.ScopeLogs {
			s.records = append(s.records, scope.LogRecords...)
		}
	}
}

func (s *signals) addMetrics(in *metricscollector.ExportMetricsServiceRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range in.ResourceMetrics {
		s.instances[valueOf(of.Resource.Attributes, "service.instance.id")] = true
		for _, scope := range of.ScopeMetrics {
			for _, m := range scope.Metrics {
				s.metrics[m.Name] = m
			}
		}
	}
}

func (s *signals) post(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var in proto.Message
	switch r.URL.Path {
	case "/v1/logs":
		in = &logscollector.ExportLogsServiceRequest{}
	case "/v1/metrics":
		in = &metricscollector.ExportMetricsServiceRequest{}
	default:
		in = &tracescollector.ExportTraceServiceRequest{}
	}
	if err != nil || proto.Unmarshal(body, in) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.note(strings.TrimPrefix(r.URL.Path, "/v1/"), r.Header.Values("x-team"))
	w.Header().Set("Content-Type", "application/x-protobuf")
	switch in := in.(type) {
	case *logscollector.ExportLogsServiceRequest:
		s.addLogs(in)
	case *metricscollector.ExportMetricsServiceRequest:
		s.addMetrics(in)
	default:
		s.addSpans()
	}
}

// record returns the log record with a message.
func (s *signals) record(message string) *logs.LogRecord {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.records {
		if r.Body.GetStringValue() == message {
			return r
		}
	}
	return nil
}

// requests returns how many calls the exported histogram of requests has, and its exemplars.
func (s *signals) requests() (count uint64, exemplars []*metrics.Exemplar) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.metrics["platform_ingress_request_duration_seconds"].GetHistogram().GetDataPoints() {
		if valueOf(p.Attributes, "request") == "call" {
			count, exemplars = p.Count, p.Exemplars
		}
	}
	return count, exemplars
}

// newSignals starts the collector, and returns the variables that name it.
func newSignals(t *testing.T, protocol string) (*signals, map[string]string) {
	return newSignalsTLS(t, protocol, nil)
}

// newSignalsTLS is like newSignals. If secure is not nil, the collector requires TLS.
func newSignalsTLS(t *testing.T, protocol string, secure *tls.Config) (*signals, map[string]string) {
	s := &signals{metrics: map[string]*metrics.Metric{}, instances: map[string]bool{}, teams: map[string]bool{}}
	var address string
	scheme := "http"
	if secure != nil {
		scheme = "https"
	}
	if protocol == "grpc" {
		options := []grpc.ServerOption{grpc.UnaryInterceptor(s.intercept)}
		if secure != nil {
			options = append(options, grpc.Creds(credentials.NewTLS(secure)))
		}
		server := grpc.NewServer(options...)
		logscollector.RegisterLogsServiceServer(server, logsService{signals: s})
		metricscollector.RegisterMetricsServiceServer(server, metricsService{signals: s})
		tracescollector.RegisterTraceServiceServer(server, tracesService{signals: s})
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		go func() { _ = server.Serve(ln) }()
		t.Cleanup(server.Stop)
		address = ln.Addr().String()
	} else {
		server := httptest.NewUnstartedServer(http.HandlerFunc(s.post))
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		if server.TLS = secure; secure != nil {
			server.StartTLS()
		} else {
			server.Start()
		}
		t.Cleanup(server.Close)
		address = server.Listener.Addr().String()
	}
	return s, map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": scheme + "://" + address, "OTEL_EXPORTER_OTLP_PROTOCOL": protocol, "OTEL_METRIC_EXPORT_INTERVAL": "200",
	}
}

// startWith starts a server with variables that are not part of its configuration.
func startWith(t *testing.T, env, config map[string]string) *harness.Server {
	for name, value := range env {
		t.Setenv(name, value)
	}
	return harness.ServerFor(t, config)
}

// TestMetricsAndLogsAreExported compares what a collector receives with the calls made.
func TestMetricsAndLogsAreExported(t *testing.T) {
	for _, protocol := range []string{"grpc", "http/protobuf"} {
		t.Run(protocol, func(t *testing.T) {
			collector, env := newSignals(t, protocol)
			server := startWith(t, env, nil)
			handlers := &services{}
			handlers.failures.Store(1)
			require.NoError(t, server.Register(t.Context(), handlers.serve(t), false))
			_, err := server.Client.Send(t.Context(), "Traced/flaky", nil, headers(trace)...)
			require.NoError(t, err)
			for range 3 {
				_, err := server.Client.Call(t.Context(), "Traced/greet", []byte(`"x"`), headers(trace)...)
				require.NoError(t, err)
			}
			await(t, func() bool { count, _ := collector.requests(); return count == 3 })
			_, exemplars := collector.requests()
			require.NotEmpty(t, exemplars)
			require.Equal(t, trace, hex.EncodeToString(exemplars[0].TraceId))
			await(t, func() bool { return collector.record("server ready") != nil })
			ready := collector.record("server ready")
			require.Equal(t, logs.SeverityNumber_SEVERITY_NUMBER_INFO, ready.SeverityNumber)
			require.Equal(t, server.Admin()+"/", valueOf(ready.Attributes, "admin"))
			await(t, func() bool { return collector.record("attempt failed") != nil })
			require.Equal(t, trace, hex.EncodeToString(collector.record("attempt failed").TraceId))
			require.NoError(t, server.Stop())
			collector.mu.Lock()
			defer collector.mu.Unlock()
			require.Len(t, collector.instances, 1)
			require.Contains(t, collector.metrics, "go_goroutines")
			require.Len(t, collector.metrics["platform_otlp_exports_total"].GetSum().GetDataPoints(), 6)
		})
	}
}

// TestSignalsAreExportedSeparately disables two of them.
func TestSignalsAreExportedSeparately(t *testing.T) {
	collector, env := newSignals(t, "grpc")
	env["OTEL_LOGS_EXPORTER"], env["OTEL_TRACES_EXPORTER"] = "none", "none"
	server := startWith(t, env, nil)
	require.NoError(t, server.Register(t.Context(), (&services{}).serve(t), false))
	_, err := server.Client.Call(t.Context(), "Traced/greet", []byte(`"x"`), headers(trace)...)
	require.NoError(t, err)
	await(t, func() bool { count, _ := collector.requests(); return count == 1 })
	require.NoError(t, server.Stop())
	collector.mu.Lock()
	defer collector.mu.Unlock()
	require.Empty(t, collector.records)
	require.Zero(t, collector.spans)
}

// TestNoCollectorDelaysAServer has one that refuses connections, and one that accepts them and
// never responds.
func TestNoCollectorDelaysAServer(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	hanging := ln.Addr().String()
	t.Cleanup(func() { _ = ln.Close() })
	for name, address := range map[string]string{"hanging": hanging, "gone": ports.Address(t)} {
		for _, protocol := range []string{"grpc", "http/protobuf"} {
			t.Run(name+" "+protocol, func(t *testing.T) {
				server := startWith(t, map[string]string{
					"OTEL_EXPORTER_OTLP_ENDPOINT": "http://" + address, "OTEL_EXPORTER_OTLP_PROTOCOL": protocol, "OTEL_METRIC_EXPORT_INTERVAL": "50",
				}, map[string]string{"LOG_FILTER": "trace"})
				require.NoError(t, server.Register(t.Context(), (&services{}).serve(t), false))
				for range 300 {
					r, err := server.Client.Call(t.Context(), "Traced/greet", []byte(`"x"`), headers(trace)...)
					require.NoError(t, err)
					require.Equal(t, http.StatusOK, r.Status)
				}
				begin := time.Now()
				require.NoError(t, server.Stop())
				require.Less(t, time.Since(begin), 30*time.Second)
			})
		}
	}
}
