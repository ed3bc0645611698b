// Package machine is the pure state machine of a partition: Apply interprets one log
// command against the partition's tables and returns an outcome for the proposer and
// effects for the leader to carry out.
//
// Every replica applies the same commands to the same tables and must produce the same
// tables: there is no clock (a command's header carries the time), no randomness, no I/O,
// no goroutine and no ranging over maps here. Whatever depends on the registry was looked
// up before proposing and is part of the command.
//
// Read invocation.go (the stored record), command.go (the input), effect.go (the output)
// and state.go (the tables) first, then apply.go. DESIGN.md has the
// life of an invocation and the invariants, DECISIONS.md the reasons.
package machine
