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
	EarlyTimers     Name = "early-timers"      // handlers sleep 50 ms less than they asked for
)

// Values, which make something rare frequent.
const (
	CheckpointCommands Name = "checkpoint-commands" // commands between two checkpoints
	TrailingLogs       Name = "trailing-logs"       // log entries that are kept behind a snapshot
	DigestPauseMillis  Name = "digest-pause-ms"     // time between two digest rounds of a partition
)
