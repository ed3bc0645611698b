package logstore

import (
	"math"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// zeroAhead is a file system that writes zeros to new write-ahead logs before the log reaches
// them. A sync of an append changes the size of the file and its allocated blocks as well, and
// waits for the journal of the file system; that of an overwrite does not. Pebble recycles the
// files of logs for this reason, but those of a new database, or of one that was just opened, are new.
//
// Pebble takes zeros for the end of a log: they may also follow it after a power failure.
type zeroAhead struct{ vfs.FS }

// Create implements vfs.FS.
func (fs zeroAhead) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.Create(name, c)
	if err != nil || c != walCategory {
		return f, err
	}
	return &zeroAheadFile{File: f}, nil
}

// ReuseForWrite implements vfs.FS.
func (fs zeroAhead) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.ReuseForWrite(from, to, c)
	if err != nil || c != walCategory {
		return f, err
	}
	info, err := f.Stat()
	if err != nil {
		return f, nil //nolint:nilerr // it is only slower
	}
	return &zeroAheadFile{File: f, end: info.Size()}, nil
}

// Unwrap implements vfs.FS.
func (fs zeroAhead) Unwrap() vfs.FS { return fs.FS }

const (
	// walCategory is the category of Pebble's write-ahead logs.
	walCategory vfs.DiskWriteCategory = "pebble-wal"
	// zeroPiece is how many bytes of zeros are added at a time, page by page. What one write adds may be
	// one unit of the page cache, all of which counts as written again at each sync of a part of it.
	zeroPiece = 64 << 10
	zeroPage  = 4 << 10
	// zeroWrite is the largest write for which that pays off: the sync of a larger one takes most
	// of its time for the data, which would be written twice.
	zeroWrite = 8 << 10
)

var zeros [zeroPage]byte

// zeroAheadFile is a write-ahead log, which is written from its beginning to its end.
type zeroAheadFile struct {
	vfs.File
	offset int64 // of the next write
	end    int64 // of what has been written, including zeros
}

// Write implements vfs.File.
func (f *zeroAheadFile) Write(p []byte) (int, error) {
	if size := int64(len(p)); f.offset+size > f.end && size <= zeroWrite {
		f.addZeros()
	}
	n, err := f.File.Write(p)
	f.offset += int64(n)
	f.end = max(f.end, f.offset)
	return n, err
}

func (f *zeroAheadFile) addZeros() {
	for range zeroPiece / zeroPage {
		if _, err := f.WriteAt(zeros[:], f.end); err != nil {
			f.end = math.MaxInt64 // the disk may be full; the log itself may still fit
			return
		}
		f.end += zeroPage
	}
}
