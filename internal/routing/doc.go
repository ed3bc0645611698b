// Package routing takes requests to the partitions that own them, on this node or
// another one. It repeats them, with the same ids, while leaders change, and reports
// what is known of a request that got no answer.
//
// Read router.go first, then retry.go.
package routing
