// Package tracing tests the spans that a server exports, with a real collector endpoint for
// OTLP over gRPC and HTTP, and services written with the Go SDK.
package tracing
