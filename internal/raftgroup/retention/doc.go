// Package retention decides how much of the log of a Raft group stays when a snapshot permits its
// compaction: entries for followers that were down, and those that followers need next which are
// being sent a snapshot. It stores nothing and has no goroutines.
//
// Read policy.go first, then hold.go and sizes.go.
package retention
