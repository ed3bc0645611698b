package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"platform/internal/boltfile"
	"platform/internal/errcode"
	"platform/internal/raftgroup"
	"platform/metadata"
	"platform/partition"
	"platform/partition/store"
)

// The directories that hold data.
const (
	logDir      = "log"
	stateDir    = "state"
	metadataDir = "metadata"
)

const (
	hardStateFile = "HARDSTATE"
	// adoptingFile is there while a directory of a server without hard-state file is
	// taken over.
	adoptingFile = "HARDSTATE.new"
	// ownerFile is in each directory of data and says whose it is, so that one that was
	// exchanged is not taken for the node's own.
	ownerFile = "OWNER"
)

// owner is the content of an ownerFile.
type owner struct {
	Node        string `json:"node_name"`
	Incarnation string `json:"incarnation"`
	Contents    string `json:"contents"` // the name of the directory
}

// What to do about a directory that cannot be used.
const (
	remedyRejoin = "if the cluster has other nodes, move the data directory away and start with an empty one: the node joins again as a new incarnation and gets copies; " +
		"otherwise restore the whole data directory from a backup"
	remedyLog = "put the node's own directory back; if it is lost and the cluster has other nodes, remove this one: the replicas are rebuilt from the others; " +
		"without other nodes restore the whole data directory from a backup"
	remedyState = "put the node's own directory back, or remove this one: it is rebuilt from the log or from other nodes"
)

// openHardState opens the record of what the node's replicas have promised.
func (n *Node) openHardState() (err error) {
	if n.dir.holds(hardStateFile) == "" {
		if n.self, err = n.dir.adopt(n.self); err != nil {
			return err
		}
	}
	n.hard, err = raftgroup.OpenHardStates(n.dir.in(hardStateFile), n.self.Incarnation, nil, n.log)
	switch {
	case errors.Is(err, raftgroup.ErrForeign):
		return errcode.New(errcode.RT0009, "IDENTITY and %s in %s do not belong together: %w; put back the files that belong together; %s", hardStateFile, n.dir.path, err, remedyRejoin)
	case errors.Is(err, raftgroup.ErrCorrupt), errors.Is(err, raftgroup.ErrNewerFormat):
		return errcode.New(errcode.RT0009, "%w; %s", err, remedyRejoin)
	case err != nil:
		return err
	}
	return n.dir.remove(adoptingFile)
}

// adopt prepares a directory that has no hard-state file: a fresh one, or one of a
// server that kept none. One that has lost it is refused.
func (d *dataDir) adopt(id identity) (identity, error) {
	adopting := d.holds(adoptingFile) != ""
	held := d.holds(logDir, stateDir, metadataDir)
	switch {
	case held == "" && id.Founder:
		return id, errcode.New(errcode.RT0009, "data directory %s has lost %s, %s and %s: the deployments and all invocations; %s", d.path, logDir, stateDir, metadataDir, remedyRejoin)
	case held == "":
		// Either a start that got no further, or everything was lost: nobody may take
		// this node for the one that made promises.
		id.Incarnation = ulid.Make().String()
		return id, d.saveIdentity(id)
	case d.holds(metadataLog) != "" && d.holds(logDir) == "":
		return id, errcode.New(errcode.RT0009, "data directory %s has lost %s, the Raft logs of all partitions; %s", d.path, logDir, remedyRejoin)
	}
	for _, contents := range []string{logDir, stateDir, metadataDir} {
		if !adopting && d.holds(filepath.Join(contents, ownerFile)) != "" {
			return id, errcode.New(errcode.RT0009, "data directory %s has lost %s, which says how much the logs must hold; "+
				"if nothing else was lost or exchanged, remove %s from %s, %s and %s to go on with what is there; otherwise: %s",
				d.path, hardStateFile, ownerFile, logDir, stateDir, metadataDir, remedyRejoin)
		}
	}
	if err := d.writeFile(adoptingFile, nil); err != nil {
		return id, err
	}
	for _, contents := range []string{logDir, stateDir, metadataDir} {
		if d.holds(contents) != "" {
			if err := d.writeOwner(id, contents); err != nil {
				return id, err
			}
		}
	}
	return id, nil
}

// own makes sure that a directory of data is this node's, or makes it. It has to be
// called before anything is put there.
func (d *dataDir) own(id identity, contents, remedy string) error {
	if err := os.MkdirAll(d.in(contents), 0o700); err != nil {
		return fmt.Errorf("create directory: %w", err)
	}
	raw, err := os.ReadFile(d.in(filepath.Join(contents, ownerFile)))
	if errors.Is(err, fs.ErrNotExist) {
		entries, err := os.ReadDir(d.in(contents))
		if err != nil {
			return fmt.Errorf("read directory: %w", err)
		}
		for _, e := range entries {
			if e.Name() != ownerFile+".new" {
				return errcode.New(errcode.RT0009, "%s holds data but no %s file, so it is not what this node had there; %s", d.in(contents), ownerFile, remedy)
			}
		}
		return errors.Join(d.writeOwner(id, contents), syncDir(d.path))
	}
	if err != nil {
		return fmt.Errorf("read owner: %w", err)
	}
	var found owner
	if err := json.Unmarshal(raw, &found); err != nil {
		return errcode.New(errcode.RT0009, "%s is damaged: %w; %s", d.in(filepath.Join(contents, ownerFile)), err, remedy)
	}
	if want := (owner{id.Node, id.Incarnation, contents}); found != want {
		return errcode.New(errcode.RT0009, "%s is the directory %q of node %s, incarnation %s, and not %q of node %s, incarnation %s; %s",
			d.in(contents), found.Contents, found.Node, found.Incarnation, contents, id.Node, id.Incarnation, remedy)
	}
	return nil
}

func (d *dataDir) writeOwner(id identity, contents string) error {
	raw, err := json.MarshalIndent(owner{id.Node, id.Incarnation, contents}, "", "  ")
	if err != nil {
		return err
	}
	return d.writeFile(filepath.Join(contents, ownerFile), append(raw, '\n'))
}

// remove removes a file that may not exist.
func (d *dataDir) remove(name string) error {
	err := os.Remove(d.in(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(err, syncDir(d.path))
}

// setAside renames a directory of data that cannot be read, so that nothing of it is
// lost, and makes an empty one.
func (n *Node) setAside(contents, remedy string, damage error) error {
	aside := fmt.Sprintf("%s.damaged-%s", contents, time.Now().UTC().Format("20060102T150405.000"))
	if err := os.Rename(n.dir.in(contents), n.dir.in(aside)); err != nil {
		return errors.Join(damage, err)
	}
	n.log.Error("directory cannot be read, set aside", "directory", n.dir.in(contents), "renamed_to", aside, "err", damage)
	return n.dir.own(n.self, contents, remedy)
}

// openLogs opens the log database. One that is damaged as a whole is given up if there
// are other nodes, from which the replicas are rebuilt.
func (n *Node) openLogs(opts raftgroup.LogDBOptions) error {
	if err := n.dir.own(n.self, logDir, remedyLog); err != nil {
		return err
	}
	var err error
	if n.logs, err = raftgroup.OpenLogDB(n.dir.in(logDir), opts); err == nil {
		return nil
	}
	if !errors.Is(err, raftgroup.ErrCorrupt) {
		return fmt.Errorf("open log database: %w", err)
	}
	if members, countErr := metadata.CountMembers(n.dir.in(metadataDir)); countErr != nil || members < 2 {
		return errcode.New(errcode.RT0009, "the Raft logs in %s are damaged, so that acknowledged work may be missing: %w; %s; without a backup, move %s away: the next start says for each partition how to go on without what is lost", n.dir.in(logDir), err, remedyRejoin, n.dir.in(logDir))
	}
	if err := n.setAside(logDir, remedyLog, err); err != nil {
		return err
	}
	n.logs, err = raftgroup.OpenLogDB(n.dir.in(logDir), opts)
	return err
}

// openTables opens the state database. One that is damaged as a whole is given up: the
// log or other nodes have what it held, or its partitions are quarantined.
func (n *Node) openTables(opts store.Options) error {
	if err := n.dir.own(n.self, stateDir, remedyState); err != nil {
		return err
	}
	var err error
	if n.tables, err = store.Open(n.dir.in(stateDir), opts); err == nil {
		return nil
	}
	if !errors.Is(err, store.ErrDamaged) {
		return stateError(err, n.dir.in(stateDir))
	}
	if err := n.setAside(stateDir, remedyState, err); err != nil {
		return err
	}
	n.tables, err = store.Open(n.dir.in(stateDir), opts)
	return err
}

// checkMetadata refuses a directory that has lost its metadata: its replica of the
// metadata would vote again without knowing what it has promised, and the partitions
// would go on without the deployments that their invocations run on.
func (n *Node) checkMetadata() error {
	if n.dir.holds(metadataLog) != "" {
		return nil
	}
	hard, err := n.hard.Group(metadata.GroupID)
	if err != nil {
		return n.metadataError(err)
	}
	logs, err := n.logs.Storage(partition.GroupID(0))
	if err != nil {
		return fmt.Errorf("open log of partition 0: %w", err)
	}
	if last, err := logs.LastIndex(); err != nil || last == 0 && hard.Record().Term == 0 {
		return err // a start that got no further
	}
	return errcode.New(errcode.RT0009, "data directory %s holds partitions but no metadata, so it is damaged; restore %s; %s", n.dir.path, n.dir.in(metadataDir), remedyRejoin)
}

// metadataError says what to do about metadata that cannot be used.
func (n *Node) metadataError(err error) error {
	unusable := func(damage error) bool { return errors.Is(err, damage) }
	if slices.ContainsFunc([]error{raftgroup.ErrQuarantined, raftgroup.ErrStateBehindSnapshot, raftgroup.ErrCorrupt, metadata.ErrCorrupt, boltfile.ErrDamaged}, unusable) {
		return errcode.New(errcode.RT0009, "the metadata in %s cannot be used: %w; restore its newest copy; %s", n.dir.in(metadataDir), err, remedyRejoin)
	}
	return err
}
