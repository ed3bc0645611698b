package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/hashicorp/raft"
	"github.com/oklog/ulid/v2"

	"platform/internal/errcode"
	"platform/internal/raftgroup"
	"platform/metadata"
	"platform/partition"
	"platform/partition/store"
)

// Recovery is what RecoverDirectory would do, or has done.
type Recovery struct {
	Node        string            `json:"node"`
	Cluster     string            `json:"cluster"`
	Incarnation string            `json:"incarnation"` // of the directory
	Others      []metadata.Node   `json:"-"`           // members that are removed
	Kept        []uint32          `json:"kept"`        // partitions that go on from here
	Lost        []uint32          `json:"lost"`        // partitions without a replica here
	Unusable    map[uint32]string `json:"unusable"`    // partitions whose replica here is quarantined, and why
}

// PlanRecovery says what RecoverDirectory would do with the data directory of a stopped
// node. It changes nothing.
func PlanRecovery(path string) (r *Recovery, err error) {
	unlock, err := LockStopped(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	return (&dataDir{path: path}).planRecovery()
}

func (d *dataDir) planRecovery() (r *Recovery, err error) {
	id, err := d.readIdentity()
	if err != nil {
		return nil, err
	}
	if d.holds(hardStateFile) == "" || d.holds(metadataLog) == "" || d.holds(logDir) == "" {
		return nil, errcode.New(errcode.RT0009, "data directory %s has no %s, %s or %s; a cluster can be recovered only from a complete directory of this server version", d.path, hardStateFile, metadataDir, logDir)
	}
	layout, err := metadata.ReadLayout(d.in(metadataDir))
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
		return nil, errcode.New(errcode.RT0009, "the metadata in %s do not have node %s as a member, so nothing can be recovered from it", d.in(metadataDir), id.Node)
	}
	logs, err := raftgroup.OpenLogDB(d.in(logDir), raftgroup.LogDBOptions{ReadOnly: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, logs.Close()) }()
	for _, p := range layout.Partitions {
		if err := r.addPartition(logs, p.ID); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// addPartition says what becomes of a partition.
func (r *Recovery) addPartition(logs *raftgroup.LogDB, id uint32) error {
	s, err := logs.Storage(partition.GroupID(id))
	if err != nil {
		return err
	}
	info, err := raftgroup.Inspect(s)
	switch {
	case err != nil:
		r.Unusable[id] = err.Error()
	case info.Quarantine != "":
		r.Unusable[id] = info.Quarantine
	case info.Last == 0 && info.Snapshot == nil || info.Leaving:
		r.Lost = append(r.Lost, id)
	default:
		r.Kept = append(r.Kept, id)
	}
	return nil
}

// readIdentity reads the identity of a directory, finished or not.
func (d *dataDir) readIdentity() (id identity, err error) {
	raw, err := os.ReadFile(d.in("IDENTITY"))
	if err == nil {
		err = json.Unmarshal(raw, &id)
	}
	if err != nil {
		return id, errcode.New(errcode.RT0009, "node identity %s cannot be read: %w", d.in("IDENTITY"), err)
	}
	return id, nil
}

// RecoverDirectory makes a stopped node the only member of the metadata group and of
// all partitions that it has a usable replica of, and gives it a new incarnation, so
// that nobody takes it for its former self. Its next start removes all other nodes from
// the cluster. What only they had is lost. If it is cut off, it has to be done again
// before the node can start.
func RecoverDirectory(path string, now time.Time) (r *Recovery, err error) {
	unlock, err := LockStopped(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	d := &dataDir{path: path}
	if r, err = d.planRecovery(); err != nil {
		return nil, err
	}
	id, err := d.readIdentity()
	if err != nil {
		return nil, err
	}
	if id.NextIncarnation == "" {
		id.NextIncarnation = ulid.Make().String()
		if err := d.saveIdentity(id); err != nil {
			return nil, err
		}
	}
	next := id
	next.Incarnation, next.NextIncarnation, next.Founder, next.Sole, next.RecoveredAt = id.NextIncarnation, "", false, true, now.UTC()
	if err := raftgroup.RenameHardStates(d.in(hardStateFile), next.Incarnation); err != nil {
		return nil, err
	}
	for _, contents := range []string{logDir, stateDir, metadataDir} {
		if d.holds(contents) != "" {
			if err := d.writeOwner(next, contents); err != nil {
				return nil, err
			}
		}
	}
	if err := d.forceGroups(next, r); err != nil {
		return nil, fmt.Errorf("%w; repeat the recovery before the node is started", err)
	}
	r.Incarnation = next.Incarnation
	return r, d.saveIdentity(next)
}

// forceGroups makes the node the only member of its groups.
func (d *dataDir) forceGroups(id identity, r *Recovery) (err error) {
	log := slog.New(slog.DiscardHandler)
	layout, err := metadata.ReadLayout(d.in(metadataDir))
	if err != nil {
		return err
	}
	self := raft.Server{Suffrage: raft.Voter, ID: raft.ServerID(id.replicaID())}
	for _, n := range layout.Nodes {
		if n.Name == id.Node {
			self.Address = n.RaftAddress()
		}
	}
	hard, err := raftgroup.OpenHardStates(d.in(hardStateFile), id.Incarnation, nil, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hard.Close()) }()
	logs, err := raftgroup.OpenLogDB(d.in(logDir), raftgroup.LogDBOptions{Logger: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, logs.Close()) }()
	tables, err := store.Open(d.in(stateDir), store.Options{ReadOnly: true, Logger: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tables.Close()) }()
	for _, p := range r.Kept {
		if err := forceReplica(logs, tables, hard, p, self); err != nil {
			return err
		}
	}
	record, err := hard.Group(metadata.GroupID)
	if err != nil {
		return err
	}
	return metadata.ForceOnlyMember(d.in(metadataDir), record, self, log)
}

// forceReplica makes the replica of a partition the only one. self is the node.
func forceReplica(logs *raftgroup.LogDB, tables *store.DB, hard *raftgroup.HardStates, id uint32, self raft.Server) error {
	s, err := logs.Storage(partition.GroupID(id))
	if err != nil {
		return err
	}
	record, err := hard.Group(partition.GroupID(id))
	if err != nil {
		return err
	}
	rows, err := tables.Partition(id)
	if err != nil {
		return err
	}
	index, term := rows.Applied()
	self.ID = metadata.ReplicaID(self.ID, record.Record().Replica)
	if _, err := raftgroup.ForceConfiguration(s, record, raftgroup.Position{Index: index, Term: term}, []raft.Server{self}); err != nil {
		return fmt.Errorf("partition %d: %w", id, err)
	}
	return nil
}

// finishRecovery removes all other nodes from the cluster if this node was made the only
// one. It comes before any partition is opened, so that none of them gets a replica of
// a former member.
func (n *Node) finishRecovery(ctx context.Context) error {
	if !n.self.Sole {
		return nil
	}
	removed := map[string]bool{}
	for _, node := range n.metadata.Nodes() {
		if node.ServerID() == n.replica().ID {
			continue
		}
		if _, err := n.metadata.RemoveNode(ctx, node.ID, true); err != nil {
			return fmt.Errorf("remove node %s after the recovery: %w", node.Name, err)
		}
		removed[node.Name] = true
	}
	n.self.Sole = false
	if err := n.dir.saveIdentity(n.self); err != nil {
		return err
	}
	n.log.Info("cluster recovered from this node alone", "removed_nodes", slices.Sorted(maps.Keys(removed)))
	return nil
}
