package datadir

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/errcode"
	"platform/internal/raftgroup/hardstate"
)

// owned is a data directory with its identity and hard-state file.
type owned struct {
	dir  *Dir
	self Identity
	hard *hardstate.File
}

// opened opens the hard-state file of a data directory as a start does, and makes the
// directories.
func opened(t *testing.T, base string) (*owned, error) {
	t.Helper()
	o := &owned{}
	var err error
	o.dir, err = Open(base, "n1")
	require.NoError(t, err)
	t.Cleanup(func() { _ = o.dir.Close() })
	if o.self, err = o.dir.LoadIdentity("c", "n1"); err != nil {
		return o, err
	}
	if o.hard, o.self, err = o.dir.OpenHardState(o.self, slog.New(slog.DiscardHandler)); err != nil {
		return o, err
	}
	for _, contents := range []string{LogDir, StateDir, MetadataDir} {
		if err := o.dir.Own(o.self, contents, "restore it"); err != nil {
			return o, o.stopped(err)
		}
	}
	return o, nil
}

func (o *owned) stopped(err error) error {
	if closeErr := o.hard.Close(); closeErr != nil {
		return closeErr
	}
	if closeErr := o.dir.Close(); closeErr != nil {
		return closeErr
	}
	return err
}

func TestDirectoriesAreTiedToTheIncarnation(t *testing.T) {
	base := t.TempDir()
	n, err := opened(t, base)
	require.NoError(t, err)
	first := n.self
	require.NoError(t, n.stopped(nil))
	n, err = opened(t, base)
	require.NoError(t, err)
	require.Equal(t, first, n.self)
	require.NoError(t, n.stopped(nil))

	// Exchanged with each other.
	in := func(name string) string { return filepath.Join(base, "n1", name) }
	require.NoError(t, os.Rename(in(LogDir), in("x")))
	require.NoError(t, os.Rename(in(StateDir), in(LogDir)))
	require.NoError(t, os.Rename(in("x"), in(StateDir)))
	_, err = opened(t, base)
	requireCode(t, errcode.RT0009, err)
	require.ErrorContains(t, err, `is the directory "state"`)
	require.NoError(t, os.Rename(in(LogDir), in("x")))
	require.NoError(t, os.Rename(in(StateDir), in(LogDir)))
	require.NoError(t, os.Rename(in("x"), in(StateDir)))

	// Replaced by that of another node with the same name.
	other := t.TempDir()
	n, err = opened(t, other)
	require.NoError(t, err)
	require.NoError(t, n.stopped(nil))
	require.NoError(t, os.Rename(in(LogDir), in("x")))
	require.NoError(t, os.CopyFS(in(LogDir), os.DirFS(filepath.Join(other, "n1", LogDir))))
	_, err = opened(t, base)
	requireCode(t, errcode.RT0009, err)
	require.ErrorContains(t, err, "incarnation "+n.self.Incarnation+", and not")
	require.NoError(t, os.RemoveAll(in(LogDir)))
	require.NoError(t, os.Rename(in("x"), in(LogDir)))

	// Replaced by one of a server that wrote no owner.
	require.NoError(t, os.Remove(in("log/OWNER")))
	require.NoError(t, os.WriteFile(in("log/000001.log"), nil, 0o600))
	_, err = opened(t, base)
	requireCode(t, errcode.RT0009, err)
	require.ErrorContains(t, err, "no OWNER file")
}

// TestDirectoryOfAnOlderServerIsTakenOver has a directory without hard-state file, as
// the first release wrote it, and a start that was cut off while it took it over.
func TestDirectoryOfAnOlderServerIsTakenOver(t *testing.T) {
	for _, cutOff := range []bool{false, true} {
		base := t.TempDir()
		n, err := opened(t, base)
		require.NoError(t, err)
		first := n.self
		require.NoError(t, n.stopped(nil))
		in := func(name string) string { return filepath.Join(base, "n1", name) }
		for _, contents := range []string{LogDir, StateDir, MetadataDir} {
			require.NoError(t, os.WriteFile(in(contents+"/data"), nil, 0o600))
			if !cutOff || contents == MetadataDir {
				require.NoError(t, os.Remove(in(contents+"/OWNER")))
			}
		}
		require.NoError(t, os.Remove(in(HardStateFile)))
		if cutOff {
			require.NoError(t, os.WriteFile(in(adoptingFile), nil, 0o600))
		}
		n, err = opened(t, base)
		require.NoError(t, err)
		require.Equal(t, first, n.self)
		require.NoFileExists(t, in(adoptingFile))
		require.NoError(t, n.stopped(nil))
	}
}

// TestLostHardStateIsRefused loses the file that distinguishes a complete log from one that has
// lost its end.
func TestLostHardStateIsRefused(t *testing.T) {
	base := t.TempDir()
	n, err := opened(t, base)
	require.NoError(t, err)
	require.NoError(t, n.stopped(nil))
	require.NoError(t, os.Remove(filepath.Join(base, "n1", HardStateFile)))
	_, err = opened(t, base)
	requireCode(t, errcode.RT0009, err)
	require.ErrorContains(t, err, "has lost HARDSTATE")
}

// TestAWipedNodeHasAnotherIncarnation has an Identity only: a node that made
// promises under it must not make others under the same name.
func TestAWipedNodeHasAnotherIncarnation(t *testing.T) {
	base := t.TempDir()
	d, err := Open(base, "n1")
	require.NoError(t, err)
	first, err := d.LoadIdentity("c", "n1")
	require.NoError(t, err)
	require.NoError(t, d.Close())
	n, err := opened(t, base)
	require.NoError(t, err)
	require.NotEqual(t, first.Incarnation, n.self.Incarnation)
	require.NoError(t, n.stopped(nil))

	for _, name := range []string{HardStateFile, LogDir, StateDir, MetadataDir} {
		require.NoError(t, os.RemoveAll(filepath.Join(base, "n1", name)))
	}
	d, err = Open(base, "n1")
	require.NoError(t, err)
	founder := n.self
	founder.Founder = true
	require.NoError(t, d.SaveIdentity(founder))
	require.NoError(t, d.Close())
	_, err = opened(t, base)
	requireCode(t, errcode.RT0009, err)
	require.ErrorContains(t, err, "has lost log, state and metadata")
}

// TestTruncatedHardStateIsRefused truncates the file that says which replicas there were, of
// a node whose logs are lost as well: its replicas would vote again as if they were new.
func TestTruncatedHardStateIsRefused(t *testing.T) {
	for _, lost := range [][]string{nil, {LogDir}, {LogDir, StateDir, MetadataDir}} {
		for _, size := range []int64{0, 100, 4096, 4096 * 3, 4096*5 - 1} {
			base := t.TempDir()
			n, err := opened(t, base)
			require.NoError(t, err)
			for _, group := range []uint32{0, 1, 40} { // 40 is in the second pair of pages
				_, err = n.hard.Group(group)
				require.NoError(t, err)
			}
			require.NoError(t, n.stopped(nil))
			require.NoError(t, os.Truncate(filepath.Join(base, "n1", HardStateFile), size))
			for _, contents := range lost {
				require.NoError(t, os.RemoveAll(filepath.Join(base, "n1", contents)))
			}
			_, err = opened(t, base)
			requireCode(t, errcode.RT0009, err)
			require.ErrorContains(t, err, HardStateFile)
			require.ErrorContains(t, err, "truncated")
		}
	}
}

// TestAHardStateFileOfZerosIsRefused has only a header page, and that is lost, so that the
// file looks like that of an interrupted first start.
func TestAHardStateFileOfZerosIsRefused(t *testing.T) {
	base := t.TempDir()
	n, err := opened(t, base)
	require.NoError(t, err)
	require.NoError(t, n.stopped(nil))
	require.NoError(t, os.WriteFile(filepath.Join(base, "n1", HardStateFile), make([]byte, 4096), 0o600))
	for _, contents := range []string{LogDir, StateDir, MetadataDir} {
		require.NoError(t, os.RemoveAll(filepath.Join(base, "n1", contents)))
	}
	_, err = opened(t, base)
	requireCode(t, errcode.RT0009, err)
	require.ErrorContains(t, err, HardStateFile)
}

// TestAnInterruptedFirstStartIsContinued has a hard-state file that was created and not
// written.
func TestAnInterruptedFirstStartIsContinued(t *testing.T) {
	base := t.TempDir()
	d, err := Open(base, "n1")
	require.NoError(t, err)
	_, err = d.LoadIdentity("c", "n1")
	require.NoError(t, err)
	require.NoError(t, d.Close())
	require.NoError(t, os.WriteFile(filepath.Join(base, "n1", HardStateFile), nil, 0o600))
	n, err := opened(t, base)
	require.NoError(t, err)
	require.NoError(t, n.stopped(nil))
}

// TestADirectoryWhoseLogsWereSetAsideIsNotTakenOver has no hard-state file, and an empty log
// database in place of a damaged one.
func TestADirectoryWhoseLogsWereSetAsideIsNotTakenOver(t *testing.T) {
	base := t.TempDir()
	n, err := opened(t, base)
	require.NoError(t, err)
	require.NoError(t, n.stopped(nil))
	in := func(name string) string { return filepath.Join(base, "n1", name) }
	require.NoError(t, os.Remove(in(HardStateFile)))
	require.NoError(t, os.Mkdir(in("log.damaged-20260101T000000.000"), 0o700))
	for _, contents := range []string{LogDir, StateDir, MetadataDir} {
		require.NoError(t, os.WriteFile(in(contents+"/data"), nil, 0o600))
		require.NoError(t, os.Remove(in(contents+"/OWNER"))) // as the message says for a lost file
	}
	_, err = opened(t, base)
	requireCode(t, errcode.RT0009, err)
	require.ErrorContains(t, err, "log.damaged-")
}
