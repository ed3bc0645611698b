package sim

import (
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// disk is a file system in memory that takes its time and forgets, in a crash, what was
// not synced.
type disk struct {
	vfs.FS
	mem *vfs.MemFS

	mu  sync.Mutex // covers the fields below
	rng *rand.Rand
	lag time.Duration // of each sync of a write-ahead log, at most
	old *vfs.MemFS    // what was on it a moment ago, if that is kept
}

// remember keeps what is on the disk now, for forgetful.
func (d *disk) remember() {
	now := d.mem.CrashClone(vfs.CrashCloneCfg{})
	d.mu.Lock()
	defer d.mu.Unlock()
	d.old = now
}

// forgetful is what is on a disk that had not synced for a moment, though it said so.
func (d *disk) forgetful() *vfs.MemFS {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.old == nil {
		return d.mem
	}
	return d.old
}

const usualLag = 300 * time.Microsecond

func newDisk(mem *vfs.MemFS, rng *rand.Rand) *disk {
	return &disk{FS: mem, mem: mem, rng: rng, lag: usualLag}
}

// crashed is the disk after a loss of power, of which unsynced percent of what was not
// synced is on it, in pages drawn at random.
func (d *disk) crashed(unsynced int, rng *rand.Rand) *disk {
	after := newDisk(d.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: unsynced, RNG: rng}), rng)
	after.old = d.old
	return after
}

func (d *disk) slow(lag time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lag = lag
}

func (d *disk) wait() {
	d.mu.Lock()
	t := time.Duration(d.rng.Int64N(int64(d.lag)))
	d.mu.Unlock()
	time.Sleep(t)
}

// Create implements vfs.FS.
func (d *disk) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.FS.Create(name, c)
	return d.watched(name, f), err
}

// ReuseForWrite implements vfs.FS.
func (d *disk) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.FS.ReuseForWrite(from, to, c)
	return d.watched(to, f), err
}

func (d *disk) watched(name string, f vfs.File) vfs.File {
	if f == nil || !strings.HasSuffix(name, ".log") {
		return f
	}
	return &slowFile{f, d}
}

// slowFile is a write-ahead log. Its syncs are what commits wait for.
type slowFile struct {
	vfs.File
	disk *disk
}

// Sync implements vfs.File.
func (f *slowFile) Sync() error {
	f.disk.wait()
	return f.File.Sync()
}

// SyncData implements vfs.File.
func (f *slowFile) SyncData() error {
	f.disk.wait()
	return f.File.SyncData()
}

// SyncTo implements vfs.File.
func (f *slowFile) SyncTo(length int64) (bool, error) {
	f.disk.wait()
	return f.File.SyncTo(length)
}
