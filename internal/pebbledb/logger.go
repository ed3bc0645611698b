package pebbledb

import (
	"context"
	"fmt"
	"log/slog"
	"os"
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
	l.Log.Error("pebble failed fatally, exiting", "err", fmt.Sprintf(format, args...))
	os.Exit(1)
}
