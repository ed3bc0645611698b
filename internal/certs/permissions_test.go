package certs

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPermissionsOfSecrets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(path, []byte("secret"), 0o600))
	for mode, want := range map[os.FileMode]struct{ refused, group bool }{
		0o600: {}, 0o400: {}, 0o640: {group: true}, 0o440: {group: true}, 0o604: {refused: true}, 0o644: {refused: true}, 0o602: {refused: true}, 0o601: {refused: true},
	} {
		require.NoError(t, os.Chmod(path, mode))
		var text strings.Builder
		log := slog.New(slog.NewTextHandler(&text, nil))
		err := CheckKeyFile(path, "a-key-file", false, log)
		if want.refused {
			require.ErrorContains(t, err, "a-key-file: every user of this machine has access to "+path, mode)
			require.NoError(t, CheckKeyFile(path, "a-key-file", true, log), mode)
			require.Contains(t, text.String(), "key file is not protected")
			continue
		}
		require.NoError(t, err, mode)
		require.Equal(t, want.group, strings.Contains(text.String(), "the group of a key file has access to it"), mode)
	}
	require.Error(t, CheckPermissions(t.TempDir()))
	require.NoError(t, CheckPermissions(os.DevNull), "every user can write to it, and it has no content")
	require.ErrorIs(t, CheckPermissions(path+".absent"), os.ErrNotExist)
}

// A file of another user, such as root, can be read by means of its group only.
func TestTheGroupOfAFileOfAnotherUserMayReadIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(path, []byte("secret"), 0o600))
	require.NoError(t, os.Chmod(path, 0o440))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.True(t, groupIsSuperfluous(info, os.Geteuid()))
	require.False(t, groupIsSuperfluous(info, os.Geteuid()+1))
}
