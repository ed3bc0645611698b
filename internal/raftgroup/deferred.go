package raftgroup

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/hashicorp/raft"
)

// deferAbove is the size above which Raft gets an entry of the log without its data. Raft
// reads up to Profile.MaxAppendEntries of them before it sends or applies the first one.
const deferAbove = 16 << 10

// deferredData marks an entry whose data has not been read; its extensions contain the
// size.
var deferredData = []byte{0}

// deferData omits the data of an entry that has size bytes.
func deferData(log *raft.Log, size int) {
	log.Data, log.Extensions = deferredData, binary.AppendUvarint(nil, uint64(size))
}

// deferred reports whether the data of an entry has not been read.
func deferred(log *raft.Log) bool { return len(log.Data) == 1 && &log.Data[0] == &deferredData[0] }

// sizeOf returns how many bytes an entry has in memory when complete.
func sizeOf(log *raft.Log) int {
	if !deferred(log) {
		return entryBytes(log)
	}
	size, _ := binary.Uvarint(log.Extensions)
	return 128 + int(size)
}

// complete returns log with its data.
func (s *groupStorage) complete(log *raft.Log) (*raft.Log, error) {
	if !deferred(log) {
		return log, nil
	}
	whole := new(raft.Log)
	if err := s.GetLog(log.Index, whole); err != nil {
		return nil, fmt.Errorf("read entry %d: %w", log.Index, err)
	}
	if whole.Term != log.Term || whole.Type != log.Type {
		return nil, fmt.Errorf("read entry %d: it has term %d and type %s, and had term %d and type %s: %w",
			log.Index, whole.Term, whole.Type, log.Term, log.Type, ErrCorrupt)
	}
	return whole, nil
}

// GetLogHead is GetLog, but omits the data of a command with more than most bytes.
func (s *LogStore) GetLogHead(index uint64, most int, log *raft.Log) error {
	found, err := s.head(index, most, log)
	switch {
	case errors.Is(err, pebble.ErrNotFound):
		return raft.ErrLogNotFound
	case err != nil:
		return fmt.Errorf("read entry %d of group %d: %w", index, s.group, readError(err))
	case found:
		return nil
	}
	return s.GetLog(index, log) // large, but not a command
}

func (s *LogStore) head(index uint64, most int, log *raft.Log) (found bool, err error) {
	var key [logKeyLen]byte
	putLogKey(key[:], s.group, index)
	value, closer, err := s.db.Get(key[:])
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, closer.Close()) }()
	if inChunks(value) {
		return s.chunkHead(index, log)
	}
	if len(value) <= most {
		value = append([]byte(nil), value...)
		return true, decodeEntry(key[:], value, log)
	}
	if err := decodeEntry(key[:], value, log); err != nil || log.Type != raft.LogCommand {
		return false, err
	}
	deferData(log, len(log.Data))
	return true, nil
}

// chunkHead reads an entry in chunks without its data; false if it is not a command.
func (s *LogStore) chunkHead(index uint64, log *raft.Log) (found bool, err error) {
	it, _, err := s.chunks(index)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	if !it.Next() {
		return false, cmp.Or(it.Error(), ErrCorrupt)
	}
	size, err := decodeHeader(it.Key()[:logKeyLen], it.Value(), log)
	if err != nil || log.Type != raft.LogCommand {
		return false, err
	}
	deferData(log, size)
	return true, nil
}

// GetLogHead is GetLog.
func (s *BoltStorage) GetLogHead(index uint64, _ int, log *raft.Log) error {
	return s.GetLog(index, log)
}
