package node

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/errcode"
)

// opened opens the hard-state file of a data directory as a start does, and makes the
// directories.
func opened(t *testing.T, base string) (*Node, error) {
	t.Helper()
	n := &Node{log: slog.New(slog.DiscardHandler)}
	var err error
	n.dir, err = openDataDir(base, "n1")
	require.NoError(t, err)
	t.Cleanup(func() { _ = n.dir.Close() })
	if n.self, err = n.dir.loadIdentity("c", "n1"); err != nil {
		return n, err
	}
	if err := n.openHardState(); err != nil {
		return n, err
	}
	for _, contents := range []string{logDir, stateDir, metadataDir} {
		if err := n.dir.own(n.self, contents, "restore it"); err != nil {
			return n, n.stopped(err)
		}
	}
	return n, nil
}

func (n *Node) stopped(err error) error {
	if closeErr := n.hard.Close(); closeErr != nil {
		return closeErr
	}
	if closeErr := n.dir.Close(); closeErr != nil {
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
	require.NoError(t, os.Rename(in(logDir), in("x")))
	require.NoError(t, os.Rename(in(stateDir), in(logDir)))
	require.NoError(t, os.Rename(in("x"), in(stateDir)))
	_, err = opened(t, base)
	requireCode(t, errcode.RT0009, err)
	require.ErrorContains(t, err, `is the directory "state"`)
	require.NoError(t, os.Rename(in(logDir), in("x")))
	require.NoError(t, os.Rename(in(stateDir), in(logDir)))
	require.NoError(t, os.Rename(in("x"), in(stateDir)))

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
		for _, contents := range []string{logDir, stateDir, metadataDir} {
			require.NoError(t, os.WriteFile(in(contents+"/data"), nil, 0o600))
			if !cutOff || contents == metadataDir {
				require.NoError(t, os.Remove(in(contents+"/OWNER")))
			}
		}
		require.NoError(t, os.Remove(in(hardStateFile)))
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

// TestLostHardStateIsRefused loses the file that tells a whole log from one that has
// lost its end.
func TestLostHardStateIsRefused(t *testing.T) {
	base := t.TempDir()
	n, err := opened(t, base)
	require.NoError(t, err)
	require.NoError(t, n.stopped(nil))
	require.NoError(t, os.Remove(filepath.Join(base, "n1", hardStateFile)))
	_, err = opened(t, base)
	requireCode(t, errcode.RT0009, err)
	require.ErrorContains(t, err, "has lost HARDSTATE")
}

// TestWhoLostEverythingIsAnotherIncarnation has an identity only: a node that made
// promises under it must not make others under the same name.
func TestWhoLostEverythingIsAnotherIncarnation(t *testing.T) {
	base := t.TempDir()
	d, err := openDataDir(base, "n1")
	require.NoError(t, err)
	first, err := d.loadIdentity("c", "n1")
	require.NoError(t, err)
	require.NoError(t, d.Close())
	n, err := opened(t, base)
	require.NoError(t, err)
	require.NotEqual(t, first.Incarnation, n.self.Incarnation)
	require.NoError(t, n.stopped(nil))

	for _, name := range []string{hardStateFile, logDir, stateDir, metadataDir} {
		require.NoError(t, os.RemoveAll(filepath.Join(base, "n1", name)))
	}
	d, err = openDataDir(base, "n1")
	require.NoError(t, err)
	founder := n.self
	founder.Founder = true
	require.NoError(t, d.saveIdentity(founder))
	require.NoError(t, d.Close())
	_, err = opened(t, base)
	requireCode(t, errcode.RT0009, err)
	require.ErrorContains(t, err, "has lost log, state and metadata")
}
