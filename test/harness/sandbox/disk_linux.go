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
)

// Disk is a small file system of its own.
type Disk struct {
	Path string // where it is mounted

	filling string
	mu      sync.Mutex // covers what follows
	freezer *exec.Cmd  // holds the file system frozen, nil: it is not
	thaw    io.Closer
}

// NewDisk makes a file system of the given number of bytes in a file below dir and
// mounts it there.
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
	return &Disk{Path: path, filling: filepath.Join(path, "filling")}, nil
}

// Fill takes all space but leave bytes.
func (d *Disk) Fill(leave int64) error {
	free, err := d.Free()
	if err != nil {
		return err
	}
	file, err := os.OpenFile(d.filling, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if free <= leave {
		return nil
	}
	err = unix.Fallocate(int(file.Fd()), 0, info.Size(), free-leave)
	if err != nil && !errors.Is(err, unix.ENOSPC) { // others were faster: as full as it gets
		return fmt.Errorf("fill %s: %w", d.Path, err)
	}
	return nil
}

// Empty ends Fill.
func (d *Disk) Empty() error {
	if err := os.Remove(d.filling); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Free returns the bytes that are left.
func (d *Disk) Free() (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(d.Path, &s); err != nil {
		return 0, fmt.Errorf("look at %s: %w", d.Path, err)
	}
	return int64(s.Bavail) * s.Bsize, nil
}

// freezer freezes a file system and thaws it when its input ends: also when the
// test process dies, since nothing could end a process that waits for a frozen disk.
const freezer = `fsfreeze -f "$1" && echo frozen && read -r _; fsfreeze -u "$1"`

// Freeze makes everything that writes wait, until Thaw.
func (d *Disk) Freeze() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.freezer != nil {
		return nil
	}
	cmd := exec.Command("sh", "-c", freezer, "sh", d.Path)
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
		return fmt.Errorf("freeze %s: %w", d.Path, errors.Join(fmt.Errorf("fsfreeze said %q", line), cmd.Wait()))
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
	_ = d.thaw.Close() // read fails, and the shell goes on to thaw
	err := d.freezer.Wait()
	d.freezer, d.thaw = nil, nil
	if err != nil {
		return fmt.Errorf("thaw %s: %w", d.Path, err)
	}
	return nil
}

// Slow makes writing wait for hung out of every hung plus free, until ctx ends.
func (d *Disk) Slow(ctx context.Context, hung, free time.Duration) error {
	for {
		if err := d.Freeze(); err != nil {
			return err
		}
		wait(ctx, hung)
		if err := d.Thaw(); err != nil {
			return err
		}
		if wait(ctx, free); ctx.Err() != nil {
			return nil //nolint:nilerr // the end of the fault
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

// Close unmounts the file system. Nobody may use it any more.
func (d *Disk) Close() error {
	if err := errors.Join(d.Thaw(), d.Empty()); err != nil {
		return err
	}
	return command(exec.Command("umount", d.Path))
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
