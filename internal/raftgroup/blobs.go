package raftgroup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/blob"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// SeparateValues is the policy of Pebble databases for values from a few KiB on: flushes
// write them to blob files, so that compactions rewrite only keys.
func SeparateValues() pebble.ValueSeparationPolicy {
	return pebble.ValueSeparationPolicy{
		Enabled:     true,
		MinimumSize: 4 << 10,
		// A compaction rewrites values once its tables refer to more blob files than this.
		// Values are not read in the order of keys, so their locality does not matter.
		MaxBlobReferenceDepth: 256,
		RewriteMinimumAge:     time.Minute,
		TargetGarbageRatio:    0.5,
	}
}

// CheckBlobFiles checks that the blob files of a database that was just opened exist and are
// complete. Pebble checks only sstables when it opens a database, and panics when it opens a
// damaged blob file.
func CheckBlobFiles(db *pebble.DB, fs vfs.FS, dir string) error {
	for {
		version := db.DebugCurrentVersion()
		pin, err := db.NewIter(nil) // retains the files of the current version
		if err != nil {
			return err
		}
		if db.DebugCurrentVersion() != version {
			if err := pin.Close(); err != nil {
				return err
			}
			continue
		}
		var errs []error
		for f := range version.BlobFiles.All() {
			path := fs.PathJoin(dir, fmt.Sprintf("%s.blob", f.Physical.FileNum))
			if err := checkBlobFile(fs, path, f.Physical.Size); err != nil {
				errs = append(errs, fmt.Errorf("blob file %s: %w", path, err))
			}
		}
		return errors.Join(append(errs, pin.Close())...)
	}
}

// checkBlobFile checks the size of a blob file and its footer.
func checkBlobFile(fs vfs.FS, path string, size uint64) error {
	file, err := fs.Open(path)
	if err != nil {
		return err
	}
	readable, err := sstable.NewSimpleReadable(file)
	if err != nil {
		return errors.Join(err, file.Close())
	}
	if is := readable.Size(); uint64(is) != size {
		return errors.Join(fmt.Errorf("%w: it has %d bytes instead of %d", ErrCorrupt, is, size), readable.Close())
	}
	r, err := blob.NewFileReader(context.Background(), readable, blob.FileReaderOptions{})
	if err != nil {
		return errors.Join(err, readable.Close())
	}
	return r.Close()
}
