package diskspace

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/raftgroup"
)

func TestLevelsOfTheDisk(t *testing.T) {
	const mib, gib = 1 << 20, 1 << 30
	for _, tc := range []struct {
		free, total uint64
		want        Level
	}{
		{100 * gib, 1000 * gib, Sufficient},
		{3 * gib, 1000 * gib, Tight}, // a tenth of a percent of a large disk is still a lot
		{gib - 1, 1000 * gib, Short},
		{500 * mib, 1000 * gib, Short},
		{100 * mib, 1000 * gib, Full},
		{200 * mib, 256 * mib, Sufficient},
		{100 * mib, 256 * mib, Tight},
		{60 * mib, 256 * mib, Short},
		{40 * mib, 256 * mib, Short},
		{30 * mib, 256 * mib, Full},
		{0, 0, Full},
	} {
		require.Equal(t, tc.want, levelOf(tc.free, tc.total), "%d of %d", tc.free, tc.total)
	}
}

func TestNodesWithLittleDiskSpaceGetNothingNew(t *testing.T) {
	synctest.Test(t, testShortDisks)
}

func testShortDisks(t *testing.T) {
	var out bytes.Buffer
	free := uint64(1 << 40)
	var broken error
	short := false
	d := &Monitor{path: "/data", log: slog.New(slog.NewTextHandler(&out, nil)), short: func(now bool) { short = now }, stat: func(string) (uint64, uint64, error) { return free, 1 << 40, broken }}
	require.Equal(t, Sufficient, d.Check())
	require.NoError(t, d.Room())
	free = 600 << 20
	require.Equal(t, Short, d.Check())
	require.ErrorIs(t, d.Room(), raftgroup.ErrOverloaded)
	require.ErrorContains(t, d.Room(), "600.0 MiB free, 1.0 GiB needed")
	require.True(t, short)
	require.Zero(t, d.ShortFor())
	time.Sleep(time.Minute)
	require.Equal(t, time.Minute, d.ShortFor())
	require.Contains(t, out.String(), "new invocations are refused")
	broken = errors.New("odd")
	require.Equal(t, Short, d.Check(), "as it was")
	broken, free = nil, 1<<40
	require.Equal(t, Sufficient, d.Check())
	require.NoError(t, d.Room())
	require.False(t, short)
	require.Contains(t, out.String(), "free disk space has increased")
}

func TestTextOfTheFreeSpace(t *testing.T) {
	d := &Monitor{}
	for free, want := range map[uint64]string{0: "0 B", 1023: "0 B", 5000: "4.0 KiB", 100_664 << 10: "98.0 MiB", 3<<30 + 1: "3.0 GiB"} {
		d.free.Store(free)
		require.Equal(t, want, d.Free())
	}
	d.level.Store(int32(Full))
	require.True(t, MeansFull(d.Shortage()))
	d.total.Store(1<<40 - 1)
	require.Contains(t, d.Shortage(), "192.0 MiB needed")
	d.total.Store(2500 << 20)
	require.Contains(t, d.Shortage(), "50.0 MiB needed")
	d.level.Store(int32(Short))
	require.False(t, MeansFull(d.Shortage()))
}

// What is written to free space must not fill the disk, but a full disk with much dead data must not stay full.
func TestSpareSpace(t *testing.T) {
	const mib, total = 1 << 20, 100 << 30
	for free, want := range map[uint64]uint64{0: 0, 100 * mib: 25 * mib, 192 * mib: 48 * mib, 193 * mib: 48 * mib, 292 * mib: 100 * mib} {
		d := New("", func(bool) {}, slog.New(slog.DiscardHandler))
		d.stat = func(string) (uint64, uint64, error) { return free, total, nil }
		d.Check()
		require.Equal(t, want, d.Spare(), "%d MiB free", free/mib)
	}
}
