package sandbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"platform/test/harness"
)

// Disk is a small file system that only the test uses.
type Disk struct {
	Path string // mount point

	fillPath string
	mu       sync.Mutex // covers the fields below
	freezer  *exec.Cmd  // keeps the file system frozen; nil if it is not
	thaw     io.Closer
}

// NewDisk creates a file system of size bytes in a file below dir and mounts it.
func NewDisk(dir string, size int64) (*Disk, error) {
	if err := DisksAvailable(); err != nil {
		return nil, err
	}
	image, path := filepath.Join(dir, "image"), filepath.Join(dir, "disk")
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, err
	}
	file, err := os.Create(image)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(file.Truncate(size), file.Close()); err != nil {
		return nil, err
	}
	err = command(exec.Command("mkfs.ext4", "-q", "-F", "-m", "0", "-E", "lazy_itable_init=1", image))
	if err == nil {
		err = command(exec.Command("mount", "-o", "loop", image, path))
	}
	if err != nil {
		return nil, err
	}
	return &Disk{Path: path, fillPath: filepath.Join(path, "filling")}, nil
}

// Fill allocates the free space except keepFree bytes.
func (d *Disk) Fill(keepFree int64) error {
	free, err := d.Free()
	if err != nil {
		return err
	}
	file, err := os.OpenFile(d.fillPath, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if free <= keepFree {
		return nil
	}
	err = unix.Fallocate(int(file.Fd()), 0, info.Size(), free-keepFree)
	if err != nil && !errors.Is(err, unix.ENOSPC) { // another process took the space
		return fmt.Errorf("fill %s: %w", d.Path, err)
	}
	return nil
}

// Unfill releases the space that Fill allocated.
func (d *Disk) Unfill() error {
	if err := os.Remove(d.fillPath); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Free returns the available bytes.
func (d *Disk) Free() (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(d.Path, &s); err != nil {
		return 0, fmt.Errorf("stat file system %s: %w", d.Path, err)
	}
	return int64(s.Bavail) * s.Bsize, nil
}

// freezeScript freezes a file system and thaws it at the end of its input, which also
// happens when the test process dies: a process that waits for a frozen disk cannot be
// killed.
const freezeScript = `fsfreeze -f "$1" && echo frozen && read -r _; fsfreeze -u "$1"`

// Freeze blocks all writes until Thaw.
func (d *Disk) Freeze() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.freezer != nil {
		return nil
	}
	cmd := exec.Command("sh", "-c", freezeScript, "sh", d.Path)
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("freeze %s: %w", d.Path, err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		in.Close()
		return fmt.Errorf("freeze %s: %w", d.Path, errors.Join(fmt.Errorf("fsfreeze: %q", line), cmd.Wait()))
	}
	d.freezer, d.thaw = cmd, in
	return nil
}

// Thaw ends Freeze.
func (d *Disk) Thaw() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.freezer == nil {
		return nil
	}
	_ = d.thaw.Close() // read fails, and the script thaws
	err := d.freezer.Wait()
	d.freezer, d.thaw = nil, nil
	if err != nil {
		return fmt.Errorf("thaw %s: %w", d.Path, err)
	}
	return nil
}

// Slow alternately freezes and thaws the disk for the given times until ctx ends.
func (d *Disk) Slow(ctx context.Context, frozen, thawed time.Duration) error {
	for {
		if err := d.Freeze(); err != nil {
			return err
		}
		harness.Sleep(ctx, frozen)
		if err := d.Thaw(); err != nil {
			return err
		}
		if !harness.Sleep(ctx, thawed) {
			return nil //nolint:nilerr // the normal end
		}
	}
}

// SyncTime returns how long a small synced write takes.
func (d *Disk) SyncTime() (time.Duration, error) {
	begin := time.Now()
	file, err := os.Create(filepath.Join(d.Path, "probe"))
	if err != nil {
		return 0, err
	}
	_, err = file.WriteString("x")
	return time.Since(begin), errors.Join(err, file.Sync(), file.Close())
}

// Close unmounts the file system. It must not be in use.
func (d *Disk) Close() error {
	if err := errors.Join(d.Thaw(), d.Unfill()); err != nil {
		return err
	}
	return command(exec.Command("umount", d.Path))
}
