package replicas

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"
	"golang.org/x/sync/errgroup"

	"platform/internal/cluster"
	"platform/internal/cluster/datadir"
	"platform/internal/cluster/membership"
	"platform/internal/cluster/routing"
	"platform/internal/diskspace"
	"platform/internal/raftgroup"
	"platform/internal/raftgroup/hardstate"
	"platform/internal/raftgroup/logstore"
	"platform/metadata"
	"platform/partition"
	"platform/partition/store"
	nodepb "platform/proto/node"
)

// Nodes sends requests to the nodes of the cluster.
type Nodes interface {
	// Statuses returns the statuses of all nodes that respond in time.
	Statuses(ctx context.Context, details bool) cluster.Statuses
	// Status returns the status of another node.
	Status(ctx context.Context, node metadata.Node) (*nodepb.StatusResponse, error)
}

// Config configures a Reconciler. All fields are required.
type Config struct {
	Self    datadir.Identity
	Node    raft.Server // this node in the configurations of its Raft groups
	DataDir string      // for messages

	Store   *metadata.Store
	Members *membership.Members
	Nodes   Nodes
	Router  *routing.Router
	Logs    *logstore.DB
	Tables  *store.DB
	Hard    *hardstate.File
	Disk    *diskspace.Monitor

	// Partition has the settings that all replicas share; the Reconciler adds the others.
	Partition       partition.Config
	ShutdownTimeout time.Duration
	Draining        func() bool // reports whether the node is about to stop
	OnFailed        func(error) // is called when a replica fails and is not quarantined
	Log             *slog.Logger
}

// Reconciler makes the partition replicas of this node match the partition table. It is safe
// for concurrent use.
type Reconciler struct {
	cfg Config

	locks      []sync.Mutex // by partition, held while its replica is opened, closed or changed
	closing    []bool       // by partition, whether its replica was not closed in time; covered by locks
	quarantine quarantine   // replicas that are not served
	damage     chan damageReport
	statuses   statusCache
}

// New returns a reconciler without open replicas.
func New(cfg Config) *Reconciler {
	count := cfg.Router.Count()
	return &Reconciler{cfg: cfg, locks: make([]sync.Mutex, count), closing: make([]bool, count), damage: make(chan damageReport, count)}
}

// Replica returns the open replica of a partition, nil if there is none.
func (rc *Reconciler) Replica(id uint32) *partition.Partition { return rc.cfg.Router.Replica(id) }

// Quarantine returns why the replica of a partition is not served, or soon will not be; "" if it is.
func (rc *Reconciler) Quarantine(id uint32) string { return rc.quarantine.reported(id) }

// Open starts the replicas that this node has or should have.
func (rc *Reconciler) Open(ctx context.Context) error {
	layout, _ := rc.cfg.Store.Layout()
	var g errgroup.Group
	for id := range rc.cfg.Router.Count() {
		g.Go(func() error {
			err := rc.openReplica(ctx, id, layout)
			if rc.quarantined(id, err) {
				return nil
			}
			if err != nil && len(layout.Nodes) > 1 && ctx.Err() == nil {
				rc.cfg.Log.Error("replica not opened; the other replicas continue without it", "partition_id", id, "err", err)
				return nil
			}
			return err
		})
	}
	return g.Wait()
}

// openReplica opens the replica of a partition if this node should have one or still has
// one.
func (rc *Reconciler) openReplica(ctx context.Context, id uint32, layout *metadata.Layout) error {
	place := layout.Partitions[id]
	logs, err := rc.logs(id)
	if err != nil {
		return err
	}
	if !hardstate.HoldsReplica(logs) && !rc.holds(place) {
		return nil
	}
	p, err := rc.openPartition(id, rc.createsGroup(place, layout))
	if errors.Is(err, raftgroup.ErrLeaving) { // a replica existed here, so a new one never starts the partition
		if err := rc.destroy(ctx, id); err != nil || !rc.holds(place) {
			return err
		}
		p, err = rc.openPartition(id, false)
	}
	if err != nil {
		return err
	}
	rc.cfg.Router.Set(id, p)
	return nil
}

// logs opens the log of a partition. A log whose ends cannot be read quarantines the replica.
func (rc *Reconciler) logs(id uint32) (*logstore.PebbleStorage, error) {
	logs, err := rc.cfg.Logs.Storage(partition.GroupID(id))
	if errors.Is(err, logstore.ErrCorrupt) {
		err = fmt.Errorf("%w: %w", raftgroup.ErrQuarantined, err)
	}
	if err != nil {
		return nil, fmt.Errorf("open log of partition %d: %w", id, err)
	}
	return logs, nil
}

// holds reports whether this node should have a replica.
func (rc *Reconciler) holds(place metadata.Partition) bool {
	for _, known := range rc.cfg.Store.Nodes() {
		if known.ServerID() == rc.cfg.Node.ID {
			return slices.Contains(place.Replicas, known.ID)
		}
	}
	return false
}

// createsGroup reports whether this node creates the Raft group of a partition, with the first replica.
func (rc *Reconciler) createsGroup(place metadata.Partition, layout *metadata.Layout) bool {
	record, err := rc.cfg.Hard.Group(partition.GroupID(place.ID))
	return err == nil && rc.holds(place) && mayCreateGroup(rc.cfg.Self, record.Record(), place, len(layout.Nodes) == 1)
}

// mayCreateGroup reports whether a node that should have a replica of a partition may create the
// first one: it created the cluster or is alone, and the partition was never moved. After a
// recovery of the cluster from this node, or a rebuild of the replica, missing data is lost
// or on another node, so the partition is not new.
func mayCreateGroup(id datadir.Identity, record hardstate.Record, place metadata.Partition, alone bool) bool {
	return id.RecoveredAt.IsZero() && place.Version <= 1 && (id.Founder || alone) && record.Replica == 0 && !record.Removing
}

func (rc *Reconciler) openPartition(id uint32, create bool) (*partition.Partition, error) {
	logs, err := rc.logs(id) // after a removal: a storage that was open before does not notice it
	if err != nil {
		return nil, err
	}
	tables, err := rc.cfg.Tables.Partition(id)
	if errors.Is(err, store.ErrDamaged) {
		err = fmt.Errorf("%w: %w", raftgroup.ErrQuarantined, err)
	}
	if err != nil {
		return nil, fmt.Errorf("open tables of partition %d: %w", id, err)
	}
	hard, err := rc.cfg.Hard.Group(partition.GroupID(id))
	if errors.Is(err, logstore.ErrCorrupt) {
		err = fmt.Errorf("%w: %w", raftgroup.ErrQuarantined, err)
	}
	if err != nil {
		return nil, err
	}
	cfg := rc.cfg.Partition
	cfg.ID, cfg.Count, cfg.Node = id, rc.cfg.Router.Count(), rc.cfg.Self.Node
	cfg.Tables, cfg.Flush = tables, rc.cfg.Tables.Flush
	cfg.Group.LocalID, cfg.Group.Storage, cfg.Group.HardState = rc.ReplicaID(id), logs, hard
	cfg.Deliver, cfg.Room = rc.cfg.Router.Deliver, rc.room
	cfg.OnFailed = func(err error) { rc.failed(id, err) }
	cfg.OnDamaged = func(err error) { rc.reportDamage(id, err) }
	if create {
		cfg.Group.Voters = []raft.Server{rc.cfg.Node}
	}
	return partition.Open(cfg)
}

// closeForSpace closes a replica until there is free disk space.
func (rc *Reconciler) closeForSpace(ctx context.Context, p *partition.Partition) error {
	if p == nil {
		return nil
	}
	return rc.closeReplica(ctx, p, p.Close)
}

// closeReplica closes a replica. If that fails, the replica remains registered, so that it is
// not opened twice, and reconcileOnce closes it later.
func (rc *Reconciler) closeReplica(ctx context.Context, p *partition.Partition, end func(context.Context) error) error {
	rc.cfg.Router.Set(p.ID(), nil)
	limit := rc.cfg.ShutdownTimeout
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	// A stopping node waits for a shorter time.
	defer context.AfterFunc(ctx, func() { time.AfterFunc(limit/4, cancel) })()
	err := end(closing)
	if err != nil {
		rc.cfg.Router.Set(p.ID(), p)
	}
	rc.closing[p.ID()] = err != nil
	return err
}

// Close transfers leaderships and stops the replicas, until ctx ends. After an error, some
// replicas may still use the databases.
func (rc *Reconciler) Close(ctx context.Context) error {
	var g errgroup.Group
	for p := range rc.cfg.Router.Replicas() {
		g.Go(func() error {
			if _, expected := rc.successor(p, new(transfers)); !expected {
				return p.Stop(ctx)
			}
			return p.Close(ctx)
		})
	}
	return g.Wait()
}

// Flush flushes the tables, so that the next start replays nothing. It only logs errors,
// since the log has all data of the tables.
func (rc *Reconciler) Flush(ctx context.Context) {
	if rc.cfg.Disk.Check() >= diskspace.Full { // a flush would be retried until ctx ends
		rc.cfg.Log.Warn("tables not flushed since the disk is full; the next start replays the log", "free", rc.cfg.Disk.Free())
		return
	}
	wait, err := rc.cfg.Tables.Flush()
	if err == nil {
		err = wait(ctx)
	}
	if err != nil {
		rc.cfg.Log.Warn("tables not flushed; the next start replays the log", "err", err)
	}
}
