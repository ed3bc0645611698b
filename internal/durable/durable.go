// Package durable replaces and renames files so that the change survives a power failure.
package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// SyncDir makes the names of the files in a directory durable.
func SyncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// Rename renames a file or directory within its directory, durably.
func Rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(to))
}

// ReplaceFile creates or replaces a file that only its owner can read. After a crash it has either its
// previous content or the new one. Callers must not replace the same file concurrently.
func ReplaceFile(path string, content []byte) error {
	temporary := path + ".new"
	// What an interrupted replacement has left may have other permissions.
	if err := os.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return Rename(temporary, path)
}
