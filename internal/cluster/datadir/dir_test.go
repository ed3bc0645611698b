package datadir

import (
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"platform/internal/errcode"
)

func TestDataDirectoryIsHeldByOne(t *testing.T) {
	base := t.TempDir()
	first, err := Open(base, "n1")
	require.NoError(t, err)
	_, err = Open(base, "n1")
	requireCode(t, errcode.RT0005, err)
	other, err := Open(base, "n2")
	require.NoError(t, err)
	require.NoError(t, other.Close())
	require.NoError(t, first.Close())
	again, err := Open(base, "n1")
	require.NoError(t, err)
	require.NoError(t, again.Close())
}

func TestDataDirectoryOfAnotherFormatIsRefused(t *testing.T) {
	for name, write := range map[string][2]string{
		"newer format": {"FORMAT", "99\n"},
		"no format":    {"something", "else"},
	} {
		t.Run(name, func(t *testing.T) {
			base := t.TempDir()
			require.NoError(t, os.Mkdir(filepath.Join(base, "n1"), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(base, "n1", write[0]), []byte(write[1]), 0o600))
			_, err := Open(base, "n1")
			requireCode(t, errcode.RT0009, err)
		})
	}
}

func requireCode(t *testing.T, want errcode.Code, err error) {
	t.Helper()
	require.Error(t, err)
	code, ok := errcode.Of(err)
	require.True(t, ok, err)
	require.Equal(t, want, code)
}

// A node that does not find its data, such as after a change of its name, is told about others.
func TestDirectoriesOfOtherNodesThatDoNotRun(t *testing.T) {
	base := t.TempDir()
	require.Empty(t, Idle(filepath.Join(base, "absent"), "n1"))
	require.NoError(t, os.Mkdir(filepath.Join(base, "unrelated"), 0o700))
	first, err := Open(base, "n1")
	require.NoError(t, err)
	require.Empty(t, Idle(base, "n2"), "n1 runs")
	require.NoError(t, first.Close())
	require.Equal(t, []string{"n1"}, Idle(base, "n2"))
	require.Empty(t, Idle(base, "n1"))
	second, err := Open(base, "n2")
	require.NoError(t, err)
	require.NoError(t, second.Close())
	require.Empty(t, Idle(base, "n2"))
}

// A renamed or copied directory must not act as the node that it was created for.
func TestDirectoryOfAnotherNodeIsRefused(t *testing.T) {
	base := t.TempDir()
	d, err := Open(base, "n1")
	require.NoError(t, err)
	_, err = d.LoadIdentity("c", "n1")
	require.NoError(t, err)
	require.NoError(t, d.Close())
	require.NoError(t, os.Rename(filepath.Join(base, "n1"), filepath.Join(base, "n2")))
	d, err = Open(base, "n2")
	require.NoError(t, err)
	_, err = d.LoadIdentity("c", "n2")
	require.ErrorContains(t, err, `belongs to node "n1", not "n2", according to its IDENTITY file; to run that node, rename the directory to n1 and set node-name to n1`)
	requireCode(t, errcode.RT0009, err)
	require.NoError(t, d.Close())
}

// Copies of a directory in use are reported once; copies of a stopped one, and moved directories, are not.
func TestCopiesOfDirectoriesInUse(t *testing.T) {
	base := t.TempDir()
	open := func(name string, copied bool) *Dir {
		t.Helper()
		d, err := Open(base, name)
		require.NoError(t, err)
		require.Equal(t, copied, d.CopiedInUse(), name)
		return d
	}
	first := open("n1", false)
	if n, err := inodeOf(first.lock); err != nil || n == 0 {
		t.Skip("the file system of the temporary directory has no stable inode numbers")
	}
	require.NoError(t, os.CopyFS(filepath.Join(base, "hot"), os.DirFS(first.Path())))
	require.NoError(t, first.lock.Close()) // as when the server is killed

	killed := open("n1", false)
	require.NoError(t, killed.Close())
	require.NoError(t, os.CopyFS(filepath.Join(base, "cold"), os.DirFS(killed.Path())))
	require.NoError(t, open("cold", false).Close())

	hot := open("hot", true)
	require.NoError(t, hot.lock.Close())
	require.NoError(t, os.Rename(hot.Path(), filepath.Join(base, "moved")))
	require.NoError(t, open("moved", false).Close())
}

// Another server that starts with a wrong node name looks for idle directories.
func TestProbesDoNotKeepAServerFromItsDirectory(t *testing.T) {
	base := t.TempDir()
	d, err := Open(base, "n1")
	require.NoError(t, err)
	require.Empty(t, Idle(base, "n2"), "a server uses it")
	_, err = Open(base, "n1")
	requireCode(t, errcode.RT0005, err)
	require.NoError(t, d.Close())
	require.Equal(t, []string{"n1"}, Idle(base, "n2"))

	var stop atomic.Bool
	var probes sync.WaitGroup
	probes.Go(func() {
		for !stop.Load() {
			Idle(base, "n2")
		}
	})
	for range 1000 {
		d, err := Open(base, "n1")
		if !assert.NoError(t, err) {
			break
		}
		require.NoError(t, d.Close())
	}
	stop.Store(true)
	probes.Wait()
}
