// Package raftgroup runs one Raft group: the replicated log that orders the
// commands of a partition or of the metadata, the elections around it, and the
// state machine it drives. A process holds many groups, which share one
// Transport and, for partitions, one log database.
//
// A Group wraps one hashicorp/raft instance and adds what a product needs around
// it: a log store with checksums and a watchdog, virtual snapshots (the state
// machine's own tables are the snapshot; only index, term and configuration are
// recorded), leadership as a function that runs while this node leads, fast
// elections when a node starts alone or when the leader's process died, and
// errors sorted into "not proposed" and "outcome unknown".
//
// A Proposer batches the commands of one group into entries.
//
// Read statemachine.go first, then config.go, group.go, fsm.go and proposer.go;
// then storage.go and transport.go.
package raftgroup
