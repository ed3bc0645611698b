package datadir

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"platform/internal/boltfile"
	"platform/internal/durable"
	"platform/internal/errcode"
	"platform/internal/raftgroup/hardstate"
	"platform/internal/raftgroup/logstore"
	"platform/metadata"
	"platform/partition"
	"platform/partition/store"
)

// OpenHardState opens the hard-state file of the replicas of node id. A directory without one is
// adopted, possibly under a new incarnation.
func (d *Dir) OpenHardState(id Identity, log *slog.Logger) (hard *hardstate.File, _ Identity, err error) {
	if d.Holds(HardStateFile) == "" {
		if id, err = d.adopt(id); err != nil {
			return nil, id, err
		}
	}
	if id.HardState {
		// The file may be empty only at the first start.
		if _, err := hardstate.Read(d.In(HardStateFile)); errors.Is(err, logstore.ErrCorrupt) {
			return nil, id, unreadable(err)
		}
	}
	hard, err = hardstate.Open(d.In(HardStateFile), id.Incarnation, nil, log)
	switch {
	case errors.Is(err, hardstate.ErrForeign):
		return nil, id, errcode.New(errcode.RT0009, "IDENTITY and %s in %s do not belong together: %w; put back the files that belong together; %s", HardStateFile, d.path, err, RemedyRejoin)
	case errors.Is(err, logstore.ErrCorrupt):
		return nil, id, unreadable(err)
	case errors.Is(err, hardstate.ErrNewerFormat):
		return nil, id, errcode.New(errcode.RT0009, "%w; %s", err, RemedyRejoin)
	case err != nil:
		return nil, id, err
	}
	if !id.HardState {
		id.HardState = true
		if err := d.SaveIdentity(id); err != nil {
			return nil, id, errors.Join(err, hard.Close())
		}
	}
	return hard, id, d.remove(adoptingFile)
}

func unreadable(err error) error {
	return errcode.New(errcode.RT0009, "%w; %s; without a backup, remove %s: the next start reports how to continue with the remaining data; if all other nodes are lost, \"platform-server recover --without-hard-state\" continues with it",
		err, RemedyRejoin, HardStateFile)
}

// setAside renames a directory of data that cannot be read, which preserves its content, and
// creates an empty one.
func (d *Dir) setAside(id Identity, contents, remedy string, damage error, log *slog.Logger) error {
	aside := fmt.Sprintf("%s%s%s", contents, asideSuffix, time.Now().UTC().Format("20060102T150405.000"))
	if err := durable.Rename(d.In(contents), d.In(aside)); err != nil {
		return errors.Join(damage, err)
	}
	log.Error("directory cannot be read, set aside", "directory", d.In(contents), "renamed_to", aside, "err", damage)
	return d.Own(id, contents, remedy)
}

// OpenLogs opens the log database. If it cannot be read at all, it is set aside and the replicas
// are rebuilt from other nodes; without other nodes, the result is an error.
func (d *Dir) OpenLogs(id Identity, opts logstore.Options) (*logstore.DB, error) {
	if err := d.Own(id, LogDir, remedyLog); err != nil {
		return nil, err
	}
	logs, err := logstore.Open(d.In(LogDir), opts)
	if err == nil {
		return logs, nil
	}
	if !errors.Is(err, logstore.ErrCorrupt) {
		return nil, fmt.Errorf("open log database: %w", err)
	}
	if members, countErr := metadata.CountMembers(d.In(MetadataDir)); countErr != nil || members < 2 {
		return nil, errcode.New(errcode.RT0009, "the Raft logs in %s are damaged, so that acknowledged work may be missing: %w; %s; without a backup, move %s away; the next start reports for each partition how to continue without the lost entries", d.In(LogDir), err, RemedyRejoin, d.In(LogDir))
	}
	if err := d.setAside(id, LogDir, remedyLog, err, opts.Logger); err != nil {
		return nil, err
	}
	return logstore.Open(d.In(LogDir), opts)
}

// OpenTables opens the state database. If it cannot be read at all, it is set aside: the tables
// are rebuilt from the log or from other nodes, or the partitions are quarantined.
func (d *Dir) OpenTables(id Identity, opts store.Options) (*store.DB, error) {
	if err := d.Own(id, StateDir, remedyState); err != nil {
		return nil, err
	}
	tables, err := store.Open(d.In(StateDir), opts)
	if err == nil {
		return tables, nil
	}
	if !errors.Is(err, store.ErrDamaged) {
		return nil, stateError(err, d.In(StateDir))
	}
	if err := d.setAside(id, StateDir, remedyState, err, opts.Logger); err != nil {
		return nil, err
	}
	return store.Open(d.In(StateDir), opts)
}

// CheckMetadata rejects a directory that has lost its metadata: the replica of the metadata could
// vote twice in a term, and the partitions would run without the deployments of their invocations.
func (d *Dir) CheckMetadata(states *hardstate.File, db *logstore.DB) error {
	if d.Holds(MetadataLog) != "" {
		return nil
	}
	hard, err := states.Group(metadata.GroupID)
	if err != nil {
		return d.MetadataError(err)
	}
	logs, err := db.Storage(partition.GroupID(0))
	if err != nil {
		return fmt.Errorf("open log of partition 0: %w", err)
	}
	if last, err := logs.LastIndex(); err != nil || last == 0 && hard.Record().Term == 0 {
		return err // an earlier start was interrupted before this point
	}
	return errcode.New(errcode.RT0009, "data directory %s holds partitions but no metadata, so it is damaged; restore %s; %s", d.path, d.In(MetadataDir), RemedyRejoin)
}

// MetadataError adds the remedy to an error of the metadata.
func (d *Dir) MetadataError(err error) error {
	if errors.Is(err, hardstate.ErrUnrecorded) {
		return errcode.New(errcode.RT0009, "the metadata in %s cannot be used: %w; %s; if the cluster has no other nodes and only %s was lost, "+
			"\"platform-server repair accept-loss --group %d --data-dir %s\" accepts the remaining data", d.In(MetadataDir), err, RemedyRejoin, HardStateFile, metadata.GroupID, d.path)
	}
	unusable := func(damage error) bool { return errors.Is(err, damage) }
	if slices.ContainsFunc([]error{hardstate.ErrQuarantined, hardstate.ErrStateBehindSnapshot, logstore.ErrCorrupt, metadata.ErrCorrupt, boltfile.ErrDamaged}, unusable) {
		return errcode.New(errcode.RT0009, "the metadata in %s cannot be used: %w; restore its newest copy; %s", d.In(MetadataDir), err, RemedyRejoin)
	}
	return err
}

func stateError(err error, path string) error {
	switch {
	case errors.Is(err, store.ErrLocked):
		return errcode.New(errcode.RT0005, "state database %s: %w", path, err)
	case errors.Is(err, store.ErrFormat):
		return errcode.New(errcode.RT0009, "state database %s: %w", path, err)
	}
	return fmt.Errorf("open state database: %w", err)
}
