package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

var (
	// ErrLocked is wrapped when the directory is locked by another process or by another
	// DB of this process.
	ErrLocked = errors.New("data directory is in use")
	// ErrFormat is wrapped when the directory was written by a newer server or is not a
	// database of this server.
	ErrFormat = errors.New("data directory has an unknown format")
)

// FormatVersion is the disk format version that this server writes. It is only incremented;
// a server opens directories of its own version and of older ones.
//
// Version 2 stores large values in chunks. A directory of version 1 has none and is upgraded
// when it is opened.
const FormatVersion = 2

const formatFile = "FORMAT"

// ownerFile may exist in an otherwise empty directory: the node writes it first.
const ownerFile = "OWNER"

// prepareDir creates the directory if needed, locks it and checks its format. With readOnly
// the directory must exist, and its format is not upgraded.
func prepareDir(disk vfs.FS, dir string, readOnly bool) (*pebble.Lock, error) {
	if readOnly {
		if _, err := disk.Stat(disk.PathJoin(dir, formatFile)); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrFormat, err)
		}
	} else if err := makeDir(disk, dir); err != nil {
		return nil, err
	}
	lock, err := pebble.LockDirectory(dir, disk)
	if _, isPathError := errors.AsType[*fs.PathError](err); isPathError {
		return nil, fmt.Errorf("lock data directory: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w: %w", dir, ErrLocked, err)
	}
	if err := checkFormat(disk, dir, readOnly); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

// makeDir durably creates dir and its missing parents, accessible to this user only.
func makeDir(disk vfs.FS, dir string) error {
	dir = filepath.Clean(dir)
	info, err := disk.Stat(dir)
	switch {
	case err == nil && !info.IsDir():
		return fmt.Errorf("%s is not a directory", dir)
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("open data directory: %w", err)
	}
	parent := filepath.Dir(dir)
	if err := makeDir(disk, parent); err != nil {
		return err
	}
	if err := disk.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("create data directory: %w", err)
	}
	return syncDir(disk, parent)
}

func syncDir(disk vfs.FS, dir string) error {
	f, err := disk.OpenDir(dir)
	if err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("sync directory %s: %w", dir, err)
	}
	return nil
}

// checkFormat checks the version file. It creates the file in an empty directory.
func checkFormat(disk vfs.FS, dir string, readOnly bool) error {
	text, err := readFile(disk, disk.PathJoin(dir, formatFile))
	if errors.Is(err, fs.ErrNotExist) {
		return writeFormat(disk, dir)
	}
	if err != nil {
		return fmt.Errorf("read format version: %w", err)
	}
	version, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return fmt.Errorf("%w: %s contains %q", ErrFormat, disk.PathJoin(dir, formatFile), text)
	}
	if version < 1 || version > FormatVersion {
		return fmt.Errorf("%w: %s has version %d, this server supports up to %d", ErrFormat, dir, version, FormatVersion)
	}
	if version < FormatVersion && !readOnly {
		return putFormat(disk, dir)
	}
	return nil
}

func readFile(disk vfs.FS, path string) ([]byte, error) {
	f, err := disk.Open(path)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(f)
	return text, errors.Join(err, f.Close())
}

// writeFormat initializes an empty directory with the current version.
func writeFormat(disk vfs.FS, dir string) error {
	names, err := disk.List(dir)
	if err != nil {
		return fmt.Errorf("read data directory: %w", err)
	}
	for _, name := range names {
		if name != "LOCK" && name != ownerFile && name != formatFile+".new" {
			return fmt.Errorf("%w: %s has files but no %s", ErrFormat, dir, formatFile)
		}
	}
	return putFormat(disk, dir)
}

func putFormat(disk vfs.FS, dir string) error {
	path := disk.PathJoin(dir, formatFile)
	f, err := disk.Create(path+".new", vfs.WriteCategoryUnspecified)
	if err != nil {
		return fmt.Errorf("write format version: %w", err)
	}
	_, err = fmt.Fprintln(f, FormatVersion)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write format version: %w", err)
	}
	if err := disk.Rename(path+".new", path); err != nil {
		return fmt.Errorf("write format version: %w", err)
	}
	return syncDir(disk, dir)
}
