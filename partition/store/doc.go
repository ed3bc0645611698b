// Package store keeps the tables of a node's partitions in one Pebble database.
//
// There is no write-ahead log: the Raft log is one. Every batch carries the applied
// index with its data, so after a crash a partition is where the last flush left
// it, and the log is replayed from there. Flush makes everything committed so far
// durable, which is what the Raft log may be cut up to.
//
// A Txn is the machine's view of the tables and collects the writes of one batch of
// log entries. A View is a consistent picture for everybody else. Export and Import
// carry a partition to another node.
//
// Read keys.go first (what is stored where), then db.go, partition.go, txn.go and
// view.go. DESIGN.md has the decisions and what they cost.
package store
