// Package routing sends requests to the leaders of the partitions that own them, on this
// node or another one. It retries them, with the same IDs, during leader failovers, and
// reports whether a failed request is safe to retry.
//
// Read router.go first, then retry.go.
package routing
