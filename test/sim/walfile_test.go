package sim

import (
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

// TestWALFilesLoseWhatMemFSWouldLose applies the same random operations to write-ahead logs on a disk
// of the simulation and on a vfs.MemFS, and compares what a power loss leaves of them.
func TestWALFilesLoseWhatMemFSWouldLose(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 0))
		disk := newDisk(vfs.NewCrashableMem(), rand.New(rand.NewPCG(seed, 1)))
		disk.setSyncDelay(time.Nanosecond)
		filesystems := []vfs.FS{disk, vfs.NewCrashableMem()}
		var open [2]vfs.File
		each := func(do func(i int, fs vfs.FS) error) {
			for i, fs := range filesystems {
				require.NoError(t, do(i, fs))
			}
		}
		name := "a.log"
		each(func(i int, fs vfs.FS) (err error) {
			open[i], err = fs.Create(name, "test")
			return err
		})
		size := int64(0) // up to which writes must have no gaps
		for range rng.IntN(60) {
			data := make([]byte, 1+rng.IntN(20_000))
			for i := range data {
				data[i] = byte(rng.Uint32())
			}
			switch n := rng.IntN(20); {
			case n < 8:
				each(func(i int, _ vfs.FS) error { _, err := open[i].Write(data); return err })
			case n < 12:
				at := rng.Int64N(size + 1)
				each(func(i int, _ vfs.FS) error { _, err := open[i].WriteAt(data, at); return err })
			case n < 18:
				each(func(i int, _ vfs.FS) error { return open[i].SyncData() })
			case n < 19:
				next := "b.log"
				if name == next {
					next = "a.log"
				}
				each(func(i int, fs vfs.FS) (err error) {
					require.NoError(t, open[i].Close())
					open[i], err = fs.ReuseForWrite(name, next, "test")
					return err
				})
				name = next
			default:
				disk.save() // must not change what the next one contains
			}
			info, err := open[1].Stat()
			require.NoError(t, err)
			size = info.Size()
		}
		each(func(_ int, fs vfs.FS) error {
			dir, err := fs.OpenDir("/")
			require.NoError(t, err)
			return dir.Sync()
		})
		unsynced := rng.IntN(3) * 40
		after := []vfs.FS{
			disk.crashed(unsynced, rand.New(rand.NewPCG(seed, 2))),
			filesystems[1].(*vfs.MemFS).CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: unsynced, RNG: rand.New(rand.NewPCG(seed, 2))}),
		}
		require.Equal(t, contents(t, after[1], name), contents(t, after[0], name), "seed %d", seed)
	}
}

// contents returns a file's data, nil if it does not exist.
func contents(t *testing.T, fs vfs.FS, name string) []byte {
	f, err := fs.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	require.NoError(t, err)
	data, err := io.ReadAll(f)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	return data
}
