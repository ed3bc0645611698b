package pebbledb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"syscall"
)

// Logger forwards the log of Pebble to Log; its info level becomes debug.
type Logger struct{ Log *slog.Logger }

// Infof logs at the debug level.
func (l Logger) Infof(format string, args ...any) {
	if l.Log.Enabled(context.Background(), slog.LevelDebug) {
		l.Log.Debug("pebble", "detail", fmt.Sprintf(format, args...))
	}
}

// Errorf logs an error.
func (l Logger) Errorf(format string, args ...any) {
	l.Log.Error("pebble", "err", fmt.Sprintf(format, args...))
}

// Fatalf exits the process: Pebble calls it when it no longer knows what is on disk. The next
// start continues from what was synced.
func (l Logger) Fatalf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if slices.ContainsFunc(args, diskFull) {
		l.Log.Error("the disk is full, exiting; free space on it", "err", text)
	} else {
		l.Log.Error("pebble failed fatally, exiting", "err", text)
	}
	os.Exit(1)
}

func diskFull(arg any) bool {
	err, ok := arg.(error)
	return ok && errors.Is(err, syscall.ENOSPC)
}
