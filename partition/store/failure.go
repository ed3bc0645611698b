package store

import (
	"errors"
	"io/fs"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
)

// Failed reports whether err is an I/O error or due to a closed database, so that the same
// read may succeed later. Corrupt or missing rows and files are not such errors.
func Failed(err error) bool {
	if errors.Is(err, ErrDamaged) || pebble.IsCorruptionError(err) {
		return false
	}
	if errors.Is(err, fs.ErrNotExist) { // a missing database file: corruption
		return false
	}
	var path *fs.PathError
	var errno syscall.Errno
	return errors.As(err, &path) || errors.As(err, &errno) || errors.Is(err, ErrClosed) || errors.Is(err, pebble.ErrClosed)
}
