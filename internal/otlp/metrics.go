package otlp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	bridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"

	"platform/internal/logsample"
)

// MetricExport exports the metrics of a Prometheus registry every OTEL_METRIC_EXPORT_INTERVAL,
// by default once a minute. A nil *MetricExport exports none, and its methods may be called.
type MetricExport struct {
	provider *metric.MeterProvider
	reporter *reporter
}

// ExportMetrics starts the export, or returns nil if the environment names no collector. It does
// not connect yet: if the collector cannot be reached, only metrics are lost.
func (s *Settings) ExportMetrics(ctx context.Context, metrics prometheus.Gatherer) (*MetricExport, error) {
	to, enabled, err := s.Transport(Metrics)
	if err != nil || !enabled {
		return nil, err
	}
	about, err := s.Resource(ctx)
	if err != nil {
		return nil, err
	}
	exporter, err := newMetricExporter(ctx, to)
	if err != nil {
		return nil, fmt.Errorf("export metrics: %w", err)
	}
	r := &reporter{Exporter: exporter, log: s.Log, sampler: logsample.New[struct{}](1, time.Minute, 1)}
	source := producer{bridge.NewMetricProducer(bridge.WithGatherer(metrics))}
	return &MetricExport{
		provider: metric.NewMeterProvider(metric.WithResource(about), metric.WithReader(metric.NewPeriodicReader(r, metric.WithProducer(source)))),
		reporter: r,
	}, nil
}

// producer decodes the trace IDs of exemplars, which the bridge copies as hexadecimal text.
type producer struct{ metric.Producer }

// Produce implements metric.Producer.
func (p producer) Produce(ctx context.Context) ([]metricdata.ScopeMetrics, error) {
	scopes, err := p.Producer.Produce(ctx)
	for _, scope := range scopes {
		for _, m := range scope.Metrics {
			histogram, ok := m.Data.(metricdata.Histogram[float64])
			if !ok {
				continue
			}
			for _, point := range histogram.DataPoints {
				decodeTraces(point.Exemplars)
			}
		}
	}
	return scopes, err
}

func decodeTraces(exemplars []metricdata.Exemplar[float64]) {
	for i, e := range exemplars {
		if id, err := trace.TraceIDFromHex(string(e.TraceID)); err == nil {
			exemplars[i].TraceID = id[:]
		}
	}
}

func newMetricExporter(ctx context.Context, to Transport) (metric.Exporter, error) {
	if to.HTTP {
		return otlpmetrichttp.New(ctx)
	}
	return otlpmetricgrpc.New(ctx)
}

// Close exports a last time, within a short time, and ends.
func (m *MetricExport) Close() {
	if m == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	if err := m.provider.Shutdown(ctx); err != nil {
		m.reporter.log.Warn("metrics could not be exported when the server stopped", "err", err)
	}
}

// Counts returns how often metrics were exported or failed to be.
func (m *MetricExport) Counts() Counts {
	if m == nil {
		return Counts{}
	}
	return Counts{Exported: m.reporter.exported.Load(), Failed: m.reporter.failed.Load()}
}

// reporter counts and logs failures of an exporter, which the SDK would report to a handler that
// is global.
type reporter struct {
	metric.Exporter
	log              *slog.Logger
	sampler          *logsample.Sampler[struct{}]
	exported, failed atomic.Uint64
}

// Export implements metric.Exporter.
func (r *reporter) Export(ctx context.Context, metrics *metricdata.ResourceMetrics) error {
	err := r.Exporter.Export(ctx, metrics)
	if err == nil {
		r.exported.Add(1)
		return nil
	}
	if errors.Is(err, context.Canceled) {
		return nil // by Close, which exports once more
	}
	r.failed.Add(1)
	if held, admitted := r.sampler.Admit(struct{}{}, time.Now()); admitted {
		r.log.Warn("metrics could not be exported", "similar_not_shown", held, "err", err)
	}
	return nil
}
