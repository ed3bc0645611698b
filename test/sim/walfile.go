package sim

import (
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// walFile is a write-ahead log. Its syncs are what commits wait for.
//
// vfs.MemFS copies the whole file at each sync, which took a fifth of the CPU time of a seed. A
// walFile passes a sync on only if the file has grown since the last one. Otherwise it keeps what
// later writes replace, so that settle can give MemFS the state of the last sync before the disk
// is copied.
type walFile struct {
	vfs.File
	disk *disk

	// The fields below are covered by disk.mu.
	offset   int64      // of the next Write
	size     int64      // of the file
	synced   int64      // size of what MemFS has synced; -1: unknown
	deferred bool       // a later sync has not been passed on
	replaced []replaced // since the last sync, oldest first
}

// replaced is what a write has replaced.
type replaced struct {
	offset int64
	data   []byte
}

func (d *disk) newWALFile(f vfs.File) *walFile {
	w := &walFile{File: f, disk: d, synced: -1}
	if info, err := f.Stat(); err == nil {
		w.size = info.Size()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wals = append(d.wals, w)
	return w
}

// Write implements vfs.File.
func (f *walFile) Write(p []byte) (int, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if err := f.beforeWrite(f.offset, int64(len(p))); err != nil {
		return 0, err
	}
	n, err := f.File.Write(p)
	f.offset += int64(n)
	f.size = max(f.size, f.offset)
	return n, err
}

// WriteAt implements vfs.File.
func (f *walFile) WriteAt(p []byte, offset int64) (int, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if err := f.beforeWrite(offset, int64(len(p))); err != nil {
		return 0, err
	}
	n, err := f.File.WriteAt(p, offset)
	f.size = max(f.size, offset+int64(n))
	return n, err
}

// beforeWrite keeps what a write replaces. A file that is about to grow is settled first, because
// a sync by MemFS includes its growth.
func (f *walFile) beforeWrite(offset, n int64) error {
	if offset+n > f.size {
		if err := f.settle(); err != nil {
			return err
		}
	}
	if f.synced != f.size || offset >= f.size {
		return nil // the next sync is passed on
	}
	old := make([]byte, min(n, f.size-offset))
	if _, err := f.ReadAt(old, offset); err != nil {
		return err
	}
	f.replaced = append(f.replaced, replaced{offset, old})
	return nil
}

// settle gives MemFS the state of the last sync.
func (f *walFile) settle() error {
	if !f.deferred {
		return nil
	}
	if err := f.exchangeReplaced(); err != nil {
		return err
	}
	if err := f.File.Sync(); err != nil {
		return err
	}
	slices.Reverse(f.replaced)
	err := f.exchangeReplaced()
	slices.Reverse(f.replaced)
	f.deferred = false
	return err
}

// exchangeReplaced exchanges what was replaced with what replaced it, from last to first.
func (f *walFile) exchangeReplaced() error {
	for _, r := range slices.Backward(f.replaced) {
		now := make([]byte, len(r.data))
		if _, err := f.ReadAt(now, r.offset); err != nil {
			return err
		}
		if _, err := f.File.WriteAt(r.data, r.offset); err != nil {
			return err
		}
		copy(r.data, now)
	}
	return nil
}

// Sync implements vfs.File.
func (f *walFile) Sync() error {
	f.disk.beforeSync()
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	f.replaced = nil
	if f.deferred = f.synced == f.size; f.deferred {
		return nil
	}
	f.synced = f.size
	return f.File.Sync()
}

// SyncData implements vfs.File.
func (f *walFile) SyncData() error { return f.Sync() }

// SyncTo implements vfs.File.
func (f *walFile) SyncTo(length int64) (bool, error) {
	f.disk.beforeSync()
	return f.File.SyncTo(length)
}

// Close implements vfs.File.
func (f *walFile) Close() error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if err := f.settle(); err != nil {
		return err
	}
	f.disk.wals = slices.DeleteFunc(f.disk.wals, func(w *walFile) bool { return w == f })
	return f.File.Close()
}
