package pebbledb

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

// SeparateValues makes a Pebble database that is opened with o write values from a few KiB on
// to blob files, so that compactions rewrite only keys. o.FS and o.EventListener must be set.
func SeparateValues(o *pebble.Options) {
	rewrites := &blobRewrites{FS: o.FS}
	rewrites.listen(o.EventListener)
	o.FS = rewrites
	o.Experimental.ValueSeparationPolicy = func() pebble.ValueSeparationPolicy {
		garbage := 0.5
		if rewrites.damaged.Load() {
			garbage = 1 // no rewrites: Pebble would retry this one immediately
		}
		return pebble.ValueSeparationPolicy{
			Enabled:     true,
			MinimumSize: 4 << 10,
			// A compaction rewrites values once its tables refer to more blob files than this.
			// Values are not read in the order of keys, so their locality does not matter.
			MaxBlobReferenceDepth: 256,
			RewriteMinimumAge:     time.Minute,
			TargetGarbageRatio:    garbage,
		}
	}
}

// CheckFiles checks that the blob files of a database that was just opened exist and are
// complete, and that footers and properties of sstables can be read. Pebble checks only that
// sstables exist and are complete; it panics when it opens a damaged blob file, and without pause
// retries to read properties. pebble.IsCorruptionError and fs.ErrNotExist recognize the errors.
func CheckFiles(db *pebble.DB, fs vfs.FS, dir string) error {
	if _, err := db.SSTables(pebble.WithProperties()); err != nil {
		return err
	}
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
			path := fs.PathJoin(dir, f.Physical.FileNum.String()+blobSuffix)
			if err := checkBlobFile(fs, path, f.Physical.Size); err != nil {
				errs = append(errs, fmt.Errorf("blob file %s: %w", path, err))
			}
		}
		return errors.Join(append(errs, pin.Close())...)
	}
}

// checkBlobFile checks the size of a blob file and its footer.
func checkBlobFile(fs vfs.FS, path string, size uint64) error {
	info, err := fs.Stat(path)
	if err != nil {
		return err
	}
	if is := info.Size(); uint64(is) != size {
		return fmt.Errorf("%w: it has %d bytes instead of %d", pebble.ErrCorruption, is, size)
	}
	r, _, err := openBlobFile(fs, path)
	if err != nil {
		return err
	}
	return r.Close()
}

// openBlobFile opens a blob file, whose footer it reads. Closing r closes the file.
func openBlobFile(fs vfs.FS, path string) (r *blob.FileReader, file vfs.File, err error) {
	if file, err = fs.Open(path); err != nil {
		return nil, nil, err
	}
	readable, err := sstable.NewSimpleReadable(file)
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	if r, err = blob.NewFileReader(context.Background(), readable, blob.FileReaderOptions{}); err != nil {
		return nil, nil, errors.Join(err, readable.Close())
	}
	return r, file, nil
}
