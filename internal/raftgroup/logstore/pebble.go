package logstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/hashicorp/raft"

	"platform/internal/pebbledb"
)

// PebbleStorage is one group's part of a DB. It is safe for concurrent use.
type PebbleStorage struct {
	db    *pebble.DB
	large *pebbledb.LargeWrites
	files *entryFiles
	group uint32

	// mu covers the fields below. first and last mirror the entries on disk; 0 means none.
	mu          sync.RWMutex
	first, last uint64
	removed     int64 // bytes in tables that were removed since the last wide removal
}

// Storage opens the storage of one group, which must not be open already. It returns ErrCorrupt if the ends of the log
// cannot be read; marks and Destroy do not need them.
func (l *DB) Storage(group uint32) (*PebbleStorage, error) {
	s := l.values(group)
	from, to := groupBounds(keyKindLog, group)
	it, err := l.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return nil, fmt.Errorf("open log of group %d: %w", group, readError(err))
	}
	err = s.findBounds(it, l.readOnly)
	if err := errors.Join(err, it.Close()); err != nil {
		return nil, fmt.Errorf("open log of group %d: %w", group, readError(err))
	}
	return s, nil
}

// Damaged returns the storage of a group whose ends cannot be read, to find out which entries can be: it assumes that the log
// has the entries from first to last, and those that follow and can be read.
func (l *DB) Damaged(group uint32, first, last uint64) *PebbleStorage {
	s := l.values(group)
	var log raft.Log
	for s.GetLog(last+1, &log) == nil {
		last++
	}
	s.first, s.last = first, last
	return s
}

// values returns a storage of which only Get and Set may be used: it does not know the ends of the log.
func (l *DB) values(group uint32) *PebbleStorage {
	return &PebbleStorage{db: l.db, large: l.large, files: l.files, group: group}
}

// IsMonotonic makes Raft remove the whole log after a snapshot is installed, so that old
// entries with other terms cannot be served later.
func (s *PebbleStorage) IsMonotonic() bool { return true }

// FirstIndex returns the lowest index in the log, 0 if it is empty.
func (s *PebbleStorage) FirstIndex() (uint64, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.first, nil
}

// LastIndex returns the highest index in the log, 0 if it is empty.
func (s *PebbleStorage) LastIndex() (uint64, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.last, nil
}

// GetLog reads an entry; raft.ErrLogNotFound if there is none at index, and ErrCorrupt if
// it is damaged.
func (s *PebbleStorage) GetLog(index uint64, log *raft.Log) error {
	var key [logKeyLen]byte
	putLogKey(key[:], s.group, index)
	value, closer, err := s.db.Get(key[:])
	if errors.Is(err, pebble.ErrNotFound) {
		return raft.ErrLogNotFound
	}
	if err != nil {
		return fmt.Errorf("read entry %d of group %d: %w", index, s.group, readError(err))
	}
	value = append([]byte(nil), value...)
	if err := closer.Close(); err != nil { // even if the value could not be read
		return fmt.Errorf("read entry %d of group %d: %w", index, s.group, readError(err))
	}
	if inChunks(value) {
		value, err = s.joinChunks(index)
		if errors.Is(err, pebble.ErrNotFound) {
			return raft.ErrLogNotFound
		}
		if err != nil {
			return fmt.Errorf("read entry %d of group %d: %w", index, s.group, readError(err))
		}
	}
	if err := decodeEntry(key[:], value, log); err != nil {
		return fmt.Errorf("read entry %d of group %d: %w", index, s.group, err)
	}
	return nil
}

// readError wraps corruption that Pebble found in its files.
func readError(err error) error {
	if pebble.IsCorruptionError(err) {
		return fmt.Errorf("%w: %w", ErrCorrupt, pebbledb.Explain(err))
	}
	return err
}

// StoreLog stores one entry durably.
func (s *PebbleStorage) StoreLog(log *raft.Log) error { return s.StoreLogs([]*raft.Log{log}) }

// StoreLogs stores entries durably and atomically.
func (s *PebbleStorage) StoreLogs(logs []*raft.Log) error {
	if len(logs) == 0 {
		return nil
	}
	if err := s.storeFiles(logs); err != nil {
		return fmt.Errorf("store entries of group %d: %w", s.group, err)
	}
	b := s.db.NewBatchWithSize(batchBytes(logs))
	for _, log := range logs {
		if err := s.put(b, log); err != nil {
			return errors.Join(err, b.Close())
		}
	}
	if err := b.Commit(pebble.Sync); err != nil {
		return fmt.Errorf("store entries of group %d: %w", s.group, err)
	}
	if err := b.Close(); err != nil {
		return fmt.Errorf("store entries of group %d: %w", s.group, err)
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.first == 0 {
		s.first = logs[0].Index
	}
	s.last = logs[len(logs)-1].Index
	return nil
}

// put encodes log directly into the batch.
func (s *PebbleStorage) put(b *pebble.Batch, log *raft.Log) error {
	var head [maxEntryHeader]byte
	header := appendEntryHeader(head[:0], log)
	body := len(header) + len(log.Extensions) + len(log.Data)
	if body >= largeEntry {
		return s.putChunks(b, log)
	}

	op := b.SetDeferred(logKeyLen, body+4)
	putLogKey(op.Key, s.group, log.Index)
	n := copy(op.Value, header)
	n += copy(op.Value[n:], log.Extensions)
	copy(op.Value[n:], log.Data)
	binary.LittleEndian.PutUint32(op.Value[body:], entryChecksum(op.Key, op.Value[:body]))
	return op.Finish()
}

func batchBytes(logs []*raft.Log) int {
	n := 64
	for _, log := range logs {
		n += logKeyLen + maxEntryHeader + 16
		if size := len(log.Extensions) + len(log.Data); size < largeEntry {
			n += size
		}
	}
	if n > largeBatch {
		// Pebble rounds up to a power of two and would allocate once more.
		n = 1 << bits.Len(uint(n-1))
	}
	return n
}

// largeBatch is the size from which avoiding a second allocation pays off.
const largeBatch = 64 << 10

// DeleteRange removes the entries from lo to hi, both included: a prefix when the log is
// compacted, a suffix when it conflicts with the leader's. It need not be synced by itself:
// whatever Raft writes next and depends on it is ordered after it in the same write-ahead
// log, or is a file, see storeFiles.
func (s *PebbleStorage) DeleteRange(lo, hi uint64) error {
	if lo > hi {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	from, to := logKey(s.group, lo), afterChunks(s.group, hi)
	if s.removed += s.files.countRemoved(from, to); lo <= s.first && s.removed >= wideRemoval {
		from, s.removed = logKey(s.group, 0), 0
	}
	if err := s.db.DeleteRange(from, to, pebble.NoSync); err != nil {
		return fmt.Errorf("truncate log of group %d: %w", s.group, err)
	}
	switch {
	case lo <= s.first && hi >= s.last:
		s.first, s.last = 0, 0
	case lo <= s.first:
		s.first = max(s.first, hi+1)
	case hi >= s.last:
		s.last = min(s.last, lo-1)
	}
	if err := s.files.flushRemoved(); err != nil {
		return fmt.Errorf("flush the log of group %d: %w", s.group, err)
	}
	return nil
}

// Set stores a value durably.
func (s *PebbleStorage) Set(key, value []byte) error { return s.set(key, value, pebble.Sync) }

func (s *PebbleStorage) set(key, value []byte, sync *pebble.WriteOptions) error {
	k := stableKey(s.group, key)
	v := make([]byte, len(value), len(value)+4)
	copy(v, value)
	v = binary.LittleEndian.AppendUint32(v, entryChecksum(k, value))
	if err := s.db.Set(k, v, sync); err != nil {
		return fmt.Errorf("store %s of group %d: %w", key, s.group, err)
	}
	return nil
}

// Get reads a value; a missing key gives an error with the text "not found".
func (s *PebbleStorage) Get(key []byte) ([]byte, error) {
	k := stableKey(s.group, key)
	v, closer, err := s.db.Get(k)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, ErrKeyNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read %s of group %d: %w", key, s.group, readError(err))
	}
	v = append([]byte(nil), v...)
	if err := closer.Close(); err != nil {
		return nil, fmt.Errorf("read %s of group %d: %w", key, s.group, readError(err))
	}
	if len(v) < 4 || entryChecksum(k, v[:len(v)-4]) != binary.LittleEndian.Uint32(v[len(v)-4:]) {
		return nil, fmt.Errorf("read %s of group %d: %w", key, s.group, ErrCorrupt)
	}
	return v[: len(v)-4 : len(v)-4], nil
}

// SetUint64 stores a number durably. An unchanged number is not written again, which saves
// an fsync per start.
func (s *PebbleStorage) SetUint64(key []byte, v uint64) error {
	if old, err := s.GetUint64(key); err == nil && old == v {
		return nil
	}
	return s.Set(key, binary.BigEndian.AppendUint64(nil, v))
}

// SetUint64Later stores a number that is durable once what is written next is: both are in the same write-ahead log.
func (s *PebbleStorage) SetUint64Later(key []byte, v uint64) error {
	return s.set(key, binary.BigEndian.AppendUint64(nil, v), pebble.NoSync)
}

// GetUint64 reads a number; a missing key gives an error with the text "not found".
func (s *PebbleStorage) GetUint64(key []byte) (uint64, error) {
	v, err := s.Get(key)
	if err != nil {
		return 0, err
	}
	if len(v) != 8 {
		return 0, fmt.Errorf("read %s of group %d: %d bytes: %w", key, s.group, len(v), ErrCorrupt)
	}
	return binary.BigEndian.Uint64(v), nil
}
