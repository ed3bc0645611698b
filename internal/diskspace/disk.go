package node

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"platform/internal/raftgroup"
	"platform/internal/units"
)

// diskLevel is how short of room the disk of the data directory is.
type diskLevel int32

// The levels, each with what the node does about it.
const (
	diskRoomy diskLevel = iota
	diskTight           // says so
	diskShort           // lets others lead, or else refuses new invocations; those that it has go on
	diskFull            // closes its replicas, so that a failed write cannot harm them
)

// watermark is the free space below which a level begins: a share of the disk, but
// neither so little that a second's work fills it nor so much that it is never needed.
type watermark struct {
	level       diskLevel
	percent     uint64
	least, most uint64 // bytes
}

var watermarks = []watermark{
	{diskFull, 2, 32 << 20, 192 << 20},
	{diskShort, 8, 64 << 20, 1 << 30},
	{diskTight, 15, 128 << 20, 4 << 30},
}

// levelOf is the level of a disk with that much room.
func levelOf(free, total uint64) diskLevel {
	for _, w := range watermarks {
		if free < min(max(total*w.percent/100, w.least), w.most) {
			return w.level
		}
	}
	return diskRoomy
}

// diskTick is how often the free space is looked at.
const diskTick = 500 * time.Millisecond

// disk watches the room on the disk of the data directory.
type disk struct {
	path  string
	level atomic.Int32
	free  atomic.Uint64
	// since is when the disk became short of room.
	since atomic.Pointer[time.Time]
	stat  func(path string) (free, total uint64, err error) // statDisk, but for tests
	// short is told when the disk has become short of room, or is not any more.
	short func(bool)
	log   *slog.Logger
}

func statDisk(path string) (free, total uint64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return 0, 0, err
	}
	return st.Bavail * uint64(st.Bsize), st.Blocks * uint64(st.Bsize), nil
}

// look notes how much room there is. A disk that cannot be asked counts as it did.
func (d *disk) look() diskLevel {
	free, total, err := d.stat(d.path)
	if err != nil {
		return d.now()
	}
	d.free.Store(free)
	level := levelOf(free, total)
	if was := diskLevel(d.level.Swap(int32(level))); was != level {
		d.report(was, level)
		if (was >= diskShort) != (level >= diskShort) {
			now := time.Now()
			d.since.Store(&now)
			d.short(level >= diskShort)
		}
	}
	return level
}

func (d *disk) report(was, level diskLevel) {
	consequence := [...]string{
		"there is room again", "make room", "other nodes lead, or new invocations are refused", "replicas are closed until there is room",
	}[level]
	if level > was {
		d.log.Warn("the disk fills up", "free", d.text(), "consequence", consequence, "data", d.path)
	} else {
		d.log.Info("the disk has more room", "free", d.text(), "consequence", consequence, "data", d.path)
	}
}

func (d *disk) text() string { return units.ByteSize(d.free.Load()).String() }

func (d *disk) now() diskLevel { return diskLevel(d.level.Load()) }

// watch looks until ctx ends.
func (d *disk) watch(ctx context.Context) error {
	tick := time.NewTicker(diskTick)
	defer tick.Stop()
	for {
		d.look()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// room says why nothing new is taken, nil if it is.
func (d *disk) room() error {
	if d.now() < diskShort {
		return nil
	}
	return &noRoomError{d.text()}
}

// shortage says for people that room is short, and what the node does about it; "" if
// there is room.
func (d *disk) shortage() string {
	switch d.now() {
	case diskTight:
		return "fills up (" + d.text() + " free)"
	case diskShort:
		return "is nearly full (" + d.text() + " free): it leads nothing if others can, and takes nothing new"
	case diskFull:
		return "is full (" + d.text() + " free): its replicas are closed until there is room"
	}
	return ""
}

// shortFor is for how long the disk has been short of room, which it is.
func (d *disk) shortFor() time.Duration {
	if since := d.since.Load(); since != nil {
		return time.Since(*since)
	}
	return 0
}

// noRoomError says that a node takes nothing new.
type noRoomError struct{ free string }

// Error says what to do.
func (e *noRoomError) Error() string {
	return fmt.Sprintf("the disk of the node is nearly full (%s free); make room on it", e.free)
}

// Unwrap is raftgroup.ErrOverloaded: nothing was proposed.
func (e *noRoomError) Unwrap() error { return raftgroup.ErrOverloaded }
