// Package raftlog documents what replicas write: log entries and the records of a
// partition's tables, generated from raftlog.proto. The server itself reads and
// writes this format with partition/codec, without the generated types; tests check
// that the two agree.
package raftlog
