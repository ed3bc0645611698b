package node

import (
	"context"
	"log/slog"
	"os"

	"platform/internal/config"
	"platform/internal/errcode"
	"platform/internal/tracing"
	"platform/internal/version"
)

// newTracer returns what records spans; nil if no collector is configured.
func newTracer(ctx context.Context, cfg *config.Config, log *slog.Logger) (*tracing.Tracer, error) {
	c := &cfg.Tracing
	tracer, err := tracing.New(ctx, tracing.Settings{
		Endpoint: c.Endpoint, Headers: c.Headers, Ratio: (*float64)(c.Ratio),
		KeepFailed: c.KeepFailed, KeepSlow: c.KeepSlow.Std(),
		Cluster: cfg.ClusterName, Node: cfg.NodeName, Version: version.Version(),
		Getenv: os.Getenv, Log: log.With("component", "platform/tracing"),
	})
	if err != nil {
		return nil, errcode.New(errcode.RT0002, "configuration: %w", err)
	}
	return tracer, nil
}

// closeTracer exports the last spans.
func (n *Node) closeTracer() {
	if err := n.tracer.Close(); err != nil {
		n.log.Warn("spans were lost when the server stopped", "err", err)
	}
}
