package offline

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/hashicorp/raft"
	"github.com/oklog/ulid/v2"

	"platform/internal/cluster/datadir"
	"platform/internal/durable"
	"platform/internal/errcode"
	"platform/internal/raftgroup/hardstate"
	"platform/internal/raftgroup/logstore"
	"platform/metadata"
	"platform/partition"
	"platform/partition/store"
)

// Recovery describes the effects of RecoverDirectory.
type Recovery struct {
	Node        string            `json:"node"`
	Cluster     string            `json:"cluster"`
	Incarnation string            `json:"incarnation"` // of the directory
	Others      []metadata.Node   `json:"-"`           // members that are removed
	Kept        []uint32          `json:"kept"`        // partitions that continue from this node
	Lost        []uint32          `json:"lost"`        // partitions without a replica here
	Unusable    map[uint32]string `json:"unusable"`    // reasons of partitions whose replica here is or will be quarantined
	// Unrecorded are the groups without a readable record in the hard-state file, and
	// HardStateLost is the reason if none can be read. What these groups have lost is unknown.
	Unrecorded    []uint32 `json:"unrecorded,omitempty"`
	HardStateLost string   `json:"hard_state_lost,omitempty"`
}

// PlanRecovery returns the effects that RecoverDirectory would have on the data directory of a
// stopped node. It changes nothing. Without hardState, it tolerates unreadable records in the
// hard-state file.
func PlanRecovery(path string, hardState bool) (r *Recovery, err error) {
	d, err := datadir.OpenStopped(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	return planRecovery(d, hardState)
}

func planRecovery(d *datadir.Dir, hardState bool) (r *Recovery, err error) {
	id, err := d.ReadIdentity()
	if err != nil {
		return nil, err
	}
	if d.Holds(datadir.MetadataLog) == "" || d.Holds(datadir.LogDir) == "" {
		return nil, errcode.New(errcode.RT0009, "data directory %s has no %s or %s; a cluster can be recovered only from a complete directory", d.Path(), datadir.MetadataDir, datadir.LogDir)
	}
	layout, err := metadata.ReadLayout(d.In(datadir.MetadataDir))
	if err != nil {
		return nil, err
	}
	r = &Recovery{Node: id.Node, Cluster: id.Cluster, Incarnation: id.Incarnation, Unusable: map[uint32]string{}}
	for _, n := range layout.Nodes {
		if n.Name != id.Node {
			r.Others = append(r.Others, n)
		}
	}
	if len(layout.Nodes) == 0 || len(layout.Nodes) == len(r.Others) {
		return nil, errcode.New(errcode.RT0009, "the metadata in %s does not have node %s as a member, so nothing can be recovered from it", d.In(datadir.MetadataDir), id.Node)
	}
	logs, err := logstore.Open(d.In(datadir.LogDir), logstore.Options{ReadOnly: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, logs.Close()) }()
	hard, err := r.readHardStates(d, hardState)
	if err != nil {
		return nil, err
	}
	for _, p := range layout.Partitions {
		if err := r.addPartition(logs, hard, p.ID, hardState); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// readHardStates returns an empty file if the hard-state file cannot be read.
func (r *Recovery) readHardStates(d *datadir.Dir, required bool) (*hardstate.Content, error) {
	hard, err := hardstate.Read(d.In(datadir.HardStateFile))
	if errors.Is(err, hardstate.ErrNewerFormat) {
		return nil, err
	}
	if err == nil {
		_, recorded := hard.Groups[metadata.GroupID]
		if recorded && hard.Damaged[metadata.GroupID] == nil {
			return hard, nil
		}
		err = errors.New("the record of the metadata is missing or damaged")
	} else {
		hard = &hardstate.Content{}
		r.HardStateLost = err.Error()
	}
	r.Unrecorded = append(r.Unrecorded, metadata.GroupID)
	if required {
		return nil, errcode.New(errcode.RT0009, "%s in %s cannot be used: %w; it records the ends of the logs and the votes of the node, so restore its newest copy; "+
			"without one, \"platform-server recover --without-hard-state\" treats the logs as complete", datadir.HardStateFile, d.Path(), err)
	}
	return hard, nil
}

// addPartition adds the effect on a partition.
func (r *Recovery) addPartition(logs *logstore.DB, hard *hardstate.Content, id uint32, hardState bool) error {
	group := partition.GroupID(id)
	s, err := logs.Storage(group)
	if err != nil {
		if errors.Is(err, logstore.ErrCorrupt) {
			r.Unusable[id], err = err.Error(), nil
		}
		return err
	}
	info, err := hardstate.Inspect(s)
	_, recorded := hard.Groups[group]
	if recorded = recorded && hard.Damaged[group] == nil; hardState {
		err = errors.Join(err, hard.Damaged[group])
	}
	switch {
	case hard.Groups[group].Removing:
		r.Lost = append(r.Lost, id)
	case err != nil:
		r.Unusable[id] = err.Error()
	case info.Quarantine != "":
		r.Unusable[id] = info.Quarantine
	case info.Last == 0 && info.Snapshot == nil || info.Leaving:
		r.Lost = append(r.Lost, id)
	default:
		r.Kept = append(r.Kept, id)
		if !recorded {
			r.Unrecorded = append(r.Unrecorded, group)
		}
	}
	return nil
}

// RecoverDirectory makes a stopped node the only member of the metadata group and of
// all partitions of which it has a usable replica, and gives it a new incarnation, so that
// it is not mistaken for the previous one. Its next start removes all other nodes from the
// cluster; data that only they had is lost. If it is interrupted, it must be repeated before
// the node can start. For hardState see PlanRecovery.
func RecoverDirectory(path string, hardState bool, now time.Time) (r *Recovery, err error) {
	d, err := datadir.OpenStopped(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if r, err = planRecovery(d, hardState); err != nil {
		return nil, err
	}
	id, err := d.ReadIdentity()
	if err != nil {
		return nil, err
	}
	if id.NextIncarnation == "" {
		id.NextIncarnation = ulid.Make().String()
		if err := d.SaveIdentity(id); err != nil {
			return nil, err
		}
	}
	next := id
	next.Incarnation, next.NextIncarnation, next.Founder, next.Sole, next.RecoveredAt = id.NextIncarnation, "", false, true, now.UTC()
	if err := assignHardStates(d, next.Incarnation, r, now); err != nil {
		return nil, err
	}
	for _, contents := range []string{datadir.LogDir, datadir.StateDir, datadir.MetadataDir} {
		if d.Holds(contents) != "" {
			if err := d.WriteOwner(next, contents); err != nil {
				return nil, err
			}
		}
	}
	if err := forceGroups(d, next, r); err != nil {
		return nil, fmt.Errorf("%w; repeat the recovery before the node is started", err)
	}
	r.Incarnation = next.Incarnation
	return r, d.SaveIdentity(next)
}

// forcePartitions makes the node the only member of its partitions. Unusable replicas are
// quarantined, so that the other partitions can be recovered.
func forcePartitions(d *datadir.Dir, logs *logstore.DB, hard *hardstate.File, self raft.Server, r *Recovery) (err error) {
	tables, err := openTables(d)
	if err != nil {
		return err
	}
	if tables != nil {
		defer func() { err = errors.Join(err, tables.Close()) }()
	}
	var kept []uint32
	for _, p := range r.Kept {
		err := partition.ForceOnlyMember(logs, tables, hard, p, self)
		switch {
		case err == nil:
			kept = append(kept, p)
		case unusable(err):
			r.Unusable[p] = err.Error()
			if err := logs.Quarantine(partition.GroupID(p), err.Error()); err != nil {
				return err
			}
		default:
			return err
		}
	}
	r.Kept = kept
	return nil
}

// assignHardStates assigns the hard-state file to the next incarnation. An unreadable file is
// renamed and replaced by a new one.
func assignHardStates(d *datadir.Dir, incarnation string, r *Recovery, now time.Time) error {
	path := d.In(datadir.HardStateFile)
	if r.HardStateLost == "" {
		return hardstate.Rename(path, incarnation)
	}
	if d.Holds(datadir.HardStateFile) != "" {
		if err := durable.Rename(path, path+now.UTC().Format(".damaged-20060102T150405.000")); err != nil {
			return err
		}
	}
	hard, err := hardstate.Open(path, incarnation, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	return hard.Close()
}

// acceptUnrecorded treats the logs of groups without a record as complete. Replica numbers
// start over with the new incarnation.
func acceptUnrecorded(hard *hardstate.File, r *Recovery) error {
	for _, group := range r.Unrecorded {
		if err := hard.AcceptUnknown(group, 0); err != nil {
			return err
		}
	}
	return nil
}

// openTables returns nil if the tables are lost; the log may still contain everything.
func openTables(d *datadir.Dir) (*store.DB, error) {
	if d.Holds(datadir.StateDir) == "" {
		return nil, nil
	}
	tables, err := store.Open(d.In(datadir.StateDir), store.Options{ReadOnly: true, Logger: slog.New(slog.DiscardHandler)})
	if errors.Is(err, store.ErrDamaged) {
		return nil, nil
	}
	return tables, err
}

// unusable reports whether err means that the data of one replica is damaged or incomplete.
func unusable(err error) bool {
	is := func(damage error) bool { return errors.Is(err, damage) }
	return slices.ContainsFunc([]error{hardstate.ErrQuarantined, hardstate.ErrStateBehindSnapshot, logstore.ErrCorrupt, store.ErrDamaged}, is)
}

// forceGroups makes the node the only member of its groups.
func forceGroups(d *datadir.Dir, id datadir.Identity, r *Recovery) (err error) {
	log := slog.New(slog.DiscardHandler)
	layout, err := metadata.ReadLayout(d.In(datadir.MetadataDir))
	if err != nil {
		return err
	}
	self := raft.Server{Suffrage: raft.Voter, ID: raft.ServerID(id.ReplicaID())}
	for _, n := range layout.Nodes {
		if n.Name == id.Node {
			self.Address = n.RaftAddress()
		}
	}
	hard, err := hardstate.Open(d.In(datadir.HardStateFile), id.Incarnation, nil, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hard.Close()) }()
	logs, err := logstore.Open(d.In(datadir.LogDir), logstore.Options{Logger: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, logs.Close()) }()
	if err := acceptUnrecorded(hard, r); err != nil {
		return err
	}
	if err := forcePartitions(d, logs, hard, self, r); err != nil {
		return err
	}
	record, err := hard.Group(metadata.GroupID)
	if err != nil {
		return err
	}
	return metadata.ForceOnlyMember(d.In(datadir.MetadataDir), record, self, log)
}
