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
	records map[ids.Invocation][]byte
	bytes   int
	limit   int

	locks    map[string]machine.Lock // by key, including objects without a lock
	counters map[string]uint64       // sent and delivered, by key: one per other partition
	outbox   map[uint32]uint64       // receiver → smallest sequence number not deleted
	limits   map[string]flowcontrol.Counter
	vqueues  map[string]flowcontrol.VQueue
}

// recordOverhead is the approximate memory of a cached record besides its bytes.
const recordOverhead = 80

// maxLocks bounds the cached locks, of about 150 bytes each.
const maxLocks = 4096

func newCache(limit int) *cache {
	return &cache{
		limit:    limit,
		records:  make(map[ids.Invocation][]byte),
		locks:    make(map[string]machine.Lock),
		counters: make(map[string]uint64),
		outbox:   make(map[uint32]uint64),
		limits:   make(map[string]flowcontrol.Counter),
		vqueues:  make(map[string]flowcontrol.VQueue),
	}
}

func (c *cache) record(id *ids.Invocation) []byte { return c.records[*id] }

// putRecord takes ownership of b.
func (c *cache) putRecord(id *ids.Invocation, b []byte) {
	if old, ok := c.records[*id]; ok {
		c.bytes -= len(old) + recordOverhead
	}
	c.records[*id] = b
	c.bytes += len(b) + recordOverhead
	for victim := range c.records { // random eviction
		if c.bytes <= c.limit {
			return
		}
		c.dropRecord(&victim)
	}
}

func (c *cache) dropRecord(id *ids.Invocation) {
	if old, ok := c.records[*id]; ok {
		c.bytes -= len(old) + recordOverhead
		delete(c.records, *id)
	}
}

func (c *cache) putLock(key []byte, l machine.Lock) { putRow(c.locks, key, l, maxLocks) }

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
