package store

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"platform/flowcontrol"
	"platform/internal/ids"
	"platform/partition/codec"
	"platform/partition/journal"
	"platform/partition/machine"
)

// Txn collects the writes of one batch of log entries and is the machine's view of the
// tables, including those writes. It is not safe for concurrent use, and a partition has at
// most one at a time.
type Txn struct {
	p     *Partition
	space space
	meta  machine.Meta
	index uint64 // log entry being committed
	bytes int    // written payloads
	err   error  // first failed write

	keys        arena
	invocations map[ids.Invocation]record
	entries     writeSet[journal.Entry]
	locks       writeSet[machine.Lock]
	messages    writeSet[machine.Message]
	small       writeSet[[]byte] // notified, waiting, timers
	values      writeSet[[]byte]
	counters    writeSet[uint64]
	limits      writeSet[flowcontrol.Counter]
	vqueues     writeSet[flowcontrol.VQueue]
	rules       *flowcontrol.Book // nil if unchanged
	ranges      []keyRange        // deleted ranges; rows written since are in the sets

	reader  reader // committed rows; opened by the first read
	batch   *pebble.Batch
	scratch []byte
}

var _ machine.State = (*Txn)(nil)

// keyRange is the range of keys [lower, upper).
type keyRange struct{ lower, upper []byte }

func (r keyRange) contains(key []byte) bool {
	return string(r.lower) <= string(key) && string(key) < string(r.upper)
}

// Begin starts a transaction, which must be ended by Commit or Discard before the next
// Begin.
func (p *Partition) Begin() *Txn {
	t := &p.txn
	t.space = p.space
	t.meta = p.applied.Load().Meta
	t.err = p.failed
	if t.invocations == nil {
		t.invocations = make(map[ids.Invocation]record)
	}
	return t
}

// Meta implements machine.State.
func (t *Txn) Meta() *machine.Meta { return &t.meta }

// Rows returns the approximate number of rows read or written so far.
func (t *Txn) Rows() int {
	return len(t.invocations) + len(t.entries.rows) + len(t.small.rows) + len(t.values.rows) + len(t.messages.rows)
}

// Bytes returns the approximate number of payload bytes written so far.
func (t *Txn) Bytes() int { return t.bytes }

// Discard drops the writes.
func (t *Txn) Discard() {
	t.reset()
	t.p.cache = newCache(t.p.db.opts.RecordCacheBytes) // it may contain discarded writes
}

func (t *Txn) reset() {
	if t.reader.it != nil {
		t.fail(t.reader.close())
		t.reader = reader{}
	}
	t.keys.reset()
	if len(t.invocations) > keptRows {
		t.invocations = make(map[ids.Invocation]record)
	} else {
		clear(t.invocations)
	}
	t.entries.reset()
	t.locks.reset()
	t.messages.reset()
	t.small.reset()
	t.values.reset()
	t.counters.reset()
	t.limits.reset()
	t.vqueues.reset()
	t.rules = nil
	t.ranges = t.ranges[:0]
	t.bytes = 0
}

// Commit atomically writes the collected rows and the applied index and term. They become
// durable with the next Flush. After an error the partition rejects all further commits:
// the database must be reopened.
func (t *Txn) Commit(index, term uint64) error {
	defer t.reset()
	p := t.p
	if t.err == nil && index <= p.applied.Load().Index {
		t.err = fmt.Errorf("entry %d is not above the applied index %d", index, p.applied.Load().Index)
	}
	if t.err == nil {
		t.err = t.write(codec.Meta{Meta: t.meta, Index: index, Term: term})
	}
	if t.err != nil {
		p.failed = fmt.Errorf("commit entry %d: %w", index, t.err)
		return p.failed
	}
	return nil
}

// write builds one batch of the writes and commits it.
func (t *Txn) write(meta codec.Meta) error {
	if t.batch == nil {
		t.batch = t.p.db.pebble.NewBatch()
	}
	t.batch.Reset()
	if n := t.entriesSize(); n > maxKeptBatch {
		// Avoids repeated doubling and copying; Pebble rounds up to a power of two.
		t.batch = t.p.db.pebble.NewBatchWithSize(1 << bits.Len(uint(n+n/16)))
	}
	t.index = meta.Index
	t.fill(&meta)
	if t.err != nil {
		return t.err
	}
	if err := t.batch.Commit(pebble.NoSync); err != nil {
		return err
	}
	if t.batch.Len() > maxKeptBatch {
		t.batch = nil
	}
	t.p.applied.Store(&meta)
	if o := t.p.observer.Load(); o != nil {
		t.report(*o)
	}
	return nil
}

// maxKeptBatch bounds the memory kept for the next batch.
const maxKeptBatch = 1 << 20

// fill writes the rows into the batch. Range deletions come first, because rows written
// after such a deletion are kept.
func (t *Txn) fill(meta *codec.Meta) {
	for _, r := range t.ranges {
		t.deleteRange(r)
	}
	t.fillInvocations()
	for i := range t.entries.rows {
		if r := &t.entries.rows[i]; r.deleted {
			t.delete(r.key)
		} else {
			t.setEntry(r.key, &r.value)
		}
	}
	t.fillLocks()
	t.fillMessages()
	fillBytes(t, &t.small)
	fillBytes(t, &t.values)
	t.fillCounters()
	t.fillFlow()
	t.set(t.space.table(t.keys.room(prefixLen), tableMeta), codec.AppendMeta(t.scratch[:0], meta))
}

// entriesSize estimates how many bytes journal entries and results add to the batch.
func (t *Txn) entriesSize() (n int) {
	add := func(size int) {
		if size < t.p.db.opts.LargeRowBytes { // larger ones are committed as chunks
			n += size
		}
	}
	for i := range t.entries.rows {
		add(len(t.entries.rows[i].value.Payload))
	}
	for _, r := range t.invocations {
		if r.written && r.inv != nil && r.inv.Result != nil {
			add(len(r.inv.Result.Value))
		}
	}
	return n
}

// setEntry writes a journal entry, avoiding an intermediate copy of a large payload.
func (t *Txn) setEntry(key []byte, e *journal.Entry) {
	if len(e.Payload) < largeEntry {
		t.set(key, codec.AppendEntry(t.scratch[:0], e))
		return
	}
	t.put(key, codec.AppendEntryHead(t.scratch[:0], e), e.Payload)
}

// largeEntry is the size from which avoiding an intermediate copy pays off.
const largeEntry = 64 << 10

func fillBytes(t *Txn, w *writeSet[[]byte]) {
	for i := range w.rows {
		if r := &w.rows[i]; r.deleted {
			t.delete(r.key)
		} else {
			t.put(r.key, r.value)
		}
	}
}

// set writes a row encoded in the scratch buffer.
func (t *Txn) set(key, value []byte) {
	t.put(key, value)
	if t.scratch = value[:0]; cap(value) > maxKeptBatch {
		t.scratch = nil
	}
}

func (t *Txn) fail(err error) {
	if err != nil && t.err == nil {
		t.err = err
	}
}

// inDeletedRange reports whether the committed row of a key is in a range that was deleted.
func (t *Txn) inDeletedRange(key []byte) bool {
	return slices.ContainsFunc(t.ranges, func(r keyRange) bool { return r.contains(key) })
}

// stored reads a row that is not in a write set, nil if there is none.
func (t *Txn) stored(key []byte) ([]byte, error) {
	if t.inDeletedRange(key) {
		return nil, nil
	}
	r, err := t.committed()
	if err != nil {
		return nil, err
	}
	return r.row(key)
}

// committed returns the reader of the rows committed before Begin.
func (t *Txn) committed() (reader, error) {
	if t.reader.it == nil {
		r, err := newReader(t.p.db.pebble)
		if err != nil {
			return reader{}, err
		}
		t.reader = r
	}
	return t.reader, nil
}
