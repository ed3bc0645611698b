package logstore

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// walErrorEnv makes the test binary run failWriteAheadLog instead; its value is the operation that fails.
const walErrorEnv = "LOGSTORE_TEST_WAL_ERROR"

// The process ends with a message if Pebble cannot write a log that it replaces, or cannot create the next one.
func TestAFullDiskForTheWriteAheadLogEndsTheProcessWithAMessage(t *testing.T) {
	for _, op := range []string{"create", "write"} {
		t.Run(op, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), walErrorEnv+"="+op, "LOGSTORE_TEST_DIR="+t.TempDir())
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			var exit *exec.ExitError
			require.ErrorAs(t, cmd.Run(), &exit)
			require.NotContains(t, out.String(), "goroutine ")
			require.Contains(t, out.String(), "the disk is full, exiting; free space on it")
			require.Contains(t, out.String(), ".log")
			require.Equal(t, 1, exit.ExitCode())
		})
	}
}

// failWriteAheadLog replaces the write-ahead log of a database whose disk is full.
func failWriteAheadLog(op string) {
	var full atomic.Bool
	kinds := map[errorfs.OpKind]bool{errorfs.OpCreate: op == "create", errorfs.OpReuseForWrite: op == "create", errorfs.OpFileWrite: op == "write"}
	fs := errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(o errorfs.Op) error {
		if full.Load() && kinds[o.Kind] && strings.HasSuffix(o.Path, ".log") {
			return &os.PathError{Op: op, Path: o.Path, Err: syscall.ENOSPC}
		}
		return nil
	}))
	exit := func(err error) {
		fmt.Println("not ended by the log database:", err)
		os.Exit(3)
	}
	db, err := Open(os.Getenv("LOGSTORE_TEST_DIR"), Options{FS: fs, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		exit(err)
	}
	s, err := db.Storage(1)
	if err != nil {
		exit(err)
	}
	if err := s.StoreLogs([]*raft.Log{{Index: 1, Term: 1, Data: []byte("a")}}); err != nil {
		exit(err)
	}
	full.Store(true)
	if op == "write" { // without a sync, whose error would end the process
		if err := s.DeleteRange(1, 1); err != nil {
			exit(err)
		}
	}
	_, err = db.db.AsyncFlush()
	exit(err)
}
