// Package flowcontrol decides which waiting invocation runs next.
//
// The rule book limits how much may run concurrently. A Rule pairs a Pattern with Limits. A
// scoped invocation is counted at up to three levels: its scope, the first part of its
// limit key within that scope, and both parts. At each level the best matching rule
// applies, and every matching value has a separate budget.
//
// The package is pure: no clock, no randomness, no I/O. Times and versions are passed by
// the callers: the metadata group for the book, partitions for everything else.
//
// Waiting invocations are in vqueues; the Scheduler assigns slots to them, based only on
// records in tables.
//
// Read pattern.go, rule.go and book.go first, then match.go; for the scheduler DESIGN.md,
// queue.go, counter.go and scheduler.go.
package flowcontrol
