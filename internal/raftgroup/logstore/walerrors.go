package logstore

import (
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// walErrors is a file system that ends the process at the first error of a write-ahead log, with a message. Pebble cannot
// continue after it either: it panics if it replaces the log before a commit has reported the error.
type walErrors struct {
	vfs.FS
	fatal func(format string, args ...any) // does not return
	open  atomic.Bool                      // the database is open; errors of opening and closing it are returned
}

// Create implements vfs.FS.
func (fs *walErrors) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.Create(name, c)
	return fs.watch(f, err, c)
}

// ReuseForWrite implements vfs.FS.
func (fs *walErrors) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.ReuseForWrite(from, to, c)
	return fs.watch(f, err, c)
}

// Unwrap implements vfs.FS.
func (fs *walErrors) Unwrap() vfs.FS { return fs.FS }

func (fs *walErrors) watch(f vfs.File, err error, c vfs.DiskWriteCategory) (vfs.File, error) {
	if c != walCategory {
		return f, err
	}
	if err := fs.note(err); err != nil {
		return nil, err
	}
	return walErrorsFile{f, fs}, nil
}

// note ends the process if err is an error.
func (fs *walErrors) note(err error) error {
	if err != nil && fs.open.Load() {
		fs.fatal("write-ahead log: %v", err)
	}
	return err
}

// walErrorsFile is a write-ahead log.
type walErrorsFile struct {
	vfs.File
	fs *walErrors
}

// Write implements vfs.File.
func (f walErrorsFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	return n, f.fs.note(err)
}

// Sync implements vfs.File.
func (f walErrorsFile) Sync() error { return f.fs.note(f.File.Sync()) }

// SyncData implements vfs.File.
func (f walErrorsFile) SyncData() error { return f.fs.note(f.File.SyncData()) }

// SyncTo implements vfs.File.
func (f walErrorsFile) SyncTo(length int64) (bool, error) {
	full, err := f.File.SyncTo(length)
	return full, f.fs.note(err)
}

// Close implements vfs.File.
func (f walErrorsFile) Close() error { return f.fs.note(f.File.Close()) }
