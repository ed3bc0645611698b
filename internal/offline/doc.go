// Package offline shows and repairs the data directory of a node that is stopped: its
// Raft groups, their log entries, and the tables of its partitions. It is behind the
// commands `platform-server inspect` and `platform-server repair`.
//
// A directory is locked as by a server while it is open, so it never belongs to a
// running one. Inspection writes nothing. Repair replaces one log entry, which it has
// exported before, removes a quarantine mark, or lets the only replica of a partition go
// on without what it has lost.
package offline
