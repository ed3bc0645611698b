package logstore

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/hashicorp/raft"
)

// deferredData marks an entry whose data has not been read; its extensions contain the
// size.
var deferredData = []byte{0}

// Defer omits the data of an entry, which has size bytes with the extensions.
func Defer(log *raft.Log, size int) {
	log.Data, log.Extensions = deferredData, binary.AppendUvarint(nil, uint64(size))
}

// Deferred reports whether GetLogHead has omitted the data of an entry.
func Deferred(log *raft.Log) bool { return len(log.Data) == 1 && &log.Data[0] == &deferredData[0] }

// EntryBytes returns how many bytes an entry has in memory when complete.
func EntryBytes(log *raft.Log) int { return 128 + dataBytes(log) }

// dataBytes returns how many bytes the data and extensions of an entry have, including omitted
// ones.
func dataBytes(log *raft.Log) int {
	if !Deferred(log) {
		return len(log.Data) + len(log.Extensions)
	}
	size, _ := binary.Uvarint(log.Extensions)
	return int(size)
}

// GetLogHead is GetLog, but omits the data of a command with more than most bytes.
func (s *PebbleStorage) GetLogHead(index uint64, most int, log *raft.Log) error {
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

func (s *PebbleStorage) head(index uint64, most int, log *raft.Log) (found bool, err error) {
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
	Defer(log, len(log.Data))
	return true, nil
}

// chunkHead reads an entry in chunks without its data; false if it is not a command.
func (s *PebbleStorage) chunkHead(index uint64, log *raft.Log) (found bool, err error) {
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
	Defer(log, size)
	return true, nil
}

// GetLogHead is GetLog.
func (s *BoltStorage) GetLogHead(index uint64, _ int, log *raft.Log) error {
	return s.GetLog(index, log)
}
