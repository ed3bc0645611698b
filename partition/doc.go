// Package partition owns one shard of the invocations: the Raft group that orders
// its commands, the state machine that interprets them, the tables that hold the
// outcome, and, while this node leads the group, the work that follows from it.
//
// Applying a command is deterministic: it reads and writes one batch of the tables
// and nothing else (package machine). Work in the outside world comes back as
// effects, which only the leader carries out, after commit: it runs attempts
// (package invoker), fires timers, ships messages to other partitions and answers
// waiting callers.
//
// Read package machine first, then fsm.go (from log to tables), leader.go (what a
// leader does) and client.go (what ingress and admin may ask).
package partition
