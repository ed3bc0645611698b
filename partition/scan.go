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

// The tables. Their numbers are told to other nodes.
const (
	Invocations Table = iota + 1
	Journal           // entries of journals
	State             // state of objects
	Promises          // of workflows
	Locks             // objects that are held
	Waiting           // invocations that wait for an object
	Queues            // of flow control
	Usages            // counters of flow control
	Lines             // objects without a scope that are held, as queues
)

// Detail is how much of a row is wanted.
type Detail uint8

const (
	// Counts are no rows at all, only how many there are; of Invocations.
	Counts Detail = iota
	// Heads are what identifies a row: of an invocation id, target and status; of
	// journal entries and state everything but the payload, whose size is told.
	Heads
	// Whole is everything.
	Whole
)

// Scan selects rows of a table. Each condition that is given must hold.
type Scan struct {
	Table  Table
	Detail Detail
	// From is where the page begins: Page.Next of the one before, nil for the first.
	From []byte

	ID       ids.Invocation   // this invocation only, unless zero; of Invocations, Journal and Waiting
	Ahead    bool             // with ID: tell how many wait before it; of Invocations and Waiting
	Keys     KeyRange         // partition keys
	Scope    *string          // empty: unscoped
	Services []string         // one of them
	Objects  []string         // one of these object keys
	Handlers []string         // one of them; of Invocations
	Statuses []machine.Status // one of them; of Invocations

	// Strong asks for a page that shows everything acknowledged before Scan was called.
	// Without it a page may be as old as the election time-out.
	Strong bool
}

// KeyRange is a range of partition keys, both ends included.
type KeyRange struct{ First, Last uint64 }

// AllKeys is the range of all partition keys.
var AllKeys = KeyRange{0, math.MaxUint64}

func (r KeyRange) has(key uint64) bool { return r.First <= key && key <= r.Last }

// Row is a row of one of the tables; which fields are set follows from the table.
type Row struct {
	Record  Record          // Invocations
	ID      ids.Invocation  // Journal, Waiting; of Locks the holder
	Index   uint64          // Journal: of the entry; Waiting: the place in the queue
	Entry   journal.Entry   // Journal
	Object  machine.Object  // State, Promises, Locks, Waiting
	Key     string          // State, Promises
	Value   []byte          // State
	Size    int             // Journal, State: of payload or value
	Promise machine.Promise // Promises
	Since   int64           // Locks: when it was taken, milliseconds since 1970; 0: not known
	Ahead   *uint64         // Invocations, Waiting: how many wait before it, if that was asked for and it waits
	Queue   *Queue          // Queues, Lines
	Usage   *Usage          // Usages
}

// Page is a part of the rows that a Scan selects.
type Page struct {
	Rows []Row
	// Matched is how many rows the page stands for; with Counts it has none itself.
	Matched int
	// Next is where the following page begins; nil if this is the last one.
	Next []byte
	// Read is how many rows were looked at.
	Read int
}

const (
	// A page ends when it has that many rows, holds that many bytes, has looked at that
	// many rows or at a row of that many bytes.
	pageRows  = 1024
	pageBytes = 256 << 10
	pageReads = 2048
)

// Scan reads one page of the rows that s selects, in a step short enough not to hold
// anything up: the tables are looked at as of one moment, and let go of before it
// returns. How old that moment may be is said at Scan.Strong.
func (p *Partition) Scan(ctx context.Context, s *Scan) (Page, error) {
	l, err := p.leader()
	if err != nil {
		return Page{}, err
	}
	page, err := p.page(ctx, s)
	if err != nil {
		return Page{}, fmt.Errorf("scan partition %d: %w", p.id, err)
	}
	if s.Strong {
		err = l.confirm(ctx)
	} else {
		err = l.holdsLease()
	}
	if err != nil {
		return Page{}, err
	}
	if shown := l.shown(); shown != 0 {
		for i := range page.Rows {
			shown.row(&page.Rows[i])
		}
	}
	return page, nil
}

// page reads one page from the tables of this replica.
func (p *Partition) page(ctx context.Context, s *Scan) (Page, error) {
	view := p.tables.View()
	defer view.Close()
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
			return sc.waitingOne()
		}
		return sc.view.WalkWaiting(from, sc.waiting)
	case Queues:
		return sc.queues(from)
	case Usages:
		return sc.usages(from)
	case Lines:
		return sc.view.WalkLocks(from, sc.line)
	}
	return fmt.Errorf("there is no table %d", sc.s.Table)
}

// read counts a row that was looked at, and ends the page if it is time to.
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

// looked counts the size of a row that may not come to the page: reading large ones
// takes a while, so a page looks at no more than one.
func (sc *scanner) looked(size int) {
	if size >= pageBytes {
		sc.bytes += size
	}
}

func (sc *scanner) add(r Row, size int) {
	sc.page.Matched++
	sc.page.Rows = append(sc.page.Rows, r)
	sc.bytes += size
}

// among reports whether v is one of list; an empty list admits everything.
func among[T comparable](list []T, v T) bool { return len(list) == 0 || slices.Contains(list, v) }

// within is where the rows of invocations with the wanted partition keys are.
func (r KeyRange) within(from store.Place) (store.Place, store.Place) {
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
	from, upto := sc.s.Keys.within(from)
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
		sc.looked(len(e.Payload))
		return sc.read(at), nil
	})
}
