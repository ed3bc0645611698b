package hardstate

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"platform/internal/raftgroup/logstore"
)

// flushInterval is the maximum delay until the last index of a log is durable in the
// hard-state file. Votes are never delayed.
const flushInterval = time.Second

// File is the hard-state file of a node: a second, checksummed record of the term,
// vote and log end of each of its replicas, outside the databases that store them. It
// reveals a database that has lost some of them, or was replaced by an older copy.
//
// A record is never ahead of the database that it describes. A vote with its term is durable in
// both places before it takes effect. The last index is written after each append and
// synced within a second, so it survives the end of the process, and a power failure except
// for that second.
type File struct {
	fs   vfs.FS
	file vfs.File
	log  *slog.Logger

	syncing sync.Mutex  // held while the file is synced
	dirty   atomic.Bool // written but not synced
	stop    chan struct{}
	stopped chan struct{}

	mu     sync.Mutex // covers the fields below
	head   header
	pages  int64 // page pairs that the file has
	groups map[uint32]*State
}

// State is the record of one group.
type State struct {
	owner *File
	group uint32

	mu  sync.Mutex // covers rec; held while it is written
	rec stored
}

// Open opens the hard-state file of the node with this incarnation, or creates
// one. A file of another incarnation is rejected with ErrForeign.
func Open(path, incarnation string, fs vfs.FS, logger *slog.Logger) (h *File, err error) {
	if fs == nil {
		fs = vfs.Default
	}
	if logger == nil {
		logger = slog.Default()
	}
	h = &File{
		fs: fs, log: logger, stop: make(chan struct{}), stopped: make(chan struct{}), groups: map[uint32]*State{},
	}
	if h.file, err = fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified); err != nil {
		return nil, fmt.Errorf("open hard-state file: %w", err)
	}
	created, err := h.open(incarnation)
	if err == nil && created {
		err = syncDirOf(fs, path)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open hard-state file %s: %w", path, err), h.file.Close())
	}
	go h.run()
	return h, nil
}

// open reads the header, or writes one into an empty file.
func (h *File) open(incarnation string) (created bool, err error) {
	info, err := h.file.Stat()
	if err != nil {
		return false, err
	}
	if h.head, err = readHeader(h.file); err == nil {
		if h.head.incarnation != incarnation {
			return false, fmt.Errorf("%w: incarnation %s, the node has %s", ErrForeign, h.head.incarnation, incarnation)
		}
		h.pages = max(info.Size()/pageSize-1, 0) / 2
		if h.pages < h.head.pairs {
			return false, fmt.Errorf("%w: %d bytes", errTruncated, info.Size())
		}
		return false, h.markUnused()
	}
	// The header is written and synced first. If it is missing and nothing follows, an
	// earlier start was interrupted there.
	if info.Size() > pageSize {
		return false, err
	}
	h.head = header{incarnation: incarnation}
	page, err := h.head.encode()
	if err != nil {
		return false, err
	}
	if _, err := h.file.WriteAt(page, 0); err != nil {
		return false, err
	}
	return true, h.file.Sync()
}

// markUnused writes checksums to the slots of pages that an older server has added. Its zeros
// are taken for slots that were never used.
func (h *File) markUnused() error {
	for pair := h.head.marked; pair < h.pages; pair++ {
		unused := unusedPairs(pair, pair+1)
		at := pageSize * (1 + 2*pair)
		existing := make([]byte, len(unused))
		if _, err := h.file.ReadAt(existing, at); err != nil {
			return err
		}
		for i := 0; i < len(unused); i += slotSize {
			if !isBlank(existing[i : i+slotSize]) {
				continue
			}
			if _, err := h.file.WriteAt(unused[i:i+slotSize], at+int64(i)); err != nil {
				return err
			}
		}
	}
	return h.writeHead()
}

// writeHead durably records the number of pages in the header, so that neither a truncated
// file nor pages of zeros are taken for missing records.
func (h *File) writeHead() error {
	if h.head.pairs == h.pages && h.head.marked == h.pages {
		return nil
	}
	if err := h.file.Sync(); err != nil {
		return err
	}
	head := h.head
	head.pairs, head.marked = h.pages, h.pages
	page, err := head.encode()
	if err != nil {
		return err
	}
	if _, err := h.file.WriteAt(page, 0); err != nil {
		return err
	}
	h.head = head
	return h.file.Sync()
}

// Group returns the record of a group, an empty one if there is none. A record that is
// damaged in both copies gives logstore.ErrCorrupt and ErrUnrecorded.
func (h *File) Group(group uint32) (*State, error) {
	if group > maxGroup {
		return nil, fmt.Errorf("hard state of group %d: the largest number is %d", group, maxGroup)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if g := h.groups[group]; g != nil {
		return g, nil
	}
	if err := h.extend(int64(group)/recordsPerPage + 1); err != nil {
		return nil, fmt.Errorf("hard state of group %d: %w", group, err)
	}
	rec, err := readStored(h.file, group, true)
	if errors.Is(err, logstore.ErrCorrupt) {
		err = fmt.Errorf("%w: %w", ErrUnrecorded, err)
	}
	if err != nil {
		return nil, fmt.Errorf("hard state of group %d: %w", group, err)
	}
	g := &State{owner: h, group: group, rec: rec}
	h.groups[group] = g
	return g, nil
}

// extend allocates page pairs, so that writing records does not change the file's size
// later.
func (h *File) extend(pairs int64) error {
	if pairs <= h.pages {
		return nil
	}
	from := pageSize * (1 + 2*h.pages)
	if _, err := h.file.WriteAt(unusedPairs(h.pages, pairs), from); err != nil {
		return err
	}
	h.pages = pairs
	return h.writeHead()
}

// run syncs written records in the background.
func (h *File) run() {
	defer close(h.stopped)
	tick := time.NewTicker(flushInterval)
	defer tick.Stop()
	for {
		select {
		case <-h.stop:
			return
		case <-tick.C:
		}
		if err := h.Sync(); err != nil {
			h.log.Error("could not sync the hard-state file", "err", err)
		}
	}
}

// Sync makes all records durable.
func (h *File) Sync() error {
	h.syncing.Lock()
	defer h.syncing.Unlock()
	if !h.dirty.Swap(false) {
		return nil
	}
	if err := h.file.SyncData(); err != nil {
		h.dirty.Store(true)
		return fmt.Errorf("sync hard-state file: %w", err)
	}
	return nil
}

// Close makes all records durable and closes the file.
func (h *File) Close() error {
	close(h.stop)
	<-h.stopped
	return errors.Join(h.Sync(), h.file.Close())
}

// Content is the content of a hard-state file.
type Content struct {
	Incarnation string
	Groups      map[uint32]Record // groups with a record
	Damaged     map[uint32]error  // groups whose record cannot be read
}

// Read reads a hard-state file without changing it.
func Read(path string) (*Content, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read hard-state file: %w", err)
	}
	defer file.Close()
	head, err := readHeader(file)
	if err != nil {
		return nil, fmt.Errorf("read hard-state file %s: %w", path, err)
	}
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("read hard-state file: %w", err)
	}
	all := &Content{Incarnation: head.incarnation, Groups: map[uint32]Record{}, Damaged: map[uint32]error{}}
	pairs := max(info.Size()/pageSize-1, 0) / 2
	if pairs < head.pairs {
		return nil, fmt.Errorf("read hard-state file %s: %w", path, errTruncated)
	}
	all.read(file, pairs, head.marked)
	return all, nil
}

// read adds the records in pairs of pages, of which marked have checksums also in slots that were never used.
func (c *Content) read(file io.ReaderAt, pairs, marked int64) {
	for group := range uint32(min(pairs*recordsPerPage, maxGroup+1)) {
		rec, err := readStored(file, group, int64(group)/recordsPerPage < marked)
		switch {
		case err != nil:
			c.Damaged[group] = err
		case rec.seq > 0:
			c.Groups[group] = rec.export()
		}
	}
}

// content returns what is in the file now.
func (h *File) content() *Content {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := &Content{Incarnation: h.head.incarnation, Groups: map[uint32]Record{}, Damaged: map[uint32]error{}}
	c.read(h.file, h.pages, h.head.marked)
	return c
}

// Retire durably assigns the group the next replica number and deletes the record of the
// present replica, whose data is to be removed: its Raft server ID is never used again. A
// replica without its log and votes must not return under the same ID, since others may
// still rely on them: a member that was down when this one left would count a new vote of it
// in its own, outdated configuration. Reconcile rejects the group with ErrLeaving until
// the data has been removed and Accept was called; until then, Retire can be repeated.
func (g *State) Retire() error {
	rec := g.Record()
	next := rec.Replica
	if !rec.Removing {
		next++
	}
	for range 2 { // both copies, so that neither can restore the previous replica
		err := g.update(true, func(r *stored) { *r = stored{seq: r.seq, replica: next, removing: true} })
		if err != nil {
			return err
		}
	}
	return nil
}

// skippedNumbers is how many replica numbers are skipped if the last one is unknown: more than
// a node can have used without any other node learning of them.
const skippedNumbers = 1000

// RetireUnknown is Retire for a group whose record is missing or damaged, and with it the
// number of the present replica. known is the highest number that other nodes know of.
func (h *File) RetireUnknown(group, known uint32) error {
	return h.reset(group, stored{replica: known + skippedNumbers, removing: true})
}

// AcceptUnknown is Accept for a group whose record is missing or damaged. replica is the
// number of the present replica.
func (h *File) AcceptUnknown(group, replica uint32) error {
	return h.reset(group, stored{replica: replica})
}

// reset durably replaces both copies of a record, of which at most one can be read.
func (h *File) reset(group uint32, rec stored) error {
	g, err := h.Group(group)
	if errors.Is(err, logstore.ErrCorrupt) {
		g, err = &State{owner: h, group: group}, nil
	}
	for i := 0; i < 2 && err == nil; i++ {
		err = g.update(true, func(r *stored) {
			rec.seq = r.seq
			*r = rec
		})
	}
	return err
}

// UnknownReplica is the number of a replica if no number of it is known.
const UnknownReplica = skippedNumbers

// WasRecorded reports whether there should be a record of the replica that s belongs to.
func WasRecorded(s logstore.Storage) bool {
	recorded, err := readMark(s, keyRecorded)
	return err != nil || recorded != ""
}

// Missing reports whether the file has no record of the group.
func (g *State) Missing() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.rec.seq == 0
}

// Accept durably deletes the record, except for the replica number: the next start takes the
// content of the storage as complete. Whatever the storage has lost is then lost, and this
// replica may vote twice in a term, so it is only for a group that has no other replicas.
func (g *State) Accept() error {
	return g.update(true, func(r *stored) { *r = stored{seq: r.seq, replica: r.replica} })
}

// syncDirOf makes the name of a new file durable.
func syncDirOf(fs vfs.FS, path string) error {
	dir, err := fs.OpenDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// Renumber durably assigns the replica the next number, and with it another Raft server ID.
// Its term, vote and log end stay on record.
func (g *State) Renumber() error {
	replica := g.Record().Replica + 1
	for range 2 { // both copies, so that neither can restore the former ID
		if err := g.update(true, func(r *stored) { r.replica = replica }); err != nil {
			return err
		}
	}
	return nil
}

// Rename assigns a closed hard-state file to another incarnation.
func Rename(path, incarnation string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("open hard-state file: %w", err)
	}
	var head header
	if head, err = readHeader(file); err == nil {
		var page []byte
		head.incarnation = incarnation
		if page, err = head.encode(); err == nil {
			_, err = file.WriteAt(page, 0)
		}
	}
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("hard-state file %s: %w", path, err)
	}
	return nil
}
