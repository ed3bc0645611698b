package raftgroup

import (
	"sync"

	"github.com/hashicorp/raft"

	"platform/internal/raftgroup/logstore"
)

// logCacheEntries is the maximum number of cached entries. A follower needs an entry again
// when it is committed, one append later.
const logCacheEntries = 512

// logCache keeps the most recently stored entries. Unlike raft.LogCache it is bounded by
// bytes, because one entry may have a quarter of a megabyte and a node has many groups.
type logCache struct {
	// mu covers the fields below. ring[i%len] holds the entries from low to high-1, which
	// have bytes bytes in total.
	mu        sync.RWMutex
	ring      [logCacheEntries]*raft.Log
	low, high uint64
	bytes     int
	maxBytes  int
}

func (c *logCache) get(index uint64, log *raft.Log) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if index < c.low || index >= c.high {
		return false
	}
	*log = *c.ring[index%logCacheEntries]
	return true
}

// add adds stored entries; a gap or an overlap empties the cache first.
func (c *logCache) add(logs []*raft.Log) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, log := range logs {
		if log.Index != c.high {
			c.clearLocked()
			c.low, c.high = log.Index, log.Index
		}
		if c.high-c.low == logCacheEntries {
			c.evictLocked()
		}
		c.ring[log.Index%logCacheEntries] = log
		c.high++
		c.bytes += logstore.EntryBytes(log)
	}
	for c.bytes > c.maxBytes && c.low < c.high {
		c.evictLocked()
	}
}

// clear empties the cache; it must be called before entries are deleted.
func (c *logCache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clearLocked()
}

// cut removes the entries up to index, which are about to be deleted.
func (c *logCache) cut(index uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.low < c.high && c.low <= index {
		c.evictLocked()
	}
}

func (c *logCache) clearLocked() {
	clear(c.ring[:])
	c.low, c.high, c.bytes = 0, 0, 0
}

func (c *logCache) evictLocked() {
	slot := &c.ring[c.low%logCacheEntries]
	c.bytes -= logstore.EntryBytes(*slot)
	*slot = nil
	c.low++
}
