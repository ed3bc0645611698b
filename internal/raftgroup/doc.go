// Package raftgroup runs one Raft group: the replicated log that orders the commands of a
// partition or of the metadata, its elections, and the state machine that applies it. A
// process has many groups, which share one Transport and, for partitions, one log database
// (package logstore). Package hardstate verifies before a start that a replica has all that it
// has promised, package statestream transfers the state to followers, package peers holds the
// connections to other nodes, package retention decides how much of the log followers need, and package wire converts
// requests to messages and checks received ones.
//
// A Group wraps one hashicorp/raft instance and adds what a product needs: a log store with
// checksums and a watchdog, virtual snapshots (the state machine's tables are the snapshot;
// only index, term and configuration are recorded), leadership as a function that runs
// while this node leads, fast elections when a node starts alone or the leader's process
// died, and errors classified into "not proposed" and "outcome unknown".
//
// A Proposer batches the commands of one group into entries.
//
// Read statemachine.go first, then config.go, group.go, fsm.go and proposer.go; then
// transport.go.
package raftgroup
