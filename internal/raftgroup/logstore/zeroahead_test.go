package logstore

import (
	"bytes"
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/wal"
	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// A process may end after it has written zeros to a new log and before the first record. The log must then
// not count as damaged, even while it is not the newest one.
func TestALogOfZerosIsEmpty(t *testing.T) {
	disk := vfs.NewCrashableMem()
	db, err := Open("log", Options{FS: disk, Logger: quiet})
	require.NoError(t, err)
	image := disk.CrashClone(vfs.CrashCloneCfg{})
	require.NoError(t, db.Close())
	logs, err := wal.Scan(wal.Dir{FS: image, Dirname: "log"})
	require.NoError(t, err)
	_, path := logs[len(logs)-1].SegmentLocation(0)
	f, err := image.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	_, err = f.WriteAt(zeros[:], 0)
	require.NoError(t, errors.Join(err, f.Sync(), f.Close()))

	for i := range uint64(3) {
		db, err := Open("log", Options{FS: image, Logger: quiet})
		require.NoError(t, err)
		s, err := db.Storage(7)
		require.NoError(t, err)
		require.Equal(t, i, s.last)
		require.NoError(t, s.StoreLogs([]*raft.Log{{Index: i + 1, Term: 1, Data: []byte("x")}}))
		crashed := image.CrashClone(vfs.CrashCloneCfg{})
		require.NoError(t, db.Close())
		image = crashed
	}
}

func TestZerosPrecedeSmallWritesOnly(t *testing.T) {
	f := createAhead(t, vfs.NewMem())
	large, small := bytes.Repeat([]byte("l"), zeroWrite+1), []byte("small")
	write(t, f, large)
	require.Equal(t, int64(len(large)), sizeOfFile(t, f))
	write(t, f, small)
	zeroed := int64(len(large) + zeroPiece)
	require.Equal(t, zeroed, sizeOfFile(t, f))
	write(t, f, large)
	write(t, f, small)
	require.Equal(t, zeroed, sizeOfFile(t, f), "there were enough")

	want := bytes.Join([][]byte{large, small, large, small}, nil)
	got := make([]byte, zeroed)
	_, err := f.ReadAt(got, 0)
	require.NoError(t, err)
	require.Equal(t, append(want, make([]byte, int(zeroed)-len(want))...), got)
}

// A larger write of zeros may be one unit of the page cache, and the whole of it would count as written
// at each sync.
func TestZerosAreWrittenPageByPage(t *testing.T) {
	sizes := map[int]int{}
	f := createAhead(t, countingWrites{vfs.NewMem(), sizes})
	write(t, f, []byte("small"))
	require.Equal(t, map[int]int{zeroPage: zeroPiece / zeroPage}, sizes)
}

// What a recycled file contains is overwritten as well.
func TestARecycledLogNeedsNoZerosBeforeItsEnd(t *testing.T) {
	fs := zeroAhead{vfs.NewMem()}
	old, err := fs.Create("000001.log", walCategory)
	require.NoError(t, err)
	write(t, old, bytes.Repeat([]byte("o"), zeroWrite+1))
	require.NoError(t, old.Close())
	f, err := fs.ReuseForWrite("000001.log", "000002.log", walCategory)
	require.NoError(t, err)
	defer f.Close()
	write(t, f, []byte("new"))
	require.Equal(t, int64(zeroWrite+1), sizeOfFile(t, f))
	write(t, f, make([]byte, zeroWrite))
	require.Equal(t, int64(zeroWrite+1+zeroPiece), sizeOfFile(t, f))
}

func TestOtherFilesHaveNoZeros(t *testing.T) {
	fs := zeroAhead{vfs.NewMem()}
	f, err := fs.Create("000001.sst", "pebble-memtable-flush")
	require.NoError(t, err)
	defer f.Close()
	write(t, f, []byte("small"))
	require.Equal(t, int64(5), sizeOfFile(t, f))
}

// A log may still fit onto a disk that has no room for zeros.
func TestALogNeedsNoRoomForZeros(t *testing.T) {
	f := createAhead(t, noWriteAt{vfs.NewMem()})
	write(t, f, []byte("one"))
	write(t, f, []byte("two"))
	require.Equal(t, int64(6), sizeOfFile(t, f))
}

func createAhead(t *testing.T, fs vfs.FS) vfs.File {
	t.Helper()
	f, err := zeroAhead{fs}.Create("000001.log", walCategory)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f
}

func write(t *testing.T, f vfs.File, p []byte) {
	t.Helper()
	n, err := f.Write(p)
	require.NoError(t, err)
	require.Equal(t, len(p), n)
}

func sizeOfFile(t *testing.T, f vfs.File) int64 {
	t.Helper()
	info, err := f.Stat()
	require.NoError(t, err)
	return info.Size()
}

// noWriteAt is a file system without room beyond the ends of its files.
type noWriteAt struct{ vfs.FS }

func (fs noWriteAt) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.Create(name, c)
	return noWriteAtFile{f}, err
}

type noWriteAtFile struct{ vfs.File }

func (noWriteAtFile) WriteAt([]byte, int64) (int, error) { return 0, errors.New("no space left") }

// countingWrites is a file system that counts the writes at a position by their size.
type countingWrites struct {
	vfs.FS
	sizes map[int]int
}

func (fs countingWrites) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.Create(name, c)
	return countingFile{f, fs.sizes}, err
}

type countingFile struct {
	vfs.File
	sizes map[int]int
}

func (f countingFile) WriteAt(p []byte, at int64) (int, error) {
	f.sizes[len(p)]++
	return f.File.WriteAt(p, at)
}
