package pebbledb

import (
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestDatabasesKeepFewFilesOpenIfTheProcessMayOpenFew(t *testing.T) {
	var before unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &before))
	defer func() { require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &before)) }()
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 1024, Max: before.Max}))
	var o pebble.Options
	LimitOpenFiles(&o)
	require.Equal(t, 64, o.MaxOpenFiles)
}
