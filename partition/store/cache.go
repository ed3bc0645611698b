package store

import (
	"platform/flowcontrol"
	"platform/internal/ids"
	"platform/partition/machine"
)

// cache saves the transactions of a partition most reads of the database. It is
// write-through: everything in it is in the database too, so any entry may be evicted at any
// time. Only transactions use it, so it needs no lock.
type cache struct {
	// Live invocations are cached encoded, so that their strings do not keep the log
	// entry they came with in memory. Every reader needs its own copy anyway.
	records map[ids.Invocation]cachedRecord
	bytes   int
	limit   int

	locks    map[string]machine.Lock // by key, including objects without a lock
	counters map[string]uint64       // sent and delivered, by key: one per other partition
	outbox   map[uint32]uint64       // receiver → smallest sequence number not deleted
	limits   map[string]flowcontrol.Counter
	vqueues  map[string]flowcontrol.VQueue
}

// cachedRecord is the encoded record of a live invocation.
type cachedRecord struct {
	bytes []byte
	notes notes
}

// recordOverhead is the approximate memory of a cached record besides its bytes.
const recordOverhead = 96

// maxLocks bounds the cached locks, of about 150 bytes each. Those of objects with long keys, which
// may have megabytes, are not cached.
const (
	maxLocks   = 4096
	maxLockKey = 512
)

func newCache(limit int) *cache {
	return &cache{
		limit:    limit,
		records:  make(map[ids.Invocation]cachedRecord),
		locks:    make(map[string]machine.Lock),
		counters: make(map[string]uint64),
		outbox:   make(map[uint32]uint64),
		limits:   make(map[string]flowcontrol.Counter),
		vqueues:  make(map[string]flowcontrol.VQueue),
	}
}

// putRecord takes ownership of the bytes of r.
func (c *cache) putRecord(id *ids.Invocation, r cachedRecord) {
	if old, ok := c.records[*id]; ok {
		c.bytes -= len(old.bytes) + recordOverhead
	}
	c.records[*id] = r
	c.bytes += len(r.bytes) + recordOverhead
	for victim := range c.records { // random eviction
		if c.bytes <= c.limit {
			return
		}
		c.dropRecord(&victim)
	}
}

func (c *cache) dropRecord(id *ids.Invocation) {
	if old, ok := c.records[*id]; ok {
		c.bytes -= len(old.bytes) + recordOverhead
		delete(c.records, *id)
	}
}

// setNotes replaces what is known about the notifications of a cached record.
func (c *cache) setNotes(id *ids.Invocation, known notes) {
	if r, ok := c.records[*id]; ok {
		r.notes = known
		c.records[*id] = r
	}
}

func (c *cache) putLock(key []byte, l machine.Lock) {
	if len(key) <= maxLockKey {
		putRow(c.locks, key, l, maxLocks)
	}
}

// maxCounters and maxVQueues bound the cached rows of flow control, of about 150 and 500
// bytes.
const (
	maxCounters = 4096
	maxVQueues  = 2048
)

// putRow caches a row, evicting a random one if the limit is reached.
func putRow[V any](rows map[string]V, key []byte, v V, limit int) {
	if len(rows) >= limit {
		for victim := range rows {
			delete(rows, victim)
			break
		}
	}
	rows[string(key)] = v
}
