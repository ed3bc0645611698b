package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

var (
	// ErrLocked is wrapped when another process, or another DB of this one, has the
	// directory.
	ErrLocked = errors.New("data directory is in use")
	// ErrFormat is wrapped when the directory was written by a newer server or is
	// not a database of this kind.
	ErrFormat = errors.New("data directory has an unknown format")
)

// FormatVersion is what this server writes. It only ever grows; a server opens
// directories of its own version and of older ones that it knows.
//
// Version 2 has large rows in pieces. A directory of version 1 has none, and becomes
// one of version 2 when it is opened.
const FormatVersion = 2

const formatFile = "FORMAT"

// prepareDir makes the directory, if need be, takes its lock and checks its format.
func prepareDir(dir string) (*pebble.Lock, error) {
	if err := makeDir(dir); err != nil {
		return nil, err
	}
	lock, err := pebble.LockDirectory(dir, vfs.Default)
	if _, unusable := errors.AsType[*fs.PathError](err); unusable {
		return nil, fmt.Errorf("lock data directory: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w: %w", dir, ErrLocked, err)
	}
	if err := checkFormat(dir); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

// makeDir makes dir and its missing parents, for this user alone, and makes sure
// that they are still there after a power failure.
func makeDir(dir string) error {
	dir = filepath.Clean(dir)
	info, err := os.Stat(dir)
	switch {
	case err == nil && !info.IsDir():
		return fmt.Errorf("%s is not a directory", dir)
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("open data directory: %w", err)
	}
	parent := filepath.Dir(dir)
	if err := makeDir(parent); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make data directory: %w", err)
	}
	return syncDir(parent)
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync directory %s: %w", dir, err)
	}
	return nil
}

// checkFormat reads the version file; an empty directory gets one.
func checkFormat(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, formatFile))
	if errors.Is(err, fs.ErrNotExist) {
		return writeFormat(dir)
	}
	if err != nil {
		return fmt.Errorf("read format version: %w", err)
	}
	version, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return fmt.Errorf("%w: %s says %q", ErrFormat, filepath.Join(dir, formatFile), text)
	}
	if version < 1 || version > FormatVersion {
		return fmt.Errorf("%w: %s has version %d, this server reads up to %d", ErrFormat, dir, version, FormatVersion)
	}
	if version < FormatVersion {
		return putFormat(dir)
	}
	return nil
}

// writeFormat makes an empty directory one of this version.
func writeFormat(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("read data directory: %w", err)
	}
	for _, e := range entries {
		if e.Name() != "LOCK" && e.Name() != formatFile+".new" {
			return fmt.Errorf("%w: %s has files but no %s", ErrFormat, dir, formatFile)
		}
	}
	return putFormat(dir)
}

func putFormat(dir string) error {
	path := filepath.Join(dir, formatFile)
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write format version: %w", err)
	}
	_, err = fmt.Fprintln(f, FormatVersion)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write format version: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("write format version: %w", err)
	}
	return syncDir(dir)
}
