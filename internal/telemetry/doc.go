// Package telemetry sets up the structured logs of a server.
//
// Packages log through a slog.Logger with a component attribute ("platform/ingress",
// "platform/partition"); the log filter selects levels by that name.
package telemetry
