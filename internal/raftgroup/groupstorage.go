package raftgroup

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/hashicorp/raft"
)

// groupStorage is what Raft sees of a Storage: a cache in front, every write
// under the watchdog's eyes.
type groupStorage struct {
	Storage
	cache *logCache
	log   *slog.Logger
	probe *probe
}

func newGroupStorage(s Storage, cacheBytes int, log *slog.Logger, p *probe) *groupStorage {
	return &groupStorage{Storage: s, cache: &logCache{maxBytes: cacheBytes}, log: log, probe: p}
}

func (s *groupStorage) GetLog(index uint64, log *raft.Log) error {
	if s.cache.get(index, log) {
		return nil
	}
	err := s.Storage.GetLog(index, log)
	if errors.Is(err, ErrCorrupt) {
		s.quarantine(err)
	}
	return err
}

// quarantine leaves a mark that keeps the group from being opened again: Raft
// panics when it cannot read an entry it needs, and would do so at each start.
func (s *groupStorage) quarantine(why error) {
	s.log.Error("log is damaged, the group will not start again before it is rebuilt", "err", why)
	if err := s.Storage.Set(keyQuarantine, []byte(why.Error())); err != nil {
		s.log.Error("damage of the log cannot be recorded", "err", fmt.Errorf("set mark: %w", err))
	}
}

func (s *groupStorage) StoreLog(log *raft.Log) error { return s.StoreLogs([]*raft.Log{log}) }

func (s *groupStorage) StoreLogs(logs []*raft.Log) error {
	defer s.probe.begin("store_logs").end()
	if err := s.Storage.StoreLogs(logs); err != nil {
		return err
	}
	s.cache.add(logs)
	return nil
}

func (s *groupStorage) DeleteRange(lo, hi uint64) error {
	defer s.probe.begin("delete_range").end()
	if first, err := s.Storage.FirstIndex(); err == nil && lo <= first {
		s.cache.cut(hi)
	} else {
		s.cache.clear()
	}
	return s.Storage.DeleteRange(lo, hi)
}

func (s *groupStorage) Set(key, value []byte) error {
	defer s.probe.begin("set").end()
	return s.Storage.Set(key, value)
}

func (s *groupStorage) SetUint64(key []byte, v uint64) error {
	defer s.probe.begin("set_uint64").end()
	return s.Storage.SetUint64(key, v)
}
