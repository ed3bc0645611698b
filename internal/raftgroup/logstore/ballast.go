package logstore

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"platform/internal/durable"
)

// CreateBallast reserves size bytes in a file that is removed when the disk is full, so
// that term and vote can still be written while an operator frees space. It does nothing if
// the file already has this size.
func CreateBallast(path string, size int64) error {
	if st, err := os.Stat(path); err == nil && st.Size() >= size {
		return nil
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("create ballast: %w", err)
	}
	err = unix.Fallocate(int(f.Fd()), 0, 0, size)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("create ballast: %w", errors.Join(err, os.Remove(path)))
	}
	return durable.SyncDir(filepath.Dir(path))
}

// freeBallast frees the reserved space; a missing file is not an error.
func freeBallast(path string, logger *slog.Logger) {
	switch err := os.Remove(path); {
	case err == nil:
		logger.Error("disk is full; removed the ballast file", "path", path)
	case !errors.Is(err, fs.ErrNotExist):
		logger.Error("disk is full; could not remove the ballast file", "path", path, "err", err)
	}
}
