// Package otlp exports metrics and log records to an OpenTelemetry collector, and has what all
// signals share: where the collector is, what describes this node, and the bounded queue of
// what waits to be exported.
//
// Nothing here delays the work that the signals describe. What does not fit into the queue is
// dropped and counted, and metrics are read by a goroutine of their own.
package otlp
