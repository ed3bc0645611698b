// Package failpoint marks places where tests change the behavior of a server: they
// plant a defect that a check must find, or make something rare frequent.
//
// Failpoints exist only in programs built with the tag "failpoints", which read those
// to activate from the environment variable FAILPOINTS, for example
// "ack-before-commit,checkpoint-commands=500". In other builds every failpoint is
// inactive, and the compiler removes it.
package failpoint

// Name identifies a failpoint.
type Name string

// Defects, which the cluster tests must find.
const (
	AckBeforeCommit Name = "ack-before-commit" // invocations are acknowledged before they are proposed
	NoDeduplication Name = "no-deduplication"  // a repeated request starts another invocation
	IgnoreLocks     Name = "ignore-locks"      // one in seven invocations of an object ignores its lock
	EarlyTimers     Name = "early-timers"      // handlers sleep 50 ms less than requested
)

// Defects, which the simulation must find.
const (
	EpochWithoutTerm  Name = "epoch-without-term" // a replica takes another leader's announcement of the same epoch for its own
	EarlierResponses  Name = "earlier-responses"  // responses to requests that were sent before a read confirm the leader
	NonvoterResponses Name = "nonvoter-responses" // replicas without a vote confirm the leader
	MonotonicTimers   Name = "monotonic-timers"   // the clock of a leader stands still while the machine is suspended
	OvertakenProgress Name = "overtaken-progress" // small progress does not wait like the earlier progress of its invocation
)

// Steps before which the simulation pauses goroutines, as a busy machine does.
const (
	Duties       Name = "duties"       // of a leader that was elected
	Announcement Name = "announcement" // of a leader's epoch
	Leaving      Name = "leaving"      // of a leader that was deposed
	Confirmation Name = "confirmation" // of leadership, after the tables were read
	Application  Name = "application"  // of entries that are committed
	Effects      Name = "effects"      // of entries that were applied
)

// Values, which make something rare frequent.
const (
	CheckpointCommands Name = "checkpoint-commands" // commands between two checkpoints
	TrailingLogs       Name = "trailing-logs"       // log entries that are kept behind a snapshot
	DigestPauseMillis  Name = "digest-pause-ms"     // time between two digest rounds of a partition

	YieldingBytes Name = "yielding-bytes" // size from which small commands precede a command in its log entry
	BulkBytes     Name = "bulk-bytes"     // size from which a command waits for a log entry of its own

	ReevaluatedCounters Name = "reevaluated-counters" // counters that an entry re-evaluates after a change of the rules
	RingLeaves          Name = "ring-leaves"          // queues and counters that an entry removes from their rings
)
