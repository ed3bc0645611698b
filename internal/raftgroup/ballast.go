package raftgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// CreateBallast reserves size bytes in a file that is removed when the disk is
// full, so that term and vote can still be written while an operator makes room.
// It does nothing when the file has its size already.
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
	return syncDir(filepath.Dir(path))
}

// freeBallast gives the reserved space back; a missing file is fine.
func freeBallast(path string, logger *slog.Logger) {
	switch err := os.Remove(path); {
	case err == nil:
		logger.Error("disk is full, ballast file removed", "path", path)
	case !errors.Is(err, fs.ErrNotExist):
		logger.Error("disk is full and the ballast file cannot be removed", "path", path, "err", err)
	}
}
