package partition

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"platform/partition/listing"
	"platform/partition/store"
)

// ListingMemory is the memory of the indexes of a node, shared equally by the partitions that
// have one.
type ListingMemory struct {
	limit  int
	active atomic.Int64
	builds chan struct{} // a slot for each index that is being built
}

// NewListingMemory returns memory of the given number of bytes.
func NewListingMemory(limit int) *ListingMemory {
	return &ListingMemory{limit: limit, builds: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))}
}

func (m *ListingMemory) share() int { return m.limit / int(max(1, m.active.Load())) }

const (
	// An index is dropped when it has not been read for listingIdle.
	listingIdle = 5 * time.Minute
	// Changes are applied to the index when there are somePending, or somePendingBytes of them,
	// or before the index is read. If there are maxPending or maxPendingBytes while it is being
	// read, the index is rebuilt, so that applying commands never waits for readers.
	somePending      = 512
	somePendingBytes = 4 << 20
	maxPending       = 32 << 10
	maxPendingBytes  = 64 << 20
)

// lister keeps the index of the invocations of a partition during one leadership, while there
// are readers.
type lister struct {
	tables   *store.Partition
	memory   *ListingMemory
	idle     time.Duration
	ended    <-chan struct{}    // closed when the leadership ends
	wanted   chan struct{}      // capacity 1: build an index
	filled   chan struct{}      // capacity 1: apply changes
	outdated chan chan struct{} // drop an index that has lost changes, and close the channel

	mu    sync.RWMutex // covers index and feed; read-locked while the index is read
	index *listing.Index
	feed  *feed // changes of the index

	stateMu  sync.Mutex // covers the fields below
	build    *build     // nil: there is no index
	lastRead time.Time
}

// build is the outcome of building an index.
type build struct {
	done chan struct{} // closed when it has ended
	err  error
}

func newLister(tables *store.Partition, memory *ListingMemory, ended <-chan struct{}) *lister {
	return &lister{tables: tables, memory: memory, idle: listingIdle, ended: ended, wanted: make(chan struct{}, 1), filled: make(chan struct{}, 1), outdated: make(chan chan struct{})}
}

// Run builds, maintains and drops the index until ctx ends.
func (x *lister) Run(ctx context.Context) error {
	tick := time.NewTicker(x.idle / 4)
	defer tick.Stop()
	defer x.drop(func() bool { return true })
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-x.wanted:
			err := x.load(ctx)
			if err != nil {
				x.clear()
			}
			x.stateMu.Lock()
			b := x.build
			if err != nil {
				b.err, x.build = fmt.Errorf("index invocations: %w", err), nil
			}
			x.stateMu.Unlock()
			close(b.done)
		case <-x.filled:
			x.catchUp()
		case done := <-x.outdated:
			if !x.catchUp() {
				x.drop(func() bool { return true })
			}
			close(done)
		case <-tick.C:
			x.drop(func() bool { return time.Since(x.lastRead) >= x.idle })
		}
	}
}

// drop drops the index if there is one and the condition, which is evaluated under stateMu,
// holds.
func (x *lister) drop(condition func() bool) {
	x.stateMu.Lock()
	due := x.build != nil && condition()
	if due {
		select {
		case <-x.build.done:
			x.build = nil
		default: // requested meanwhile
			due = false
		}
	}
	x.stateMu.Unlock()
	if due {
		x.clear()
	}
}

// clear removes the index.
func (x *lister) clear() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.index != nil {
		x.tables.Observe(nil)
		x.index, x.feed = nil, nil
		x.memory.active.Add(-1)
	}
}

// catchUp applies pending changes. It returns false if the index has lost changes.
func (x *lister) catchUp() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.applyPendingLocked()
	return x.feed == nil || !x.feed.outdated()
}

// applyPendingLocked applies pending changes.
func (x *lister) applyPendingLocked() {
	f := x.feed
	if f == nil {
		return
	}
	f.mu.Lock()
	list := f.pending
	f.pending, f.spare, f.bytes = f.spare, nil, 0
	f.mu.Unlock()
	for _, c := range list {
		if c.inv != nil {
			x.index.Put(c.inv)
		} else {
			x.index.Delete(c.id)
		}
	}
	clear(list)
	f.mu.Lock()
	f.spare = list[:0]
	f.mu.Unlock()
	x.index.SetLimit(x.memory.share())
}

// load builds the index from the stored records.
func (x *lister) load(ctx context.Context) error {
	select {
	case x.memory.builds <- struct{}{}:
		defer func() { <-x.memory.builds }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	x.mu.Lock()
	x.memory.active.Add(1)
	x.index, x.feed = listing.New(x.memory.share()), &feed{x: x}
	x.tables.Observe(x.feed)
	x.mu.Unlock()
	return eachPage(ctx, x.loadPage)
}

// loadPage adds one page of the stored records. Changes that are applied before it are in its
// view, and later ones are applied after it, so that no older state replaces a newer one.
func (x *lister) loadPage(from store.Place) (next store.Place, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.applyPendingLocked()
	if x.feed.outdated() {
		return nil, errors.New("too many changes meanwhile")
	}
	return readPage(x.tables, from, true, x.index.Put)
}

// read calls f with the index, which includes everything that was applied before the call. It
// builds the index if necessary.
func (x *lister) read(ctx context.Context, f func(*listing.Index)) error {
	for {
		if err := x.await(ctx); err != nil {
			return err
		}
		if !x.catchUp() {
			if err := x.giveUp(ctx); err != nil {
				return err
			}
		} else if x.try(f) {
			return nil
		}
	}
}

// giveUp returns once an outdated index is dropped.
func (x *lister) giveUp(ctx context.Context) error {
	done := make(chan struct{})
	select {
	case x.outdated <- done:
		<-done
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-x.ended:
		return ErrNotLeader
	}
}

// try calls f if there is an index.
func (x *lister) try(f func(*listing.Index)) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.index == nil { // dropped meanwhile
		return false
	}
	f(x.index)
	return true
}

// await returns once there is an index.
func (x *lister) await(ctx context.Context) error {
	x.stateMu.Lock()
	x.lastRead = time.Now()
	b := x.build
	if b == nil {
		b = &build{done: make(chan struct{})}
		x.build = b
		signal(x.wanted)
	}
	x.stateMu.Unlock()
	select {
	case <-b.done:
		return b.err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-x.ended:
		return ErrNotLeader
	}
}
