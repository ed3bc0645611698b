// Package listing computes lists, counts and failure groups of the invocations of one partition.
//
// [Index] holds what lists filter, sort and count by in columns, about 90 bytes per invocation, so
// that a query over a million invocations is a scan of arrays. [Top], [Tally] and [Groups] compute
// the same results from whole records.
//
// The package uses no clock, I/O or goroutines, but what it computes is not replicated and may
// differ between processes. The leader of the partition feeds the index and knows the state of
// attempts, which it passes as a [LiveFunc].
package listing
