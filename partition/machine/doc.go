// Package machine is the pure state machine of a partition: Apply interprets one
// log command on the partition's tables and returns a result for whoever proposed
// it and effects for the leader to carry out.
//
// Every replica applies the same commands to the same tables and must end with the
// same tables: there is no clock (a command's header carries the time), no
// randomness, no I/O, no goroutine and no ranging over maps here. Whatever depends
// on the registry was looked up before proposing and is part of the command.
//
// Read invocation.go (what is stored), command.go (what may be asked), effect.go
// (what follows) and state.go (the tables) first, then apply.go. DESIGN.md has the
// invariants and decisions.
package machine
