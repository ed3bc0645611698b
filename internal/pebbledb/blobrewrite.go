package pebbledb

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/sstable/colblk"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// blobRewrites is a file system that verifies a blob file before Pebble rewrites it. If a
// rewrite cannot read a value, Pebble panics in the background, which ends the process. It
// creates the new file first: if the old one is damaged, that fails, and with it the rewrite.
type blobRewrites struct {
	vfs.FS
	// damaged is set when a file could not be verified.
	damaged atomic.Bool

	mu    sync.Mutex
	input string // name of the file that is being rewritten, "" once it was verified
}

const blobSuffix = ".blob"

// listen adds what it needs to the events of a database.
func (r *blobRewrites) listen(l *pebble.EventListener) {
	l.BlobFileRewriteBegin = func(i pebble.BlobFileRewriteInfo) { r.setInput(i.Input.DiskFileNum.String() + blobSuffix) }
	l.BlobFileRewriteEnd = func(i pebble.BlobFileRewriteInfo) {
		r.setInput("")
		// Pebble reports failures of all other background work.
		if i.Err != nil && !errors.Is(i.Err, pebble.ErrCancelledCompaction) && l.BackgroundError != nil {
			l.BackgroundError(i.Err)
		}
	}
}

func (r *blobRewrites) setInput(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.input = name
}

// Create creates a file. During a rewrite it may also be that of a flush, which is repeated if
// this fails.
func (r *blobRewrites) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.HasSuffix(name, blobSuffix) {
		r.mu.Lock()
		input := r.input
		r.mu.Unlock()
		if input != "" {
			path := r.PathJoin(r.PathDir(name), input)
			if err := verifyBlobFile(r.FS, path); err != nil {
				r.damaged.Store(true)
				return nil, fmt.Errorf("blob file %s is not rewritten, its space is not reclaimed before the next start: %w", path, err)
			}
			r.setInput("")
		}
	}
	return r.FS.Create(name, category)
}

// Unwrap returns the wrapped file system.
func (r *blobRewrites) Unwrap() vfs.FS { return r.FS }

// verifyBlobFile reads all blocks of a blob file and verifies their checksums.
func verifyBlobFile(fs vfs.FS, path string) error {
	r, file, err := openBlobFile(fs, path)
	if err != nil {
		return err
	}
	index, err := r.ReadIndexBlock(context.Background(), block.NoReadEnv, nil)
	if err != nil {
		return errors.Join(err, r.Close())
	}
	err = verifyBlobBlocks(file, index.BlockData())
	index.Release()
	return errors.Join(err, r.Close())
}

// The index of a blob file starts with a number of 4 bytes; its second column has the offsets
// of the blocks and the end of the last one.
const (
	blobIndexHeader  = 4
	blobIndexOffsets = 1
)

func verifyBlobBlocks(file vfs.File, index []byte) error {
	decoder := colblk.DecodeBlock(index, blobIndexHeader)
	offsets := colblk.DecodeColumn(&decoder, blobIndexOffsets, decoder.Rows()+1, colblk.DataTypeUint, colblk.DecodeUnsafeUints)
	var buf []byte
	for i := range decoder.Rows() {
		from, to := offsets.At(i), offsets.At(i+1)
		if size := int(to - from); size > cap(buf) {
			buf = make([]byte, size)
		}
		buf = buf[:to-from]
		if _, err := file.ReadAt(buf, int64(from)); err != nil {
			return err
		}
		handle := block.Handle{Offset: from, Length: to - from - block.TrailerLen}
		if err := block.ValidateChecksum(block.ChecksumTypeCRC32c, buf, handle); err != nil {
			return err
		}
	}
	return nil
}
