// Package flowcontrol decides which waiting invocation may run next.
//
// The rule book says how much may run at once. A Rule pairs a Pattern with Limits. A
// scoped invocation counts at up to three levels: its scope, the first part of its
// limit key within that scope, and both parts. At each level the best matching rule
// gives the limits, and every matching value has a budget of its own.
//
// The package is pure: no clock, no chance, no I/O. Times and versions come from the
// callers, who are the metadata group for the book and partitions for everything else.
//
// Who waits stands in vqueues; the Scheduler gives slots to them, by records in tables
// and nothing else.
//
// Read pattern.go, rule.go and book.go first, then match.go; for the scheduler
// DESIGN.md, queue.go, counter.go and scheduler.go.
package flowcontrol
