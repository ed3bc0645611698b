// Package offline inspects and repairs the data directory of a stopped node: its Raft
// groups, their log entries, and the tables of its partitions. It implements the commands
// `platform-server inspect`, `repair` and `recover`.
//
// An open directory is locked, so no server can use it at the same time. Inspection writes
// nothing. Repair exports and replaces one log entry, removes a quarantine mark, or lets the
// only replica of a partition continue without lost entries.
package offline
