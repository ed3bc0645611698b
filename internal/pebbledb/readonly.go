package pebbledb

import (
	"errors"
	"io"
	"io/fs"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

// ReadOnlyFS returns a file system for opening databases read-only that may not be writable: by this
// user, or a read-only mount. Pebble opens its lock file for writing, so such a database is opened
// without that lock. The caller excludes concurrent writers, by the lock of the data directory.
func ReadOnlyFS(files vfs.FS) vfs.FS { return readOnlyFS{files} }

type readOnlyFS struct{ vfs.FS }

func (f readOnlyFS) Lock(name string) (io.Closer, error) {
	lock, err := f.FS.Lock(name)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS) {
		return noLock{}, nil
	}
	return lock, err
}

// Unwrap returns the wrapped file system.
func (f readOnlyFS) Unwrap() vfs.FS { return f.FS }

// noLock is the lock of a database that cannot be written to.
type noLock struct{}

func (noLock) Close() error { return nil }
