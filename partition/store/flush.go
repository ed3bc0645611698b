package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// flusher coalesces concurrent flush requests. All partitions of a node request flushes at
// about the same time, and each flush costs a memtable and a file.
type flusher struct {
	wg      sync.WaitGroup
	running sync.Mutex    // held during a flush
	closing chan struct{} // closed by Close: waiting for flushes ends

	mu   sync.Mutex   // covers next
	next *sharedFlush // requested, not started
}

// sharedFlush is one flush and its result, shared by all callers that wait for it.
type sharedFlush struct {
	done chan struct{}
	err  error // valid once done is closed
}

// Flush starts making all earlier commits of all partitions durable. It does not block;
// wait returns when the flush is complete.
func (db *DB) Flush() (wait func(context.Context) error, err error) {
	f := &db.flusher
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.next == nil {
		f.next = &sharedFlush{done: make(chan struct{})}
		f.wg.Go(func() { f.run(db) })
	}
	return f.next.wait, nil
}

// run performs the next flush. Requests that arrive after it has started get the following
// one.
func (f *flusher) run(db *DB) {
	f.running.Lock()
	defer f.running.Unlock()
	f.mu.Lock()
	flush := f.next
	f.next = nil
	f.mu.Unlock()
	defer close(flush.done)
	flush.err = ErrClosed
	select {
	case <-f.closing:
		return
	default:
	}
	for _, p := range db.all() {
		// A partition that failed reports that itself, and does not keep the others from being flushed.
		if err := p.settle(f.closing); errors.Is(err, ErrClosed) {
			return
		}
	}
	flushed, err := db.pebble.AsyncFlush()
	if err != nil {
		flush.err = err
		return
	}
	select {
	case <-flushed:
		flush.err = nil
	case <-f.closing: // Pebble retries indefinitely while the disk is full
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
