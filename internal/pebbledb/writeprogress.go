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

// retryPause is the minimum time between a failed flush or compaction and the next attempt. Pebble has no backoff: if
// files cannot be created, it retries tens of thousands of times a second.
const retryPause = 100 * time.Millisecond

// Watch adds counting and the pause between retries to the options of a database. po.FS and po.EventListener must be
// set.
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

// pausedRetries is a file system that delays the creation of table and blob files after a failed flush or compaction.
// Pebble holds no lock of the database while it creates them, unlike when it reports the failure.
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
