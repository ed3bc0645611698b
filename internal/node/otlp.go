package node

import (
	"context"
	"log/slog"
	"os"
	"sync"

	"platform/internal/config"
	"platform/internal/errcode"
	"platform/internal/otlp"
	"platform/internal/telemetry"
	"platform/internal/tracing"
	"platform/internal/version"
)

// exports are what sends telemetry to a collector. Their fields are nil if none is configured.
type exports struct {
	settings otlp.Settings
	tracer   *tracing.Tracer
	logs     *otlp.LogExport
	metrics  *otlp.MetricExport
	log      *slog.Logger
}

// openExports starts the export of spans and log records, and returns the logger for the node.
func openExports(ctx context.Context, cfg *config.Config, log *slog.Logger) (*exports, *slog.Logger, error) {
	e := &exports{log: log, settings: otlp.Settings{
		Cluster: cfg.ClusterName, Node: cfg.NodeName, Version: version.Version(),
		Getenv: os.Getenv, Log: log.With("component", "platform/otlp"),
	}}
	otlp.Report(e.settings.Log)
	var err error
	if e.tracer, err = newTracer(ctx, &cfg.Tracing, e.settings); err != nil {
		return nil, nil, errcode.New(errcode.RT0002, "configuration: %w", err)
	}
	if e.logs, err = e.settings.ExportLogs(ctx); err != nil {
		e.close()
		return nil, nil, errcode.New(errcode.RT0002, "configuration: %w", err)
	}
	if e.logs != nil {
		log = telemetry.Also(log, e.logs.Handler())
	}
	return e, log, nil
}

// newTracer returns what records spans; nil if no collector is configured.
func newTracer(ctx context.Context, c *config.Tracing, to otlp.Settings) (*tracing.Tracer, error) {
	return tracing.New(ctx, tracing.Settings{
		Endpoint: c.Endpoint, Headers: c.Headers, Ratio: (*float64)(c.Ratio),
		KeepFailed: c.KeepFailed, KeepSlow: c.KeepSlow.Std(), Export: to,
	})
}

// exportMetrics exports the metrics of the node until the returned function is called.
func (n *Node) exportMetrics(ctx context.Context) (stop func(), err error) {
	if n.metrics.registry == nil {
		return func() {}, nil
	}
	if n.exports.metrics, err = n.exports.settings.ExportMetrics(ctx, n.metrics.registry); err != nil {
		return nil, errcode.New(errcode.RT0002, "configuration: %w", err)
	}
	n.metrics.registry.MustRegister(otlp.NewCollector(n.exports.logs, n.exports.metrics))
	return n.exports.metrics.Close, nil
}

// close exports the last spans and log records, concurrently since each may take a few seconds.
func (e *exports) close() {
	var both sync.WaitGroup
	both.Go(e.logs.Close)
	both.Go(func() {
		if err := e.tracer.Close(); err != nil {
			e.log.Warn("spans were lost when the server stopped", "err", err)
		}
	})
	both.Wait()
}
