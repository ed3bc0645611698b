// Package diskspace monitors the free space on the disk of a data directory and defines the
// levels at which a node sheds work.
package diskspace

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"platform/internal/raftgroup"
	"platform/internal/units"
)

// Level is a shortage of space on the disk of the data directory.
type Level int32

// The levels, in ascending order of shortage, with the reaction of the node.
const (
	Sufficient Level = iota
	Tight            // logs a warning
	Short            // transfers leadership, or rejects new invocations if it cannot; existing ones continue
	Full             // closes its replicas before a write fails
)

// watermark is the free space below which a level begins: a percentage of the disk, but at
// least what is written within a few seconds, and at most a useful reserve.
type watermark struct {
	level       Level
	percent     uint64
	least, most uint64 // bytes
}

var watermarks = []watermark{
	{Full, 2, 32 << 20, 192 << 20},
	{Short, 8, 64 << 20, 1 << 30},
	{Tight, 15, 128 << 20, 4 << 30},
}

// bytes returns the watermark of a disk of the given size.
func (w watermark) bytes(total uint64) uint64 {
	return min(max(total*w.percent/100, w.least), w.most)
}

// levelOf returns the level of a disk.
func levelOf(free, total uint64) Level {
	for _, w := range watermarks {
		if free < w.bytes(total) {
			return w.level
		}
	}
	return Sufficient
}

// Tick is how often Run checks the free space.
const Tick = 500 * time.Millisecond

// Monitor measures the free space on the disk of a data directory.
type Monitor struct {
	path  string
	level atomic.Int32
	free  atomic.Uint64
	total atomic.Uint64
	// since is when the level last reached or left Short.
	since atomic.Pointer[time.Time]
	stat  func(path string) (free, total uint64, err error) // statFile, except in tests
	// short is called when the disk becomes short of space, and when it no longer is.
	short func(bool)
	log   *slog.Logger
}

// New returns the monitor of the disk of directory path. It calls short when the disk
// becomes short of space, and when it no longer is.
func New(path string, short func(bool), log *slog.Logger) *Monitor {
	return &Monitor{path: path, stat: statFile, short: short, log: log}
}

func statFile(path string) (free, total uint64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return 0, 0, err
	}
	return st.Bavail * uint64(st.Bsize), st.Blocks * uint64(st.Bsize), nil
}

// Check measures the free space. If that fails, the level does not change.
func (d *Monitor) Check() Level {
	free, total, err := d.stat(d.path)
	if err != nil {
		return d.Level()
	}
	d.free.Store(free)
	d.total.Store(total)
	level := levelOf(free, total)
	if was := Level(d.level.Swap(int32(level))); was != level {
		d.report(was, level)
		if (was >= Short) != (level >= Short) {
			now := time.Now()
			d.since.Store(&now)
			d.short(level >= Short)
		}
	}
	return level
}

func (d *Monitor) report(was, level Level) {
	consequence := [...]string{
		"none", "free disk space", "other nodes lead, or new invocations are refused", "replicas are closed until space is freed",
	}[level]
	if level > was {
		d.log.Warn("free disk space is low", "free", d.Free(), "consequence", consequence, "data", d.path)
	} else {
		d.log.Info("free disk space has increased", "free", d.Free(), "consequence", consequence, "data", d.path)
	}
}

// Free returns the free space as text, rounded down to MiB, or to KiB below 1 MiB.
func (d *Monitor) Free() string { return sizeText(d.free.Load()) }

// Space returns the free space and the size of the disk in bytes.
func (d *Monitor) Space() (free, total uint64) { return d.free.Load(), d.total.Load() }

// spareOfFull is the share of the free space of a full disk that Spare returns.
const spareOfFull = 4

// Spare returns how much may be written, at the last check, to free more than that: what is above the level Full, or a
// part of what a full disk has left.
func (d *Monitor) Spare() uint64 {
	free, total := d.Space()
	if full := watermarks[0].bytes(total); free > full {
		return max(free-full, full/spareOfFull)
	}
	return free / spareOfFull
}

// Balance describes how much space is free, and how much is needed to leave a level.
func (d *Monitor) Balance(level Level) string {
	for _, w := range watermarks {
		if w.level == level {
			// Rounded up, since the free space is rounded down.
			return d.Free() + " free, " + sizeText(w.bytes(d.total.Load())+uint64(units.MiB)-1) + " needed"
		}
	}
	return d.Free() + " free"
}

func sizeText(bytes uint64) string {
	size, unit := units.ByteSize(bytes), units.MiB
	if size < unit {
		unit = units.KiB
	}
	return (size - size%unit).String()
}

// Level returns the level at the last check.
func (d *Monitor) Level() Level { return Level(d.level.Load()) }

// Run checks the free space until ctx ends.
func (d *Monitor) Run(ctx context.Context) error {
	tick := time.NewTicker(Tick)
	defer tick.Stop()
	for {
		d.Check()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// Room returns an error if no new work is accepted.
func (d *Monitor) Room() error {
	if d.Level() < Short {
		return nil
	}
	return &noRoomError{d.Balance(Short)}
}

// Shortage describes a lack of space and its consequence; "" if there is none.
func (d *Monitor) Shortage() string {
	switch d.Level() {
	case Tight:
		return "fills up (" + d.Free() + " free)"
	case Short:
		return "is nearly full (" + d.Balance(Short) + "): other nodes lead if possible, and new work is rejected"
	case Full:
		return fullDisk + " (" + d.Balance(Full) + "): its replicas are closed until space is freed"
	}
	return ""
}

// fullDisk begins the text of Shortage for a full disk, also those of nodes of other versions.
const fullDisk = "is full"

// MeansFull reports whether a text of Shortage, of any node, describes a full disk.
func MeansFull(shortage string) bool { return strings.HasPrefix(shortage, fullDisk) }

// ShortFor returns for how long the disk has been short of space.
func (d *Monitor) ShortFor() time.Duration {
	if since := d.since.Load(); since != nil {
		return time.Since(*since)
	}
	return 0
}

// noRoomError means that a node accepts no new work.
type noRoomError struct{ balance string }

// Error implements error.
func (e *noRoomError) Error() string {
	return fmt.Sprintf("the disk of the node is nearly full (%s); free disk space", e.balance)
}

// Unwrap is raftgroup.ErrOverloaded: nothing was proposed.
func (e *noRoomError) Unwrap() error { return raftgroup.ErrOverloaded }
