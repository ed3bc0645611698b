package store

import (
	"sync"
	"unsafe"

	"platform/partition/machine"
)

// knownValues keeps the state that some objects have in the database. It changes only when
// collected rows are written, which a busy object is called many times between.
type knownValues struct {
	mu      sync.Mutex
	objects map[string][]machine.StateEntry // by the prefix of their rows
	bytes   int
	writes  uint64 // how often rows were written
}

// maxKnown bounds the bytes that are kept for a partition. The objects that matter are few.
const maxKnown = 64 << 10

// knownAt is the time of a read, as a number of writes. That of the zero value is unknown.
type knownAt struct {
	values *knownValues
	writes uint64
}

// get returns the state of an object, which must not be modified. If it is not known, what is read
// from a snapshot that is opened before the next write may be recorded.
func (k *knownValues) get(prefix []byte) (entries []machine.StateEntry, at knownAt, found bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	entries, found = k.objects[string(prefix)]
	return entries, knownAt{k, k.writes}, found
}

// knownSize is the size of the state of an object apart from its entries.
func knownSize(prefix []byte) int { return len(prefix) + mapEntryBytes }

// mapEntryBytes is approximately what a map needs for an object.
const mapEntryBytes = 64

func entrySize(e *machine.StateEntry) int {
	return int(unsafe.Sizeof(*e)) + len(e.Key) + len(e.Value)
}

// put records the state of an object, unless rows were written since.
func (at knownAt) put(prefix []byte, entries []machine.StateEntry, size int) {
	k := at.values
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if at.writes != k.writes || k.bytes+size > maxKnown {
		return
	}
	if k.objects == nil {
		k.objects = map[string][]machine.StateEntry{}
	}
	k.objects[string(prefix)] = entries
	k.bytes += size
}

// forget is called before rows are written.
func (k *knownValues) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	clear(k.objects)
	k.bytes = 0
	k.writes++
}
