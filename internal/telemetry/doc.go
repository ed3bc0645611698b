// Package telemetry sets up what a running server tells about itself: structured
// logs and Prometheus metrics.
//
// Packages log through a slog.Logger with a component attribute ("platform/ingress",
// "platform/partition"); the log filter chooses levels by that name.
package telemetry
