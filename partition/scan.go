package partition

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"platform/internal/ids"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/partition/store"
)

// Table is one of a partition's tables that operators may read.
type Table uint8

// The tables. Their numbers are part of the node protocol.
const (
	Invocations Table = iota + 1
	Journal           // entries of journals
	State             // state of objects
	Promises          // of workflows
	Locks             // locks that are held
	Waiting           // invocations that wait for a lock
	Queues            // of flow control
	Usages            // counters of flow control
	LockQueues        // held locks of unscoped objects, as queues
)

// Detail determines how much of a row to return.
type Detail uint8

const (
	// Counts returns only the number of rows; for Invocations.
	Counts Detail = iota
	// Heads returns what identifies a row: of an invocation ID, target and status; of
	// journal entries and state everything except the payload, but with its size.
	Heads
	// Whole returns everything.
	Whole
)

// Scan selects rows of a table. All given conditions must hold.
type Scan struct {
	Table  Table
	Detail Detail
	// From is the start of the page: Page.Next of the previous one, nil for the first.
	From []byte

	ID       ids.Invocation   // only this invocation, unless zero; for Invocations, Journal and Waiting
	Ahead    bool             // with ID: return how many are ahead of it; for Invocations and Waiting
	Keys     KeyRange         // partition keys
	Scope    *string          // empty: unscoped
	Services []string         // one of them
	Objects  []string         // one of these object keys
	Handlers []string         // one of them; for Invocations
	Statuses []machine.Status // one of them; for Invocations
	// Events returns the history of each invocation with its record, and leaves out those in
	// whose life nothing of the kind can have happened; for Invocations with Whole.
	Events bool

	// Strong requests a page that includes everything acknowledged before Scan was called.
	// Without it a page may be as old as the election timeout.
	Strong bool
}

// KeyRange is a range of partition keys, both ends included.
type KeyRange struct{ First, Last uint64 }

// AllKeys is the range of all partition keys.
var AllKeys = KeyRange{0, math.MaxUint64}

func (r KeyRange) has(key uint64) bool { return r.First <= key && key <= r.Last }

// FromEntry returns the Scan.From of a page that begins at a journal entry, or at the next one after it.
func FromEntry(id ids.Invocation, index uint32) []byte {
	return binary.BigEndian.AppendUint32(store.JournalPlace(id), index)
}

// Row is a row of one of the tables, which determines the fields that are set.
type Row struct {
	Record  Record          // Invocations
	ID      ids.Invocation  // Journal, Waiting; of Locks the holder
	Index   uint64          // Journal: of the entry; Waiting: the sequence number
	Entry   journal.Entry   // Journal
	Object  machine.Object  // State, Promises, Locks, Waiting
	Key     string          // State, Promises
	Value   []byte          // State
	Size    int             // Journal, State: of payload or value
	Promise machine.Promise // Promises
	Since   int64           // Locks: when it was acquired, milliseconds since 1970; 0: unknown
	Events  []machine.Event // Invocations: the history, if requested
	Ahead   *uint64         // Invocations, Waiting: how many are ahead of it, if requested and queued
	Queue   *Queue          // Queues, LockQueues
	Usage   *Usage          // Usages
}

// Page is a part of the rows that a Scan selects.
type Page struct {
	Rows []Row
	// Matched is how many rows the page represents; with Counts it contains none itself.
	Matched int
	// Next is the start of the following page; nil if this is the last one.
	Next []byte
	// Read is how many rows were read.
	Read int
}

const (
	// A page ends when it has pageRows rows, holds pageBytes bytes, has read pageReads
	// rows, or has read a row of pageBytes bytes.
	pageRows  = 1024
	pageBytes = 256 << 10
	pageReads = 2048
)

// Scan reads one page of the rows that s selects. Its duration is bounded: it opens a view
// of the tables and closes it before it returns. See Scan.Strong for the age of the view.
func (p *Partition) Scan(ctx context.Context, s *Scan) (Page, error) {
	fresh := leased
	if s.Strong {
		fresh = linearizable
	}
	var page Page
	l, err := p.read(ctx, fresh, func(view *store.View) (err error) {
		if page, err = p.page(ctx, view, s); err != nil {
			err = fmt.Errorf("scan partition %d: %w", p.id, err)
		}
		return err
	})
	if err != nil {
		return Page{}, err
	}
	if offset := l.clock.Offset(); offset != 0 {
		for i := range page.Rows {
			offset.row(&page.Rows[i])
		}
	}
	return page, nil
}

// page reads one page from a view.
func (p *Partition) page(ctx context.Context, view *store.View, s *Scan) (Page, error) {
	sc := scanner{p: p, s: s, view: view, done: ctx.Done()}
	err := sc.run()
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return sc.page, err
}

// scanner collects one page.
type scanner struct {
	p     *Partition
	s     *Scan
	view  *store.View
	done  <-chan struct{}
	page  Page
	bytes int
}

func (sc *scanner) run() error {
	from := store.Place(sc.s.From)
	switch sc.s.Table {
	case Invocations:
		return sc.invocations(from)
	case Journal:
		return sc.entries(from)
	case State:
		return sc.view.WalkValues(from, sc.value)
	case Promises:
		return sc.view.WalkPromises(from, sc.promise)
	case Locks:
		return sc.view.WalkLocks(from, sc.lock)
	case Waiting:
		if !sc.s.ID.IsZero() {
			return sc.queueEntry()
		}
		return sc.view.WalkWaiting(from, sc.waiting)
	case Queues:
		return sc.queues(from)
	case Usages:
		return sc.usages(from)
	case LockQueues:
		return sc.view.WalkLocks(from, sc.lockQueue)
	}
	return fmt.Errorf("unknown table %d", sc.s.Table)
}

// read counts a row that was read, and ends the page if it is full.
func (sc *scanner) read(at store.Place) store.Visit {
	sc.page.Read++
	full := len(sc.page.Rows) >= pageRows || sc.bytes >= pageBytes || sc.page.Read >= pageReads
	if !full && sc.page.Read%64 == 0 {
		select {
		case <-sc.done:
			full = true
		default:
		}
	}
	if full {
		sc.page.Next = at.Next()
	}
	return store.Visit{Stop: full}
}

// countLarge counts the size of a large row even if it is not added to the page: reading it
// takes a while, so a page reads at most one.
func (sc *scanner) countLarge(size int) {
	if size >= pageBytes {
		sc.bytes += size
	}
}

func (sc *scanner) add(r Row, size int) {
	sc.page.Matched++
	sc.page.Rows = append(sc.page.Rows, r)
	sc.bytes += size
}

// matches reports whether v is in list; an empty list matches everything.
func matches[T comparable](list []T, v T) bool { return len(list) == 0 || slices.Contains(list, v) }

// bounds returns the range of rows of invocations with the selected partition keys.
func (r KeyRange) bounds(from store.Place) (store.Place, store.Place) {
	first := binary.BigEndian.AppendUint64(nil, r.First)
	if bytes.Compare(from, first) < 0 {
		from = first
	}
	if r.Last == math.MaxUint64 {
		return from, nil
	}
	return from, binary.BigEndian.AppendUint64(nil, r.Last+1)
}

func (sc *scanner) entries(from store.Place) error {
	from, upto := sc.s.Keys.bounds(from)
	if !sc.s.ID.IsZero() {
		upto = store.JournalEnd(sc.s.ID)
		if begin := store.JournalPlace(sc.s.ID); bytes.Compare(from, begin) < 0 {
			from = begin
		}
	}
	return sc.view.WalkEntries(from, upto, func(at store.Place, id ids.Invocation, index uint32, e journal.Entry) (store.Visit, error) {
		r := Row{ID: id, Index: uint64(index), Entry: e, Size: len(e.Payload)}
		if sc.s.Detail == Whole {
			r.Entry.Payload = bytes.Clone(e.Payload)
		} else {
			r.Entry.Payload = nil
		}
		sc.add(r, len(r.Entry.Payload))
		sc.countLarge(len(e.Payload))
		return sc.read(at), nil
	})
}
