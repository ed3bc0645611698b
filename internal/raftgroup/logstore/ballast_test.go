package logstore

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBallastIsFreedOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ballast")
	require.NoError(t, CreateBallast(path, 1<<20))
	require.NoError(t, CreateBallast(path, 1<<20))
	st, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, int64(1<<20), st.Size())
	freeBallast(path, quiet)
	freeBallast(path, quiet)
	require.NoFileExists(t, path)
}
