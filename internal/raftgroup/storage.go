package raftgroup

import (
	"errors"

	"github.com/hashicorp/raft"
)

// Storage is the durable part of one group: its log, and a few values such as term, vote
// and the snapshot record. StoreLog, StoreLogs, Set and SetUint64 return when the data is
// on disk. Reads verify checksums and return ErrCorrupt instead of damaged data.
type Storage interface {
	raft.LogStore
	raft.StableStore
	raft.MonotonicLogStore
	// GetLogHead is GetLog, but may omit the data of a command with more than most bytes
	// (see deferred).
	GetLogHead(index uint64, most int, log *raft.Log) error
}

// errKeyNotFound is returned by a StableStore for a missing key. Raft compares its text.
var errKeyNotFound = errors.New("not found")

var (
	_ Storage = (*LogStore)(nil)
	_ Storage = (*BoltStorage)(nil)
	_ Storage = (*groupStorage)(nil)
)
