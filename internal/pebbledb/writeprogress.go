package pebbledb

import (
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// WriteProgress counts what the flushes and compactions of a Pebble database write, apart
// from retries of what failed. A commit that waits while the count grows waits for them to
// catch up; it does not hang.
type WriteProgress struct {
	files   atomic.Uint64
	failing atomic.Bool // the last flush or compaction failed; the next one repeats its work
}

// Listen adds what is counted to the events that a database reports.
func (p *WriteProgress) Listen(l *pebble.EventListener) {
	report := l.BackgroundError
	l.BackgroundError = func(err error) {
		p.failing.Store(true)
		if report != nil {
			report(err)
		}
	}
	l.TableCreated = func(pebble.TableCreateInfo) { p.created() }
	l.BlobFileCreated = func(pebble.BlobFileCreateInfo) { p.created() }
	l.FlushEnd = func(i pebble.FlushInfo) { p.ended(i.Err) }
	l.CompactionEnd = func(i pebble.CompactionInfo) { p.ended(i.Err) }
}

func (p *WriteProgress) created() {
	if !p.failing.Load() {
		p.files.Add(1)
	}
}

func (p *WriteProgress) ended(err error) {
	if err == nil {
		p.failing.Store(false)
		p.files.Add(1)
	}
}

// Count returns the count so far.
func (p *WriteProgress) Count() uint64 { return p.files.Load() }
