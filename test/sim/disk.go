package sim

import (
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// disk is an in-memory file system with sync delays that loses unsynced data in a crash.
type disk struct {
	vfs.FS
	mem *vfs.MemFS

	mu           sync.Mutex // covers the fields below
	rng          *rand.Rand
	maxSyncDelay time.Duration // maximum delay of a sync of a write-ahead log
	saved        *vfs.MemFS    // an earlier copy, for the defect lostSync
	crash        func()        // called in a later sync; nil: no crash is planned
	crashIn      int           // syncs until then
	wals         []*walFile    // that are open
}

// crashInSync calls crash during the n-th sync of a write-ahead log or of the hard states, before
// the data is on the disk. Some writes of a server, such as those of a vote, have several steps;
// crashes at a random time rarely fall between them.
func (d *disk) crashInSync(n int, crash func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.crash, d.crashIn = crash, n
}

// beforeSync delays a sync, and crashes the node if it is time for that.
func (d *disk) beforeSync() {
	d.mu.Lock()
	delay := time.Duration(d.rng.Int64N(int64(d.maxSyncDelay)))
	crash := d.crash
	if crash != nil {
		if d.crashIn--; d.crashIn > 0 {
			crash = nil
		} else {
			d.crash = nil
		}
	}
	d.mu.Unlock()
	time.Sleep(delay)
	if crash != nil {
		crash()
	}
}

// save copies the disk for unsyncedState.
func (d *disk) save() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.saved = d.clone(vfs.CrashCloneCfg{})
}

// unsyncedState returns the saved copy, as if later syncs had not happened.
func (d *disk) unsyncedState() *vfs.MemFS {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.saved == nil {
		return d.mem
	}
	return d.saved
}

const defaultSyncDelay = 300 * time.Microsecond

func newDisk(mem *vfs.MemFS, rng *rand.Rand) *disk {
	return &disk{FS: mem, mem: mem, rng: rng, maxSyncDelay: defaultSyncDelay}
}

// crashed returns the disk after a power loss, with the given percentage of unsynced pages,
// chosen at random.
func (d *disk) crashed(unsynced int, rng *rand.Rand) *disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	after := newDisk(d.clone(vfs.CrashCloneCfg{UnsyncedDataPercent: unsynced, RNG: rng}), rng)
	after.saved = d.saved
	return after
}

// clone copies the disk as it is after a power loss. d.mu must be held.
func (d *disk) clone(cfg vfs.CrashCloneCfg) *vfs.MemFS {
	for _, f := range d.wals {
		if err := f.settle(); err != nil {
			panic(err) // of an in-memory file
		}
	}
	return d.mem.CrashClone(cfg)
}

func (d *disk) setSyncDelay(delay time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.maxSyncDelay = delay
}

// Create implements vfs.FS.
func (d *disk) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.FS.Create(name, c)
	if err != nil || !isWAL(name) {
		return f, err
	}
	return d.newWALFile(f), nil
}

// ReuseForWrite implements vfs.FS.
func (d *disk) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if !isWAL(to) {
		return d.FS.ReuseForWrite(from, to, c)
	}
	if err := d.Rename(from, to); err != nil {
		return nil, err
	}
	f, err := d.FS.OpenReadWrite(to, c) // a walFile reads what it replaces
	if err != nil {
		return nil, err
	}
	return d.newWALFile(f), nil
}

// OpenReadWrite implements vfs.FS.
func (d *disk) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := d.FS.OpenReadWrite(name, c, opts...)
	if f != nil && err == nil {
		f = &slowFile{f, d}
	}
	return f, err
}

func isWAL(name string) bool { return strings.HasSuffix(name, ".log") }

// slowFile is a file whose syncs take time.
type slowFile struct {
	vfs.File
	disk *disk
}

// Sync implements vfs.File.
func (f *slowFile) Sync() error {
	f.disk.beforeSync()
	return f.File.Sync()
}

// SyncData implements vfs.File.
func (f *slowFile) SyncData() error {
	f.disk.beforeSync()
	return f.File.SyncData()
}

// SyncTo implements vfs.File.
func (f *slowFile) SyncTo(length int64) (bool, error) {
	f.disk.beforeSync()
	return f.File.SyncTo(length)
}
