package logstore

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"github.com/prometheus/client_golang/prometheus"
	"go.etcd.io/bbolt"

	"platform/internal/boltfile"
	"platform/internal/durable"
)

// Retries of a value that must be stored: Raft panics if term or vote cannot be.
const (
	stableRetryFor   = 5 * time.Second
	stableRetryEvery = 100 * time.Millisecond
)

// deleteBatch bounds how many entries one bolt transaction removes.
const deleteBatch = 2000

// BoltOptions configures a BoltStorage; the zero value is for production.
type BoltOptions struct {
	// Ballast is a file that is removed when a value cannot be stored; see CreateBallast.
	Ballast string
	// ReadOnly opens an existing file for inspection: nothing is written.
	ReadOnly bool
	// MmapBytes is the initial size of the memory map; 64 MiB when 0.
	MmapBytes int
	// Logger is slog.Default() when nil.
	Logger *slog.Logger
}

// BoltStorage stores one group's log in a bbolt file. It is for the metadata group, which
// writes little. bbolt has no checksums for data, so each entry and value has one.
type BoltStorage struct {
	bolt   *raftboltdb.BoltStore
	opts   BoltOptions
	writes prometheus.Histogram // durations of writes
}

// OpenBolt opens the file at path, creating it and its directory if missing.
func OpenBolt(path string, opts BoltOptions) (*BoltStorage, error) {
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	dir := filepath.Dir(path)
	if err := makeDir(dir); err != nil {
		return nil, fmt.Errorf("open log %s: %w", path, err)
	}
	if err := boltfile.Check(path); err != nil { // bbolt would panic
		return nil, fmt.Errorf("open log: %w: %w", ErrCorrupt, err)
	}
	bolt, err := raftboltdb.New(raftboltdb.Options{
		Path: path,
		BoltOptions: &bbolt.Options{
			Timeout:         time.Second,
			ReadOnly:        opts.ReadOnly,
			NoFreelistSync:  true,
			FreelistType:    bbolt.FreelistMapType,
			InitialMmapSize: cmp.Or(opts.MmapBytes, 64<<20),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("open log %s: %w", path, err)
	}
	if err := durable.SyncDir(dir); err != nil {
		return nil, fmt.Errorf("open log %s: %w", path, errors.Join(err, bolt.Close()))
	}
	return &BoltStorage{bolt: bolt, opts: opts, writes: newSyncHistogram("metadata")}, nil
}

// Collector returns the metrics of the file: the duration of writes.
func (s *BoltStorage) Collector() prometheus.Collector { return s.writes }

// timed measures a write that is durable when it returns.
func (s *BoltStorage) timed(write func() error) error {
	begin := time.Now()
	err := write()
	s.writes.Observe(time.Since(begin).Seconds())
	return err
}

// Close closes the file.
func (s *BoltStorage) Close() error { return s.bolt.Close() }

// IsMonotonic makes Raft remove the whole log after a snapshot is installed.
func (s *BoltStorage) IsMonotonic() bool { return true }

// FirstIndex returns the lowest index in the log, 0 if it is empty.
func (s *BoltStorage) FirstIndex() (index uint64, err error) {
	defer corrupt(&err)
	return s.bolt.FirstIndex()
}

// LastIndex returns the highest index in the log, 0 if it is empty.
func (s *BoltStorage) LastIndex() (index uint64, err error) {
	defer corrupt(&err)
	return s.bolt.LastIndex()
}

// corrupt converts a panic to an error; raft-boltdb panics on a damaged key.
func corrupt(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: %v", ErrCorrupt, p)
	}
}

// GetLog reads an entry; raft.ErrLogNotFound if there is none at index, and ErrCorrupt if
// it is damaged.
func (s *BoltStorage) GetLog(index uint64, log *raft.Log) (err error) {
	defer corrupt(&err)
	if err := s.bolt.GetLog(index, log); err != nil {
		return err
	}
	n := len(log.Data) - 4
	if n < 0 || log.Index != index {
		return fmt.Errorf("read entry %d: %w", index, ErrCorrupt)
	}
	sum := binary.LittleEndian.Uint32(log.Data[n:])
	log.Data = log.Data[:n:n]
	if sum != logChecksum(log) {
		return fmt.Errorf("read entry %d: %w", index, ErrCorrupt)
	}
	return nil
}

// StoreLog stores one entry durably.
func (s *BoltStorage) StoreLog(log *raft.Log) error { return s.StoreLogs([]*raft.Log{log}) }

// StoreLogs stores entries durably and atomically.
func (s *BoltStorage) StoreLogs(logs []*raft.Log) error {
	sealed := make([]*raft.Log, len(logs))
	for i, log := range logs {
		c := *log
		c.Data = make([]byte, len(log.Data), len(log.Data)+4)
		copy(c.Data, log.Data)
		c.Data = binary.LittleEndian.AppendUint32(c.Data, logChecksum(log))
		sealed[i] = &c
	}
	return s.timed(func() error { return s.bolt.StoreLogs(sealed) })
}

// DeleteRange removes the entries from lo to hi, both included, in batches that leave no
// hole if interrupted: upwards when a prefix is compacted, downwards when a conflicting
// suffix is truncated.
func (s *BoltStorage) DeleteRange(lo, hi uint64) error {
	first, err := s.bolt.FirstIndex()
	if err != nil {
		return err
	}
	upward := lo <= first
	lo = max(lo, first)
	for lo <= hi {
		from, to := lo, min(hi, lo+deleteBatch-1)
		if !upward {
			from, to = max(lo, hi-min(hi, deleteBatch-1)), hi
		}
		if err := s.bolt.DeleteRange(from, to); err != nil {
			return err
		}
		if upward {
			lo = to + 1
		} else if hi = from - 1; from == 0 {
			return nil
		}
	}
	return nil
}

// Set stores a value durably. It frees the ballast and retries for 5 s before it fails.
func (s *BoltStorage) Set(key, value []byte) error {
	v := make([]byte, len(value), len(value)+4)
	copy(v, value)
	v = binary.LittleEndian.AppendUint32(v, entryChecksum(key, value))
	return s.persist(func() error { return s.timed(func() error { return s.bolt.Set(key, v) }) })
}

// Get reads a value; a missing key gives an error with the text "not found".
func (s *BoltStorage) Get(key []byte) ([]byte, error) {
	v, err := s.bolt.Get(key)
	if errors.Is(err, raftboltdb.ErrKeyNotFound) {
		return nil, ErrKeyNotFound
	}
	if err != nil {
		return nil, err
	}
	n := len(v) - 4
	if n < 0 || entryChecksum(key, v[:n]) != binary.LittleEndian.Uint32(v[n:]) {
		return nil, fmt.Errorf("read %s: %w", key, ErrCorrupt)
	}
	return v[:n:n], nil
}

// SetUint64 stores a number durably; an unchanged one is not written again.
func (s *BoltStorage) SetUint64(key []byte, v uint64) error {
	if old, err := s.GetUint64(key); err == nil && old == v {
		return nil
	}
	return s.Set(key, binary.BigEndian.AppendUint64(nil, v))
}

// SetUint64Later is SetUint64: each transaction is synced.
func (s *BoltStorage) SetUint64Later(key []byte, v uint64) error { return s.SetUint64(key, v) }

// GetUint64 reads a number; a missing key gives an error with the text "not found".
func (s *BoltStorage) GetUint64(key []byte) (uint64, error) {
	v, err := s.Get(key)
	if err != nil {
		return 0, err
	}
	if len(v) != 8 {
		return 0, fmt.Errorf("read %s: %d bytes: %w", key, len(v), ErrCorrupt)
	}
	return binary.BigEndian.Uint64(v), nil
}

// persist retries write until it succeeds or stableRetryFor has passed.
func (s *BoltStorage) persist(write func() error) error {
	deadline := time.Now().Add(stableRetryFor)
	for {
		err := write()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		s.opts.Logger.Error("could not store a value, retrying", "err", err)
		if s.opts.Ballast != "" {
			freeBallast(s.opts.Ballast, s.opts.Logger)
		}
		time.Sleep(stableRetryEvery)
	}
}

// logChecksum covers index, term, type and data of an entry.
func logChecksum(log *raft.Log) uint32 {
	var head [17]byte
	binary.LittleEndian.PutUint64(head[:], log.Index)
	binary.LittleEndian.PutUint64(head[8:], log.Term)
	head[16] = byte(log.Type)
	return crcOf(head[:], log.Data, log.Extensions)
}
