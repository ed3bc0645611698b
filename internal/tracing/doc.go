// Package tracing records what invocations do as OpenTelemetry spans and exports them by OTLP.
//
// A trace consists of these spans, named with the target that they are about:
//
//	ingress               a request to the ingress; child of the caller's traceparent
//	receive               a record of a topic; child of the record's traceparent
//	invocation-start      the first attempt of an invocation begins
//	invocation-attempt    one attempt; its traceparent is sent to the endpoint, so spans of
//	                      the SDK are its children
//	invocation-end        from the time an invocation was due until its result
//
// The parent of attempts, of the end and of the invocations that a handler calls is the
// invocation-start span. Its ID is derived from the ID of the invocation, so any node can
// refer to it after a failover without storing anything.
//
// Spans are recorded when they end and never delay the work that they describe: the queue of the
// exporter is bounded, and spans that do not fit are dropped.
package tracing
