package store

import (
	"errors"
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
//
// Commit does not write to the database, unless the write sets are full: the next transaction
// continues with them, until a View, a flush or a full set requires the rows. So a row that
// several batches write is encoded and inserted once, and one that exists for a moment only,
// such as the record of a running invocation, not at all.
type Txn struct {
	p     *Partition
	space space
	meta  machine.Meta
	index uint64 // last log entry of the rows being written
	bytes int    // written payloads, apart from keys
	held  int    // bytes that the rows may keep in memory besides
	err   error  // first failed write

	keys        arena
	invocations map[ids.Invocation]record
	entries     writeSet[journal.Entry]
	locks       writeSet[machine.Lock]
	messages    writeSet[machine.Message]
	small       writeSet[[]byte] // notified, waiting, timers
	notified    notifiedIndex    // of rows in small
	values      writeSet[[]byte]
	promises    writeSet[promise]
	counters    writeSet[uint64]
	limits      writeSet[flowcontrol.Counter]
	vqueues     writeSet[flowcontrol.VQueue]
	rules       *flowcontrol.Book // nil if unchanged
	ranges      []keyRange        // deleted ranges; rows written since are in the sets

	changed []ids.Invocation // written by this batch
	reader  reader           // rows of the database; opened by the first read
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
// Begin. It waits while a view or a flush writes the collected rows.
func (p *Partition) Begin() *Txn {
	p.turn <- struct{}{}
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

// Rows returns the approximate number of rows read or written since rows were last written to
// the database.
func (t *Txn) Rows() int {
	return len(t.invocations) + len(t.entries.rows) + len(t.small.rows) + len(t.values.rows) + len(t.promises.rows) + len(t.messages.rows) +
		len(t.locks.rows) + len(t.limits.rows) + len(t.vqueues.rows)
}

// Bytes returns the approximate number of bytes that are kept in memory until the rows are in the
// database.
func (t *Txn) Bytes() int { return max(t.written(), t.held) }

func (t *Txn) written() int { return t.bytes + t.keys.size }

// Hold counts memory that the rows keep until they are in the database, because they alias it:
// the entries of the log that were applied, and records that were read.
func (t *Txn) Hold(bytes int) { t.held += bytes }

// Bounds of what is collected between commits. The rows are searched linearly when rows of an
// owner are listed or deleted, and each range is checked by every read of the database.
const (
	defaultCollected = 512
	collectedBytes   = 256 << 10
	collectedHeld    = 1 << 20
	collectedRanges  = 8
)

func (t *Txn) full() bool {
	return t.Rows() >= t.p.db.opts.CollectedRows || t.written() >= collectedBytes || t.held >= collectedHeld || len(t.ranges) > collectedRanges
}

// errDiscarded is the failure of a partition whose commits were discarded before they were
// written.
var errDiscarded = errors.New("commits were discarded with a transaction that failed")

// Discard drops the writes, and those of earlier commits that are not in the database yet. If
// there were any, the database must be reopened before it can continue from an older entry.
func (t *Txn) Discard() {
	if p := t.p; p.collected.Load() && p.failed == nil {
		p.failed = fmt.Errorf("partition %d: %w", p.id, errDiscarded)
	}
	t.drop()
	<-t.p.turn
}

// drop drops all writes.
func (t *Txn) drop() {
	t.fail(t.closeReader())
	t.reset()
	t.p.cache = newCache(t.p.db.opts.RecordCacheBytes) // it may contain discarded writes
}

// closeReader closes the snapshot, which retains memory and files.
func (t *Txn) closeReader() error {
	if t.reader.it == nil {
		return nil
	}
	err := t.reader.close()
	t.reader = reader{}
	return err
}

func (t *Txn) reset() {
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
	t.notified.reset()
	t.values.reset()
	t.promises.reset()
	t.counters.reset()
	t.limits.reset()
	t.vqueues.reset()
	t.rules = nil
	t.ranges = t.ranges[:0]
	t.changed = t.changed[:0]
	t.bytes, t.held = 0, 0
}

// Commit atomically adds the writes and the applied index and term to the tables. Views opened
// from now on include them. They become durable with the next Flush. After an error the
// partition rejects all further commits: the database must be reopened.
func (t *Txn) Commit(index, term uint64) error {
	p := t.p
	defer func() { <-p.turn }()
	if last := p.applied.Load().Index; t.err == nil && index <= last {
		t.err = fmt.Errorf("entry %d is not above the applied index %d", index, last)
	}
	meta, full := &codec.Meta{Meta: t.meta, Index: index, Term: term}, t.full()
	if t.err == nil && full {
		t.err = t.write(meta)
	}
	t.fail(t.closeReader())
	if t.err != nil {
		return t.broken(index)
	}
	p.collected.Store(!full)
	p.applied.Store(meta)
	if o := p.observer.Load(); o != nil {
		t.report(*o)
	}
	if t.changed = t.changed[:0]; full {
		t.reset()
	}
	return nil
}

// broken makes the partition reject all further commits.
func (t *Txn) broken(index uint64) error {
	p := t.p
	p.failed = fmt.Errorf("commit entry %d: %w", index, t.err)
	t.drop()
	return p.failed
}

// Settle writes the commits collected so far to the database.
func (p *Partition) Settle() error { return p.settle(nil) }

// settle is Settle. It gives up with ErrClosed when closing is closed.
func (p *Partition) settle(closing <-chan struct{}) error {
	if !p.collected.Load() {
		return nil
	}
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-closing:
		return ErrClosed
	}
	switch {
	case !p.collected.Load():
		return nil
	case p.failed != nil:
		return p.failed
	}
	t, meta := &p.txn, p.applied.Load()
	t.err = t.write(meta)
	t.fail(t.closeReader())
	if t.err != nil {
		return t.broken(meta.Index)
	}
	p.collected.Store(false)
	t.reset()
	return nil
}

// write writes everything that was collected, as of the given log entry, in one batch.
func (t *Txn) write(meta *codec.Meta) error {
	if t.batch == nil {
		t.batch = t.p.db.pebble.NewBatch()
	}
	t.batch.Reset()
	if n := t.entriesSize(); n > maxKeptBatch {
		// Avoids repeated doubling and copying; Pebble rounds up to a power of two.
		t.batch = t.p.db.pebble.NewBatchWithSize(1 << bits.Len(uint(n+n/16)))
	}
	t.index = meta.Index
	t.p.known.forget()
	t.fill(meta)
	if t.err != nil {
		return t.err
	}
	if err := t.batch.Commit(pebble.NoSync); err != nil {
		return err
	}
	if t.batch.Len() > maxKeptBatch {
		t.batch = nil
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
	t.fillPromises()
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
