package node

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
		want        diskLevel
	}{
		{100 * gib, 1000 * gib, diskRoomy},
		{3 * gib, 1000 * gib, diskTight}, // a tenth of a percent of a large disk is still a lot
		{gib - 1, 1000 * gib, diskShort},
		{500 * mib, 1000 * gib, diskShort},
		{100 * mib, 1000 * gib, diskFull},
		{200 * mib, 256 * mib, diskRoomy},
		{100 * mib, 256 * mib, diskTight},
		{60 * mib, 256 * mib, diskShort},
		{40 * mib, 256 * mib, diskShort},
		{30 * mib, 256 * mib, diskFull},
		{0, 0, diskFull},
	} {
		require.Equal(t, tc.want, levelOf(tc.free, tc.total), "%d of %d", tc.free, tc.total)
	}
}

func TestShortDisksTakeNothingNew(t *testing.T) {
	synctest.Test(t, testShortDisks)
}

func testShortDisks(t *testing.T) {
	var out bytes.Buffer
	free := uint64(1 << 40)
	var broken error
	short := false
	d := &disk{path: "/data", log: slog.New(slog.NewTextHandler(&out, nil)), short: func(now bool) { short = now }, stat: func(string) (uint64, uint64, error) { return free, 1 << 40, broken }}
	require.Equal(t, diskRoomy, d.look())
	require.NoError(t, d.room())
	free = 600 << 20
	require.Equal(t, diskShort, d.look())
	require.ErrorIs(t, d.room(), raftgroup.ErrOverloaded)
	require.ErrorContains(t, d.room(), "600.0 MiB free")
	require.True(t, short)
	require.Zero(t, d.shortFor())
	time.Sleep(time.Minute)
	require.Equal(t, time.Minute, d.shortFor())
	require.Contains(t, out.String(), "new invocations are refused")
	broken = errors.New("odd")
	require.Equal(t, diskShort, d.look(), "as it was")
	broken, free = nil, 1<<40
	require.Equal(t, diskRoomy, d.look())
	require.NoError(t, d.room())
	require.False(t, short)
	require.Contains(t, out.String(), "there is room again")
}
