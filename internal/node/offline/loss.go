package offline

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/hashicorp/raft"

	"platform/internal/cluster/datadir"
	"platform/internal/raftgroup/hardstate"
	"platform/internal/raftgroup/logstore"
	"platform/metadata"
	"platform/partition"
)

// Loss describes the data that a group on this node has lost.
type Loss struct {
	hardstate.Loss
	Group, Partition uint32
	Reason           string // reason of the quarantine, "" if there is none
}

// AssessLoss determines what a group has lost, compared with its records, and whether this
// node may continue without that: no other node may have a replica with a vote. It fails with
// hardstate.ErrNoLoss if nothing is missing.
func (d *Directory) AssessLoss(group uint32) (*Loss, error) {
	if group == MetadataGroup {
		return d.assessMetadata()
	}
	if err := d.checkGroup(group); err != nil {
		return nil, err
	}
	id := group - partition.GroupID(0)
	identity, err := d.dir.ReadIdentity()
	if err != nil {
		return nil, err
	}
	if d.hardErr != nil {
		return nil, d.hardErr
	}
	if d.hard.Incarnation != identity.Incarnation {
		return nil, fmt.Errorf("IDENTITY and %s do not belong together", datadir.HardStateFile)
	}
	tables, err := d.tables.Partition(id)
	if err != nil {
		return nil, err
	}
	var at logstore.Position
	at.Index, at.Term = tables.Applied()
	s, err := d.storage(group)
	_, recorded := d.hard.Groups[group]
	damaged := recorded && errors.Is(err, logstore.ErrCorrupt)
	if err != nil && !damaged {
		return nil, err
	}
	rec := d.hard.Groups[group]
	if !damaged {
		rec = d.record(group, s, at, raft.ServerID(identity.ReplicaID()))
	}
	members, err := metadata.CountMembers(d.in("metadata"))
	if err != nil {
		return nil, fmt.Errorf("read the members of the cluster: %w", err)
	}
	alone := members == 1 || identity.Sole
	self := metadata.ReplicaID(raft.ServerID(identity.ReplicaID()), rec.Replica)
	// The leader corrects the address when it starts.
	only := []raft.Server{{ID: self, Address: raft.ServerAddress(identity.Node)}}
	var fallback []raft.Server
	if alone {
		fallback = only
	}
	l := &Loss{Group: group, Partition: id, Reason: d.group(group).Quarantine}
	if damaged {
		l.Loss, err = hardstate.AssessDamage(d.logs, group, rec, at, fallback)
	} else {
		l.Loss, err = hardstate.AssessLoss(s, rec, at, fallback)
	}
	// A recovery has made this node the only one, under a new ID, but could not write that
	// to a quarantined group.
	if alone && (err == nil || errors.Is(err, hardstate.ErrNoLoss)) && !l.Has(self) {
		l.Force(only)
		return l, nil
	}
	if errors.Is(err, hardstate.ErrNoLoss) && l.Reason != "" {
		return nil, fmt.Errorf("group %d: %w; its quarantine can be ended with \"platform-server repair release\": %s", group, err, l.Reason)
	}
	if err != nil {
		return nil, fmt.Errorf("group %d: %w", group, err)
	}
	if !l.Sole(self) {
		return nil, fmt.Errorf("group %d has other replicas with a vote, which may have the lost data: start the node, which then copies the partition from them", group)
	}
	return l, nil
}

// assessMetadata assesses the metadata group. Only the loss of its record in the hard-state
// file can be accepted, and only on the only node: log and state contain the same data.
func (d *Directory) assessMetadata() (*Loss, error) {
	s, err := d.storage(MetadataGroup)
	if err != nil {
		return nil, err
	}
	if d.hardErr != nil {
		return nil, d.hardErr
	}
	_, recorded := d.hard.Groups[MetadataGroup]
	if d.hard.Damaged[MetadataGroup] == nil && (recorded || !hardstate.WasRecorded(s)) {
		return nil, errors.New("a loss of the metadata cannot be accepted: restore the data directory from a backup")
	}
	members, err := metadata.CountMembers(d.in(datadir.MetadataDir))
	if err != nil {
		return nil, fmt.Errorf("read the members of the cluster: %w", err)
	}
	if members != 1 {
		return nil, errors.New("the cluster has other nodes: move the data directory away and start with an empty one, which gets copies")
	}
	info, err := hardstate.Inspect(s)
	if err != nil {
		return nil, err
	}
	l := &Loss{Group: MetadataGroup, Reason: info.Quarantine}
	l.Kept, l.First, l.Last = info.Last, info.Last+1, info.Last
	return l, nil
}

// AcceptLoss lets the node continue without the data that AssessLoss found missing.
func (d *Directory) AcceptLoss(l *Loss) error {
	identity, err := d.dir.ReadIdentity()
	if err != nil {
		return err
	}
	hard, err := hardstate.Open(d.in(datadir.HardStateFile), identity.Incarnation, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	if l.Group == MetadataGroup {
		return errors.Join(hard.AcceptUnknown(MetadataGroup, 0), hard.Close())
	}
	return errors.Join(l.Accept(d.logs, l.Group, hard), hard.Close())
}

// record returns the record of a group in the hard-state file. If that is missing or damaged,
// it returns the replica number of this node in the configuration.
func (d *Directory) record(group uint32, s logstore.Storage, tables logstore.Position, node raft.ServerID) hardstate.Record {
	rec, recorded := d.hard.Groups[group]
	if d.hard.Damaged[group] == nil && (recorded || !hardstate.WasRecorded(s)) {
		return rec
	}
	rec = hardstate.Record{Missing: true, Replica: hardstate.UnknownReplica}
	l, err := hardstate.AssessLoss(s, rec, tables, nil)
	if err != nil {
		return rec
	}
	for _, member := range l.Members {
		if on, number := metadata.ReplicaNode(member.ID); on == node {
			rec.Replica = number
		}
	}
	return rec
}
