package pebbledb

import (
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// WriteProgress counts what the flushes and compactions of a Pebble database write, apart
// from retries of what failed. A commit that waits while the count grows waits for them to
// catch up; it does not hang.
type WriteProgress struct {
	files   atomic.Uint64
	failing atomic.Bool // the last flush or compaction failed; the next one repeats its work
}

// retryPause is the pause before a flush or compaction repeats one that failed. Pebble itself repeats it at once, tens
// of thousands of times a second if the file cannot even be created.
const retryPause = 100 * time.Millisecond

// Watch makes a database count, and pause before it repeats what failed. The options have their file system and event
// listener by then.
func (p *WriteProgress) Watch(po *pebble.Options) {
	po.FS = pausedRetries{po.FS, p}
	l := po.EventListener
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

// pausedRetries is the file system of a database whose flushes and compactions wait before they create their first
// file if the last one failed. Only there do they hold no lock of the database.
type pausedRetries struct {
	vfs.FS
	progress *WriteProgress
}

// Create implements vfs.FS.
func (fs pausedRetries) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if ext := filepath.Ext(name); fs.progress.failing.Load() && (ext == ".sst" || ext == ".blob") {
		time.Sleep(retryPause)
	}
	return fs.FS.Create(name, c)
}

// Unwrap implements vfs.FS.
func (fs pausedRetries) Unwrap() vfs.FS { return fs.FS }
