package datadir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/oklog/ulid/v2"

	"platform/internal/durable"
	"platform/internal/errcode"
)

// The directories that hold data, and the log of the metadata.
const (
	LogDir      = "log"
	StateDir    = "state"
	MetadataDir = "metadata"

	MetadataLog = MetadataDir + "/log.db"
)

const (
	// HardStateFile records the terms, votes and log ends of the replicas.
	HardStateFile = "HARDSTATE"
	// adoptingFile exists while a directory of a server without hard-state file is adopted.
	adoptingFile = "HARDSTATE.new"
	// asideSuffix is part of the name of a directory that was renamed because it is damaged.
	asideSuffix = ".damaged-"
	// ownerFile is in each directory of data and names its owner, so that the directory of
	// another node is detected.
	ownerFile = "OWNER"
)

// owner is the content of an ownerFile.
type owner struct {
	Node        string `json:"node_name"`
	Incarnation string `json:"incarnation"`
	Contents    string `json:"contents"` // the name of the directory
}

// Remedies for directories that cannot be used, as parts of error messages.
const (
	RemedyRejoin = "if the cluster has other nodes, move the data directory away and start with an empty one: the node joins again as a new incarnation and gets copies; " +
		"otherwise restore the whole data directory from a backup"
	remedyLog = "restore the directory of this node; if it is lost and the cluster has other nodes, remove this one: the replicas are rebuilt from the others; " +
		"without other nodes restore the whole data directory from a backup"
	remedyState = "restore the directory of this node, or remove this one: it is rebuilt from the log or from other nodes"
)

// adopt prepares a directory that has no hard-state file because it is fresh or from an older
// server. A directory that has lost the file is rejected.
func (d *Dir) adopt(id Identity) (Identity, error) {
	id.HardState = false // a new file is created
	aside, err := d.logsSetAside()
	if err != nil {
		return id, err
	}
	adopting := d.Holds(adoptingFile) != ""
	held := d.Holds(LogDir, StateDir, MetadataDir)
	switch {
	case held == "" && id.Founder:
		return id, errcode.New(errcode.RT0009, "data directory %s has lost %s, %s and %s: the deployments and all invocations; %s", d.path, LogDir, StateDir, MetadataDir, RemedyRejoin)
	case held == "":
		// Either an earlier start was interrupted here, or all data was lost. With a new
		// incarnation, this node is not mistaken for the one that voted.
		id.Incarnation = ulid.Make().String()
		return id, d.SaveIdentity(id)
	case aside != "":
		return id, errcode.New(errcode.RT0009, "data directory %s has lost %s, and its Raft logs were damaged before and renamed to %s; %s", d.path, HardStateFile, aside, RemedyRejoin)
	case d.Holds(MetadataLog) != "" && d.Holds(LogDir) == "":
		return id, errcode.New(errcode.RT0009, "data directory %s has lost %s, the Raft logs of all partitions; %s", d.path, LogDir, RemedyRejoin)
	}
	for _, contents := range []string{LogDir, StateDir, MetadataDir} {
		if !adopting && d.Holds(filepath.Join(contents, ownerFile)) != "" {
			return id, errcode.New(errcode.RT0009, "data directory %s has lost %s, which records the ends of the logs; "+
				"if nothing else was lost or exchanged, and the cluster has no other nodes, remove %s from %s, %s and %s: the next start reports how to continue with the remaining data; otherwise: %s",
				d.path, HardStateFile, ownerFile, LogDir, StateDir, MetadataDir, RemedyRejoin)
		}
	}
	if err := d.ReplaceFile(adoptingFile, nil); err != nil {
		return id, err
	}
	for _, contents := range []string{LogDir, StateDir, MetadataDir} {
		if d.Holds(contents) != "" {
			if err := d.WriteOwner(id, contents); err != nil {
				return id, err
			}
		}
	}
	return id, nil
}

// logsSetAside returns the name of a log directory that was renamed because it is damaged, ""
// if there is none.
func (d *Dir) logsSetAside() (string, error) {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return "", fmt.Errorf("read data directory: %w", err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), LogDir+asideSuffix) {
			return e.Name(), nil
		}
	}
	return "", nil
}

// Own creates a directory of data, or verifies that it belongs to this node. It must be called
// before anything is stored there.
func (d *Dir) Own(id Identity, contents, remedy string) error {
	if err := os.MkdirAll(d.In(contents), 0o700); err != nil {
		return fmt.Errorf("create directory: %w", err)
	}
	raw, err := os.ReadFile(d.In(filepath.Join(contents, ownerFile)))
	if errors.Is(err, fs.ErrNotExist) {
		entries, err := os.ReadDir(d.In(contents))
		if err != nil {
			return fmt.Errorf("read directory: %w", err)
		}
		for _, e := range entries {
			if e.Name() != ownerFile+".new" {
				return errcode.New(errcode.RT0009, "%s holds data but no %s file, so it is not what this node had there; %s", d.In(contents), ownerFile, remedy)
			}
		}
		return errors.Join(d.WriteOwner(id, contents), durable.SyncDir(d.path))
	}
	if err != nil {
		return fmt.Errorf("read owner: %w", err)
	}
	var found owner
	if err := json.Unmarshal(raw, &found); err != nil {
		return errcode.New(errcode.RT0009, "%s is damaged: %w; %s", d.In(filepath.Join(contents, ownerFile)), err, remedy)
	}
	if want := (owner{id.Node, id.Incarnation, contents}); found != want {
		return errcode.New(errcode.RT0009, "%s is the directory %q of node %s, incarnation %s, and not %q of node %s, incarnation %s; %s",
			d.In(contents), found.Contents, found.Node, found.Incarnation, contents, id.Node, id.Incarnation, remedy)
	}
	return nil
}

// WriteOwner records that a directory of data belongs to id.
func (d *Dir) WriteOwner(id Identity, contents string) error {
	raw, err := json.MarshalIndent(owner{id.Node, id.Incarnation, contents}, "", "  ")
	if err != nil {
		return err
	}
	return d.ReplaceFile(filepath.Join(contents, ownerFile), append(raw, '\n'))
}

// remove removes a file that may not exist.
func (d *Dir) remove(name string) error {
	err := os.Remove(d.In(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(err, durable.SyncDir(d.path))
}
