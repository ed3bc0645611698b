// Package store keeps the tables of a node's partitions in one Pebble database.
//
// There is no write-ahead log besides the Raft log. Commits are collected in memory and
// written in batches, each with the applied index of its data, so after a crash a partition
// is in the state of the last flush, and the log is replayed from there. Flush makes all
// commits so far durable; the Raft log may be truncated up to that point.
//
// A Txn is the machine's view of the tables during one batch of log entries, including what is
// not written yet. A View is a consistent snapshot for all other readers. Export and Import
// copy a partition to another node.
//
// Read keys.go first (what is stored where), then db.go, partition.go, txn.go and
// view.go. DESIGN.md explains the decisions and their cost.
package store
