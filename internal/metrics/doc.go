// Package metrics holds the registry of a node's Prometheus metrics, and what packages need to
// provide metrics that are read when they are scraped.
//
// Each package defines its metrics in a file metrics.go; internal/node registers them.
package metrics
