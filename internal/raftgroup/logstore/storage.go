package logstore

import (
	"errors"
	"fmt"

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
	// (see Deferred).
	GetLogHead(index uint64, most int, log *raft.Log) error
	// SetUint64Later is SetUint64, but the number may be on disk only when the next value or entry is.
	SetUint64Later(key []byte, v uint64) error
}

var (
	_ Storage = (*PebbleStorage)(nil)
	_ Storage = (*BoltStorage)(nil)
)

// Position identifies one entry of a group's log.
type Position struct {
	Index uint64
	Term  uint64
}

var (
	// ErrCorrupt means that a checksum on disk or on the wire did not match.
	ErrCorrupt = errors.New("checksum mismatch")
	// ErrKeyNotFound is returned by a StableStore for a missing key. Raft compares its text.
	ErrKeyNotFound = errors.New("not found")
)

// Bounds returns the first and the last index of a log, 0 if it is empty.
func Bounds(s raft.LogStore) (first, last uint64, err error) {
	first, err1 := s.FirstIndex()
	last, err2 := s.LastIndex()
	if err := errors.Join(err1, err2); err != nil {
		return 0, 0, fmt.Errorf("read bounds of the log: %w", err)
	}
	return first, last, nil
}
