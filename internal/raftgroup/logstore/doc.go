// Package logstore stores the logs of Raft groups durably, and with each log a few values such
// as term and vote.
//
// A DB is the Pebble database of a node, in which the groups of all partitions share one
// write-ahead log and its syncs; DB.Storage opens one group of it. A BoltStorage is a bbolt file
// with one group, which writes little. Both verify what they read: damage is ErrCorrupt, never
// another entry.
//
// The package knows how entries are stored, not what they mean. Read storage.go first, then
// pebble.go and codec.go.
package logstore
