package durable

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReplaceFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(path, []byte("previous"), 0o644))
	// An interrupted replacement has left a longer file that everybody can read.
	require.NoError(t, os.WriteFile(path+".new", []byte("of an interrupted replacement"), 0o644))

	require.NoError(t, ReplaceFile(path, []byte("next")))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "next", string(text))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode())
	require.NoFileExists(t, path+".new")
}

func TestReplaceFileKeepsThePreviousOneIfItFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(path, []byte("previous"), 0o600))
	require.NoError(t, os.MkdirAll(filepath.Join(path+".new", "x"), 0o700))

	require.Error(t, ReplaceFile(path, []byte("next")))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "previous", string(text))
}
