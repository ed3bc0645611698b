package raftgroup

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"platform/internal/raftgroup/logstore"
	"platform/internal/raftgroup/retention"
	"platform/internal/raftgroup/watchdog"
)

// groupStorage is Raft's view of a Storage: with a cache, watched by the watchdog, and with
// a log that is not truncated while followers need it.
type groupStorage struct {
	logstore.Storage
	cache *logCache
	log   *slog.Logger
	probe *watchdog.Probe
	// onDamage is called when an entry of the log cannot be read.
	onDamage func(error)
	// running is set while Raft's own goroutines run.
	running atomic.Bool

	// Set before Raft runs. retention is nil in tests without followers.
	retention *retention.Policy
	// onFailedWrite is called when entries could not be stored or removed; it must not block.
	onFailedWrite func()
	// onStoring is called before entries are stored, and onStored afterwards; they must not block. It may replace the
	// data of the last entry. If it returns an error, nothing is stored. They are nil while no proposer runs.
	onStoring atomic.Pointer[func([]*raft.Log) error]
	onStored  atomic.Pointer[func()]
}

func newGroupStorage(s logstore.Storage, cacheBytes int, log *slog.Logger, p *watchdog.Probe, onDamage func(error)) *groupStorage {
	return &groupStorage{Storage: s, cache: &logCache{maxBytes: cacheBytes}, log: log, probe: p, onDamage: onDamage}
}

// GetLog reads an entry. A missing entry inside the log counts as damage.
func (s *groupStorage) GetLog(index uint64, log *raft.Log) error {
	return s.get(index, log, s.Storage.GetLog)
}

// GetLogHead reads an entry, without its data if that is large.
func (s *groupStorage) GetLogHead(index uint64, most int, log *raft.Log) error {
	return s.get(index, log, func(index uint64, log *raft.Log) error { return s.Storage.GetLogHead(index, most, log) })
}

func (s *groupStorage) get(index uint64, log *raft.Log, read func(uint64, *raft.Log) error) error {
	if s.cache.get(index, log) {
		return nil
	}
	err := read(index, log)
	if errors.Is(err, raft.ErrLogNotFound) && s.contains(index) {
		err = fmt.Errorf("entry %d is missing inside the log: %w", index, logstore.ErrCorrupt)
	}
	return err
}

func (s *groupStorage) contains(index uint64) bool {
	first, last, err := logstore.Bounds(s.Storage)
	return err == nil && first > 0 && first <= index && index <= last
}

// quarantine stores a mark that prevents the group from being opened again.
func (s *groupStorage) quarantine(why error) {
	if err := s.Storage.Set(logstore.KeyQuarantine, []byte(why.Error())); err != nil {
		s.log.Error("could not write the quarantine mark", "err", err)
	}
}

// raftStorage is the groupStorage as Raft uses it. Raft panics if it cannot read an entry
// that it needs, which would end the process and all its other groups. Instead the calling
// goroutine ends, and the group fails.
type raftStorage struct{ *groupStorage }

// GetLog reads an entry, without its data if that is large: port and fsm complete it. It
// does not return if the entry is damaged while Raft runs.
func (s raftStorage) GetLog(index uint64, log *raft.Log) error {
	err := s.GetLogHead(index, deferAbove, log)
	if errors.Is(err, logstore.ErrCorrupt) && s.running.Load() {
		s.onDamage(fmt.Errorf("%w: %w", ErrQuarantined, err))
		runtime.Goexit()
	}
	return err
}

func (s *groupStorage) StoreLog(log *raft.Log) error { return s.StoreLogs([]*raft.Log{log}) }

// StoreLogs stores entries. They replace existing ones from the first index on: entries
// whose write was reported as failed may nevertheless have been stored. They replace the
// whole log if it ends before them: then a snapshot was installed, and the log could not be
// removed.
func (s *groupStorage) StoreLogs(logs []*raft.Log) error {
	defer s.probe.Begin("store_logs").End()
	if len(logs) == 0 {
		return nil
	}
	err := s.truncate(logs[0].Index)
	if f := s.onStoring.Load(); err == nil && f != nil {
		err = (*f)(logs)
	}
	if err == nil {
		err = s.Storage.StoreLogs(logs)
	}
	if err != nil {
		s.writeFailed()
		return err
	}
	if f := s.onStored.Load(); f != nil {
		(*f)()
	}
	s.cache.add(logs)
	s.retention.Stored(logs)
	return nil
}

// truncate removes the entries that cannot stay if one is stored at index.
func (s *groupStorage) truncate(index uint64) error {
	first, last, err := logstore.Bounds(s.Storage)
	if err != nil || last == 0 || last+1 == index {
		return err
	}
	s.cache.clear()
	if last >= index {
		first = index
	}
	return s.Storage.DeleteRange(first, last)
}

func (s *groupStorage) writeFailed() {
	if s.onFailedWrite != nil {
		s.onFailedWrite()
	}
}

// DeleteRange truncates the log. Compaction, which removes a prefix, spares what followers
// need; the removal of the whole log after an installation does not.
func (s *groupStorage) DeleteRange(lo, hi uint64) (err error) {
	defer s.probe.Begin("delete_range").End()
	defer func() {
		if err != nil {
			s.writeFailed()
		}
	}()
	first, last, err := logstore.Bounds(s.Storage)
	prefix := err == nil && lo <= first
	if prefix && hi < last {
		if hi = s.retention.Compactable(hi, last); hi < lo {
			return nil
		}
	}
	if prefix {
		s.cache.cut(hi)
	} else {
		s.cache.clear()
	}
	return s.Storage.DeleteRange(lo, hi)
}

func (s *groupStorage) Set(key, value []byte) error {
	defer s.probe.Begin("set").End()
	return s.Storage.Set(key, value)
}

func (s *groupStorage) SetUint64(key []byte, v uint64) error {
	defer s.probe.Begin("set_uint64").End()
	return s.Storage.SetUint64(key, v)
}
