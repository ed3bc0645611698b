package pebbledb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// damageInterval is the minimum time between two reports of the same file: a damaged block may be read again and again.
const damageInterval = time.Minute

// Damage reports the damaged files of a database.
type Damage struct {
	fs      vfs.FS
	options sstable.ReaderOptions
	files   chan DamagedFile
	log     *slog.Logger

	mu   sync.Mutex           // covers last
	last map[string]time.Time // when a damaged file was reported last
}

// DamagedFile is a file with a damaged block.
type DamagedFile struct {
	Path   string
	Reason error
}

// Error names the file and the reason.
func (f DamagedFile) Error() string { return fmt.Sprintf("%s is damaged: %v", f.Path, f.Reason) }

// ReportDamage makes a Pebble database that is opened with o log and report damaged blocks of its files. Pebble's default
// is to end the process, with all replicas of the node. Instead, reading such a block returns an error that
// pebble.IsCorruptionError recognizes. o.FS and o.EventListener must be set.
func ReportDamage(o *pebble.Options, log *slog.Logger) *Damage {
	d := &Damage{fs: o.FS, options: sstable.ReaderOptions{Comparer: o.Comparer}, files: make(chan DamagedFile, 16), log: log, last: map[string]time.Time{}}
	o.EventListener.DataCorruption = d.found
	return d
}

// found is called by whatever reads a damaged block, so it must not block.
func (d *Damage) found(i pebble.DataCorruptionInfo) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	if last, reported := d.last[i.Path]; reported && now.Sub(last) < damageInterval {
		return
	}
	d.last[i.Path] = now
	d.log.Error("damage in a file of a database", "path", i.Path, "err", i.Details)
	select {
	case d.files <- DamagedFile{i.Path, i.Details}:
	default: // it is found again when it is read again
	}
}

// Files receives each damaged file, repeatedly if it is read repeatedly.
func (d *Damage) Files() <-chan DamagedFile { return d.files }

// any reports whether damage was found since the database was opened.
func (d *Damage) any() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.last) > 0
}

// open opens a table without the caches of the database.
func (d *Damage) open(path string) (*sstable.Reader, error) {
	file, err := d.fs.Open(path)
	if err != nil {
		return nil, err
	}
	readable, err := sstable.NewSimpleReadable(file)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	r, err := sstable.NewReader(context.Background(), readable, d.options)
	if err != nil {
		return nil, errors.Join(err, readable.Close())
	}
	return r, nil
}

// Explain returns an error of Pebble without its internals: for damage, the file and the reason.
func Explain(err error) error {
	if i := pebble.ExtractDataCorruptionInfo(err); i != nil {
		return fmt.Errorf("%s is damaged: %w", i.Path, i.Details)
	}
	return err
}
