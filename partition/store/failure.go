package store

import (
	"errors"
	"io/fs"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
)

// Failed reports whether err comes from the disk or from a database that is closed,
// so that the same read may succeed later. Damaged or missing rows and files are no such
// errors.
func Failed(err error) bool {
	if errors.Is(err, ErrDamaged) || pebble.IsCorruptionError(err) {
		return false
	}
	if errors.Is(err, fs.ErrNotExist) { // a file that the database counts on
		return false
	}
	var path *fs.PathError
	var number syscall.Errno
	return errors.As(err, &path) || errors.As(err, &number) || errors.Is(err, ErrClosed) || errors.Is(err, pebble.ErrClosed)
}
