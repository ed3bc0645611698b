package pebbledb

import (
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// LargeWrites paces the chunks of large values and the rows of imports that are written to a Pebble database: they
// wait while unflushed writes take half of the memory at which Pebble stalls all writes, but
// not while one memtable is flushed and another one filled. A stall holds the lock of the
// commits, so small writes of all groups would wait for the flushes that large ones cause.
type LargeWrites struct {
	limit uint64

	mu      sync.Mutex    // covers flushed
	flushed chan struct{} // closed when a flush ends
}

// NewLargeWrites returns the pace of a database that is opened with o, and adds what it
// observes to o.EventListener, which must be set.
func NewLargeWrites(o *pebble.Options) *LargeWrites {
	w := &LargeWrites{
		limit:   max(uint64(o.MemTableStopWritesThreshold)*o.MemTableSize/2, 2*o.MemTableSize+1),
		flushed: make(chan struct{}),
	}
	ended := o.EventListener.FlushEnd
	o.EventListener.FlushEnd = func(i pebble.FlushInfo) {
		if ended != nil {
			ended(i)
		}
		w.flushEnded()
	}
	return w
}

func (w *LargeWrites) flushEnded() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.flushed)
	w.flushed = make(chan struct{})
}

func (w *LargeWrites) next() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.flushed
}

// Await waits until another chunk, or batch of an import, may be written to db. Flushes end it, so that it waits no
// longer than the write would in a stall.
func (w *LargeWrites) Await(db *pebble.DB) {
	for {
		flushed := w.next() // before measuring, so that no flush is missed
		if db.Metrics().MemTable.Size < w.limit {
			return
		}
		<-flushed
	}
}
