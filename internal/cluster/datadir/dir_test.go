package datadir

import (
	"os"
	"path/filepath"
	"testing"

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
