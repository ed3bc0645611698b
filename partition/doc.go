// Package partition owns one shard of the invocations: the Raft group that orders its
// commands, the state machine that interprets them, the tables that hold the outcome and,
// while this node leads the group, the duties of the leader.
//
// Applying a command is deterministic: it reads and writes one batch of the tables and
// nothing else (package machine). External actions are returned as effects, which only the
// leader carries out, after commit: it runs attempts (package invoker), fires timers, sends
// messages to other partitions and responds to waiting callers.
//
// Read package machine first, then fsm.go (from log to tables), leader.go (the duties of a
// leader) and client.go (the API for ingress and admin).
package partition
