package store

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOpenMakesPrivateDirectories(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data", "tables")
	db := openAt(t, dir)
	require.NoError(t, db.Close())
	for _, d := range []string{dir, filepath.Dir(dir)} {
		info, err := os.Stat(d)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o700), info.Mode().Perm(), d)
	}
}

func TestOpenTwiceFails(t *testing.T) {
	dir := t.TempDir()
	db := openAt(t, dir)
	_, err := Open(dir, quiet())
	require.ErrorIs(t, err, ErrLocked)
	require.NoError(t, db.Close())
	require.NoError(t, openAt(t, dir).Close(), "the lock is gone with its owner")
}

func TestOpenRejectsOtherFormats(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"newer":             {formatFile: "3\n"},
		"not a number":      {formatFile: "x"},
		"zero":              {formatFile: "0"},
		"unrelated files":   {"notes.txt": "x"},
		"files, no version": {"MANIFEST-000001": "x"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range files {
				require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
			}
			_, err := Open(dir, quiet())
			require.ErrorIs(t, err, ErrFormat)
			_, err = Open(dir, quiet())
			require.ErrorIs(t, err, ErrFormat, "and is not locked or changed by trying")
		})
	}
}

func TestOpenRecoversFromACrashDuringTheFirstStart(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, formatFile+".new"), nil, 0o600))
	require.NoError(t, openAt(t, dir).Close())
	text, err := os.ReadFile(filepath.Join(dir, formatFile))
	require.NoError(t, err)
	require.Equal(t, "2\n", string(text))
}

func TestOpenOfAFileFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	_, err := Open(path, quiet())
	require.ErrorContains(t, err, "not a directory")
}
