package pebbledb

import (
	"github.com/cockroachdb/pebble/v2"
	"golang.org/x/sys/unix"
)

const (
	// keptOpen is how many files a database keeps open, which is the default of Pebble.
	keptOpen = 1000
	// openShare limits these files to 1/openShare of those that the process may open. The rest is for other databases, files that
	// are being written, and connections.
	openShare = 16
)

// LimitOpenFiles makes a database keep fewer files open if the process may open few (RLIMIT_NOFILE).
func LimitOpenFiles(o *pebble.Options) {
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err == nil {
		o.MaxOpenFiles = int(min(keptOpen, files.Cur/openShare))
	}
}
