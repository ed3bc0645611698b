package store

import (
	"platform/flowcontrol"
	"platform/internal/ids"
	"platform/partition/machine"
)

// cache spares a partition's transactions most reads of the database. It is never
// truth: whatever is in it is in the database as well, and dropping any of it is
// always right. Only transactions use it, so it needs no lock.
type cache struct {
	// Live invocations are kept encoded: their strings point into their own record
	// and not into the log entry they came with, which would be held with them; and
	// every reader gets a copy to change.
	records map[ids.Invocation][]byte
	bytes   int
	limit   int

	locks    map[string]machine.Lock // by key, also of objects without a lock
	counters map[string]uint64       // sent and delivered, by key: one per other partition
	outbox   map[uint32]uint64       // receiver → smallest sequence number not deleted
	limits   map[string]flowcontrol.Counter
	vqueues  map[string]flowcontrol.VQueue
}

// recordOverhead is about what a record costs beside its bytes.
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

// putRecord keeps b.
func (c *cache) putRecord(id *ids.Invocation, b []byte) {
	if old, ok := c.records[*id]; ok {
		c.bytes -= len(old) + recordOverhead
	}
	c.records[*id] = b
	c.bytes += len(b) + recordOverhead
	for victim := range c.records { // in no order: as good as any that costs more
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

// maxCounters and maxVQueues bound what is cached of flow control, rows of about 150
// and 500 bytes.
const (
	maxCounters = 4096
	maxVQueues  = 2048
)

// putRow keeps a row and makes room for it, in no order.
func putRow[V any](rows map[string]V, key []byte, v V, limit int) {
	if len(rows) >= limit {
		for victim := range rows {
			delete(rows, victim)
			break
		}
	}
	rows[string(key)] = v
}
