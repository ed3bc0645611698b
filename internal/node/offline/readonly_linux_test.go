package offline

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// unprivileged calls f as a user that cannot write files of others, also if the test runs as root.
func unprivileged(t *testing.T, f func()) {
	if os.Geteuid() != 0 {
		f()
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	require.NoError(t, unix.Setfsuid(65534))
	defer func() { require.NoError(t, unix.Setfsuid(0)) }()
	f()
}

func TestInspectNeedsReadAccessOnly(t *testing.T) {
	for name, locked := range map[string]bool{"with the lock file": true, "a copy without it": false} {
		t.Run(name, func(t *testing.T) {
			path := stopped(t)
			d := openDir(t, path, true)
			entries := entriesOf(t, d, 0, 0)
			require.NoError(t, d.Close())
			if !locked {
				require.NoError(t, os.Remove(filepath.Join(path, "LOCK")))
			}
			permit := func(files, dirs os.FileMode) {
				require.NoError(t, filepath.WalkDir(path, func(path string, e os.DirEntry, err error) error {
					if err != nil {
						return err
					}
					if e.IsDir() {
						return os.Chmod(path, dirs)
					}
					return os.Chmod(path, files)
				}))
			}
			for above := filepath.Dir(path); above != os.TempDir(); above = filepath.Dir(above) {
				require.NoError(t, os.Chmod(above, 0o755))
			}
			permit(0o444, 0o555)
			defer permit(0o600, 0o700)
			before := contents(t, path)
			unprivileged(t, func() {
				d, err := Open(path, true)
				require.NoError(t, err)
				require.Equal(t, entries, entriesOf(t, d, 0, 0))
				summary, err := d.Summary()
				require.NoError(t, err)
				require.Len(t, summary.Groups, 1)
				require.NoError(t, d.Close())
				_, err = Open(path, false)
				require.ErrorIs(t, err, fs.ErrPermission)
			})
			require.Equal(t, before, contents(t, path))
		})
	}
}
