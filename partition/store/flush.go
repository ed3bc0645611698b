package store

import (
	"context"
	"fmt"
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// flusher lets flushes that are asked for at the same time be one. All partitions
// of a node ask together, and each flush costs a memtable and a file.
type flusher struct {
	wg      sync.WaitGroup
	running sync.Mutex    // held while a flush is under way
	closing chan struct{} // closed when no flush is waited for any more

	mu   sync.Mutex   // covers next
	next *sharedFlush // asked for and not begun
}

// sharedFlush is one flush, and whoever waits for it.
type sharedFlush struct {
	done chan struct{}
	err  error // valid once done is closed
}

// Flush makes all that was committed before the call durable, of all partitions. It
// returns at once; wait returns when it is done.
func (db *DB) Flush() (wait func(context.Context) error, err error) {
	f := &db.flusher
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.next == nil {
		f.next = &sharedFlush{done: make(chan struct{})}
		f.wg.Go(func() { f.run(db.pebble) })
	}
	return f.next.wait, nil
}

// run carries out the next flush. Once it has begun, callers get the one after it.
func (f *flusher) run(db *pebble.DB) {
	f.running.Lock()
	defer f.running.Unlock()
	f.mu.Lock()
	now := f.next
	f.next = nil
	f.mu.Unlock()
	defer close(now.done)
	now.err = ErrClosed
	select {
	case <-f.closing:
		return
	default:
	}
	flushed, err := db.AsyncFlush()
	if err != nil {
		now.err = err
		return
	}
	select {
	case <-flushed:
		now.err = nil
	case <-f.closing: // on a full disk Pebble tries for ever
	}
}

func (f *sharedFlush) wait(ctx context.Context) error {
	select {
	case <-f.done:
		if f.err != nil {
			return fmt.Errorf("flush tables: %w", f.err)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("flush tables: %w", context.Cause(ctx))
	}
}
