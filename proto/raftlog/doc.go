// Package raftlog documents what replicas write: log entries and the records of a
// partition's tables, generated from raftlog.proto. The server itself reads and
// writes this format with partition/codec. Tests and the offline inspection of data
// directories use the generated types.
package raftlog
