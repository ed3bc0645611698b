package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"platform/internal/durable"
	"platform/internal/errcode"
)

// formatVersion is the version of the layout of a node's directory. A server reads
// its own and older versions.
const formatVersion = "1"

// Dir is the data directory of a node, locked by this process:
//
//	FORMAT    version of the layout
//	LOCK      locked and marked while a server runs
//	IDENTITY  the node and its cluster
//	HARDSTATE durable promises of the Raft replicas: terms, votes, ends of logs
//	log/      Raft logs of all partitions (Pebble, synced)
//	state/    tables of all partitions (Pebble without a log of its own; the Raft logs are replayed)
//	admin.token the token of the administrator, if the node requires tokens
//	metadata/ Raft log and state of the metadata group (bbolt)
//
// Each of the directories has a file OWNER, which ties it to this node's incarnation.
type Dir struct {
	path   string
	lock   *os.File
	marked bool // lock may contain a mark, which Close removes
	copied bool
}

// Open locks the directory of a node below base for a server, and creates it if there is none.
func Open(base, nodeName string) (*Dir, error) {
	d := &Dir{path: filepath.Join(base, nodeName)}
	if err := os.MkdirAll(d.path, 0o700); err != nil {
		return nil, fmt.Errorf("create data directory: %w", err)
	}
	if err := d.acquire("stop that one, or give this one its own --base-dir or --node-name"); err != nil {
		return nil, err
	}
	if err := d.checkFormat(); err != nil {
		d.Close()
		return nil, err
	}
	d.copied = d.mark()
	return d, nil
}

// CopiedInUse reports whether the directory is a copy that was made while a server ran on it, or after
// that server was killed. Each copy is reported once.
func (d *Dir) CopiedInUse() bool { return d.copied }

// Idle returns the names of nodes that have a directory below base and do not run, if there is none
// for nodeName.
func Idle(base, nodeName string) (nodes []string) {
	if _, err := os.Stat(filepath.Join(base, nodeName, "FORMAT")); err == nil {
		return nil
	}
	entries, _ := os.ReadDir(base)
	for _, e := range entries {
		d := &Dir{path: filepath.Join(base, e.Name())}
		if _, err := os.Stat(d.In("FORMAT")); err == nil && d.checkFormat() == nil && d.idle() {
			nodes = append(nodes, e.Name())
		}
	}
	return nodes
}

// idle reports whether no process uses the directory. The shared lock that it takes for a moment does not
// make a server fail that starts meanwhile: see acquire.
func (d *Dir) idle() bool {
	lock, err := os.Open(d.In("LOCK"))
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	defer lock.Close()
	return unix.Flock(int(lock.Fd()), unix.LOCK_SH|unix.LOCK_NB) == nil
}

const (
	// maxProbes bounds how often acquire tries again while only probes of idle hold the lock, which takes
	// microseconds; probePause is the time between.
	maxProbes  = 100
	probePause = time.Millisecond
)

// exclusive locks the file, unless another process uses the directory.
func exclusive(lock int) error {
	for probes := 0; ; probes++ {
		err := unix.Flock(lock, unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) || probes == maxProbes {
			return err
		}
		if err := unix.Flock(lock, unix.LOCK_SH|unix.LOCK_NB); err != nil {
			return err // the holder is no probe
		}
		if err := unix.Flock(lock, unix.LOCK_UN); err != nil {
			return err
		}
		time.Sleep(probePause)
	}
}

// acquire locks the directory. remedy says what to do if a server uses it.
func (d *Dir) acquire(remedy string) error {
	lock, err := os.OpenFile(d.In("LOCK"), os.O_CREATE|os.O_RDWR, 0o600)
	return d.acquireFile(lock, err, remedy)
}

// acquireReadable locks a directory that may not be writable. A read-only copy without a lock file
// cannot be in use and is not locked.
func (d *Dir) acquireReadable(remedy string) error {
	lock, err := os.OpenFile(d.In("LOCK"), os.O_CREATE|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS) {
		if lock, err = os.Open(d.In("LOCK")); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	return d.acquireFile(lock, err, remedy)
}

func (d *Dir) acquireFile(lock *os.File, err error, remedy string) error {
	if errors.Is(err, unix.EROFS) {
		return fmt.Errorf("open lock of the data directory: %w; if the file system became read-only after an error, check it and mount it again, or copy the directory to another one", err)
	}
	if err != nil {
		return fmt.Errorf("open lock of the data directory: %w", err)
	}
	if err := exclusive(int(lock.Fd())); err != nil {
		lock.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return errcode.New(errcode.RT0005, "data directory %s is used by another server; %s", d.path, remedy)
		}
		return fmt.Errorf("lock data directory %s: %w", d.path, err)
	}
	d.lock = lock
	return nil
}

// OpenStopped locks the data directory of a stopped node for a tool. It fails while a server
// uses the directory, and if no node has created it.
func OpenStopped(path string) (*Dir, error) { return openStopped(path, (*Dir).acquire) }

// OpenStoppedReadOnly is OpenStopped for a tool that writes nothing, so read access is sufficient.
func OpenStoppedReadOnly(path string) (*Dir, error) { return openStopped(path, (*Dir).acquireReadable) }

func openStopped(path string, acquire func(d *Dir, remedy string) error) (*Dir, error) {
	d := &Dir{path: path}
	_, err := os.Stat(d.In("FORMAT"))
	if errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("open data directory: %w; run the command as the user of the server", err)
	}
	if err != nil {
		return nil, errcode.New(errcode.RT0009, "%s is not the data directory of a node (base-dir/node-name): %w", path, err)
	}
	if err := acquire(d, "stop it first"); err != nil {
		return nil, err
	}
	if err := d.checkFormat(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// checkFormat reads the version file, or writes it into a fresh directory.
func (d *Dir) checkFormat() error {
	raw, err := os.ReadFile(d.In("FORMAT"))
	if errors.Is(err, fs.ErrNotExist) {
		return d.initialize()
	}
	if err != nil {
		return fmt.Errorf("read data format: %w", err)
	}
	if found := strings.TrimSpace(string(raw)); found != formatVersion {
		return errcode.New(errcode.RT0009, "data directory %s has format %q and this server reads format %s; start the server version that wrote it", d.path, found, formatVersion)
	}
	return nil
}

func (d *Dir) initialize() error {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return fmt.Errorf("read data directory: %w", err)
	}
	for _, e := range entries {
		if e.Name() != "LOCK" && e.Name() != "FORMAT.new" {
			return errcode.New(errcode.RT0009, "data directory %s holds %q but no FORMAT file, so it is not a server's data or it is damaged; choose another --base-dir", d.path, e.Name())
		}
	}
	if err := d.ReplaceFile("FORMAT", []byte(formatVersion+"\n")); err != nil {
		return err
	}
	for _, dir := range []string{d.path, filepath.Dir(d.path), filepath.Dir(filepath.Dir(d.path))} {
		if err := durable.SyncDir(dir); err != nil {
			return fmt.Errorf("sync %s: %w", dir, err)
		}
	}
	return nil
}

// ReplaceFile atomically and durably replaces a file that only its owner can read.
func (d *Dir) ReplaceFile(name string, data []byte) error {
	if err := durable.ReplaceFile(d.In(name), data); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// Path returns the path of the directory.
func (d *Dir) Path() string { return d.path }

// In returns the path of a file or directory in it.
func (d *Dir) In(name string) string { return filepath.Join(d.path, name) }

// Close unlocks the directory.
func (d *Dir) Close() error {
	if d.lock == nil { // see acquireReadable
		return nil
	}
	if d.marked {
		_ = d.lock.Truncate(0)
	}
	return d.lock.Close()
}
