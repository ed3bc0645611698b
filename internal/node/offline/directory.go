package offline

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"platform/internal/cluster/datadir"
	"platform/internal/raftgroup/hardstate"
	"platform/internal/raftgroup/logstore"
	"platform/partition"
	"platform/partition/store"
)

// MetadataGroup is the Raft group of the metadata.
const MetadataGroup = 0

// Directory is the data directory of a stopped node.
type Directory struct {
	path     string
	readOnly bool
	dir      *datadir.Dir
	hard     *hardstate.Content // nil if it cannot be read
	hardErr  error
	logs     *logstore.DB
	tables   *store.DB
	metadata *logstore.BoltStorage // nil if the directory has none, or it cannot be opened
	metaErr  error                 // why it cannot
}

// Open locks and opens a directory. It fails while a server uses the directory, and, if it
// is to be changed, while a recovery is incomplete.
func Open(path string, readOnly bool) (*Directory, error) {
	d := &Directory{path: path, readOnly: readOnly}
	openStopped := datadir.OpenStopped
	if readOnly {
		openStopped = datadir.OpenStoppedReadOnly
	}
	var err error
	if d.dir, err = openStopped(path); err != nil {
		return nil, err
	}
	if !readOnly {
		if id, err := d.dir.ReadIdentity(); err == nil && id.NextIncarnation != "" {
			return nil, errors.Join(fmt.Errorf("the recovery of %s was not finished: run \"platform-server recover\" again before anything is repaired", path), d.Close())
		}
	}
	d.hard, d.hardErr = hardstate.Read(d.in(datadir.HardStateFile))
	if err := d.open(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func (d *Directory) open() (err error) {
	log := slog.New(slog.DiscardHandler)
	if _, err := os.Stat(d.in("log")); err != nil {
		return fmt.Errorf("open logs: %w", err)
	}
	if d.logs, err = logstore.Open(d.in("log"), logstore.Options{ReadOnly: d.readOnly, Logger: log}); err != nil {
		return err
	}
	if _, err := os.Stat(d.in("state")); err != nil {
		return fmt.Errorf("open tables: %w", err)
	}
	// Tables are never repaired here.
	if d.tables, err = store.Open(d.in("state"), store.Options{ReadOnly: true, Logger: log}); err != nil {
		return err
	}
	if _, err := os.Stat(d.in("metadata/log.db")); err == nil {
		d.metadata, d.metaErr = logstore.OpenBolt(d.in("metadata/log.db"), logstore.BoltOptions{ReadOnly: true, Logger: log})
		if d.metaErr != nil {
			d.metadata = nil
		}
	}
	return nil
}

func (d *Directory) in(name string) string { return filepath.Join(d.path, name) }

// Close closes the databases and unlocks the directory. It may be called more than once.
func (d *Directory) Close() error {
	var errs []error
	if d.metadata != nil {
		errs = append(errs, d.metadata.Close())
	}
	if d.tables != nil {
		errs = append(errs, d.tables.Close())
	}
	if d.logs != nil {
		errs = append(errs, d.logs.Close())
	}
	if d.dir != nil {
		errs = append(errs, d.dir.Close())
	}
	d.metadata, d.tables, d.logs, d.dir = nil, nil, nil, nil
	return errors.Join(errs...)
}

// file returns the text of a small file, or the error of reading it.
func (d *Directory) file(name string) string {
	text, err := os.ReadFile(d.in(name))
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(text))
}

// storage returns the storage of a group.
func (d *Directory) storage(group uint32) (logstore.Storage, error) {
	if group == MetadataGroup {
		if d.metadata == nil {
			return nil, cmp.Or(d.metaErr, errors.New("the directory has no metadata"))
		}
		return d.metadata, nil
	}
	return d.logs.Storage(group)
}

// groups returns the numbers of the groups in the directory.
func (d *Directory) groups() ([]uint32, error) {
	groups, err := d.logs.Groups()
	if errors.Is(err, logstore.ErrCorrupt) && d.hard != nil {
		err = nil // all groups have records
	}
	if err != nil {
		return nil, err
	}
	if d.metadata != nil || d.metaErr != nil {
		groups = append(groups, MetadataGroup)
	}
	if d.hard != nil { // a group may have lost its entire log
		groups = slices.AppendSeq(groups, maps.Keys(d.hard.Groups))
	}
	slices.Sort(groups)
	return slices.Compact(groups), nil
}

// Group describes the data of a Raft group.
type Group struct {
	Group     uint32  `json:"group"`
	Partition *uint32 `json:"partition,omitempty"` // nil for the metadata
	hardstate.GroupInfo
	HardState            *hardstate.Record // nil if there is no record
	Applied, AppliedTerm uint64            // of the tables on disk; unknown for the metadata
	Errors               []string          `json:",omitempty"`
}

// Groups describes all groups. Data that cannot be read is reported in the errors of its group.
func (d *Directory) Groups() ([]Group, error) {
	numbers, err := d.groups()
	if err != nil {
		return nil, err
	}
	var all []Group
	for _, n := range numbers {
		all = append(all, d.group(n))
	}
	return all, nil
}

func (d *Directory) group(n uint32) Group {
	g := Group{Group: n}
	fail := func(err error) {
		if err != nil {
			g.Errors = append(g.Errors, err.Error())
		}
	}
	if d.hard != nil {
		if rec, recorded := d.hard.Groups[n]; recorded {
			g.HardState = &rec
		}
		fail(d.hard.Damaged[n])
	}
	s, err := d.storage(n)
	fail(err)
	if err == nil {
		g.GroupInfo, err = hardstate.Inspect(s)
		fail(err)
	}
	if n == MetadataGroup {
		return g
	}
	id := n - partition.GroupID(0)
	g.Partition = &id
	tables, err := d.tables.Partition(id)
	fail(err)
	if err == nil {
		g.Applied, g.AppliedTerm = tables.Applied()
	}
	return g
}

// Summary describes the content of a directory.
type Summary struct {
	Path      string  `json:"path"`
	Format    string  `json:"format"`
	Identity  string  `json:"identity"`   // content of the file
	HardState string  `json:"hard_state"` // the incarnation in the file, or the error of reading it
	Groups    []Group `json:"groups"`
}

// Summary describes the directory.
func (d *Directory) Summary() (*Summary, error) {
	groups, err := d.Groups()
	if err != nil {
		return nil, err
	}
	var hard string
	switch {
	case d.hard != nil:
		hard = "incarnation " + d.hard.Incarnation
	default:
		hard = d.hardErr.Error()
	}
	return &Summary{Path: d.path, Format: d.file("FORMAT"), Identity: d.file("IDENTITY"), HardState: hard, Groups: groups}, nil
}
