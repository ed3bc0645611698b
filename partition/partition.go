package partition

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"platform/internal/feature"
	"platform/internal/ids"
	"platform/internal/raftgroup"
	"platform/internal/stats"
	"platform/internal/tracing"
	"platform/partition/attempts"
	"platform/partition/machine"
	"platform/partition/store"
)

// Config configures a replica of a partition.
type Config struct {
	ID    uint32 // 0 ≤ ID < Count
	Count uint32 // partitions of the cluster
	Node  string // this node's name, for logs and operators

	Tables *store.Partition
	// Flush makes the tables durable.
	Flush func() (wait func(context.Context) error, err error)

	// Group configures this replica as a member of its Raft group, for which Open adds ID, Name,
	// StateMachine, Logger and the functions that follow leadership.
	Group raftgroup.Config
	// Proposals bounds the log entries; the leader adds Seal.
	Proposals raftgroup.ProposerConfig

	Invoker Invoker
	// Deliver passes messages to the leader of another partition.
	Deliver func(ctx context.Context, to uint32, d *machine.Deliver) error
	// OutboxMemory is shared by the partitions of the node; nil: not shared.
	OutboxMemory *OutboxMemory
	// ListingMemory is shared by the partitions of the node; nil: not shared, 128 MiB.
	ListingMemory *ListingMemory
	// Streams reads event streams; nil: none are read.
	Streams Streams
	Flow    FlowConfig
	Digests DigestConfig

	// Level is the cluster's feature level as known to this node. It must not decrease
	// while the replica is open, nor exceed feature.Supported. nil: the first level.
	Level func() feature.Level
	// Room returns why this node should accept no new invocations, or nil. Existing ones
	// continue. nil: it always accepts.
	Room func() error
	// Clock is the wall clock for leading; nil: the machine's.
	Clock Clock
	// Stats counts invocations while the replica leads; nil: nothing is counted.
	Stats *stats.Counters
	// Tracer records invocations as spans while the replica leads; nil: none.
	Tracer *tracing.Tracer
	// OnFailed is called once if the replica cannot continue.
	OnFailed func(error)
	// OnDamaged is called, perhaps repeatedly, if rows cannot be read. The replica continues while it does not need them.
	// It must not block.
	OnDamaged func(error)
	Log       *slog.Logger
}

// withDefaults sets what may be left out.
func (c Config) withDefaults() Config {
	if c.Level == nil {
		c.Level = func() feature.Level { return feature.Level1 }
	}
	if c.Room == nil {
		c.Room = func() error { return nil }
	}
	if c.Clock == nil {
		c.Clock = machineClock{}
	}
	if c.OutboxMemory == nil {
		c.OutboxMemory = NewOutboxMemory()
	}
	if c.ListingMemory == nil {
		c.ListingMemory = NewListingMemory(128 << 20)
	}
	if c.OnFailed == nil {
		c.OnFailed = func(error) {}
	}
	if c.OnDamaged == nil {
		c.OnDamaged = func(error) {}
	}
	c.Digests = c.Digests.withDefaults()
	return c
}

// Partition is this node's replica of one partition.
type Partition struct {
	id     uint32
	tables *store.Partition
	// cfg is what leadership needs; Group and Proposals were used by Open.
	cfg   Config
	group *raftgroup.Group
	log   *slog.Logger

	opened   chan struct{} // closed once the fields above are set
	role     role
	digests  *digests
	observer observer
	commands atomic.Uint64 // applied since the start
	logBytes atomic.Uint64 // of the log entries with them
}

// GroupID returns the number of a partition's Raft group; group 0 is the metadata.
func GroupID(partition uint32) uint32 { return partition + 1 }

// Open starts the replica. It serves until Close.
func Open(cfg Config) (*Partition, error) {
	cfg = cfg.withDefaults()
	p := &Partition{
		id: cfg.ID, tables: cfg.Tables, cfg: cfg, observer: observer{cfg.Stats, cfg.Tracer},
		log:    cfg.Log.With("component", "platform/partition", "partition_id", cfg.ID),
		opened: make(chan struct{}),
	}
	p.digests = newDigests(cfg.Tables, cfg.Digests, p.log, p.diverged, cfg.OnDamaged)
	group := cfg.Group
	group.ID, group.Name, group.Logger = GroupID(cfg.ID), fmt.Sprintf("partition-%d", cfg.ID), cfg.Log
	group.StateMachine = &fsm{
		p: p, tables: cfg.Tables, flush: cfg.Flush,
		machine: machine.New(machine.Shards{Self: cfg.ID, Count: cfg.Count}),
	}
	group.Lead, group.HandOver, group.OnFailed = p.runLeader, p.handOver, cfg.OnFailed
	group.OnLeaderChange = func(raftgroup.Leader) { p.role.changed.Send() }
	var err error
	p.group, err = raftgroup.Open(group)
	if err != nil {
		p.digests.close()
		return nil, fmt.Errorf("open partition %d: %w", cfg.ID, err)
	}
	close(p.opened)
	return p, nil
}

// LocalID returns this replica's Raft server ID.
func (p *Partition) LocalID() raft.ServerID { return p.cfg.Group.LocalID }

// ID returns the partition's number.
func (p *Partition) ID() uint32 { return p.id }

// Leading reports whether this replica leads and accepts requests.
func (p *Partition) Leading() bool { return p.role.leadership() != nil }

// WaitLeading returns once Leading reports true.
func (p *Partition) WaitLeading(ctx context.Context) error {
	for {
		changed := p.Changed()
		if p.Leading() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Leader returns the partition's leader as known to this replica, which may be outdated;
// the zero Leader if it is unknown.
func (p *Partition) Leader() raftgroup.Leader { return p.group.Leader() }

// Changed returns a channel that is closed at the next change of Leading or Leader. To miss
// no change, get the channel before calling them.
func (p *Partition) Changed() <-chan struct{} { return p.role.changed.Next() }

// Backlog returns how many proposed commands have no outcome yet, and whether large commands
// occupy the partition: one is in flight, for which the next command has to wait, or another one
// is likely to follow soon. It returns 0 if this replica does not lead.
func (p *Partition) Backlog() (commands int, occupied bool) {
	l, err := p.leader()
	if err != nil {
		return 0, false
	}
	commands, bulk := l.proposer.Backlog()
	return commands, bulk || l.large.occupying()
}

// AppliedCommands returns how many log commands were applied since the start.
func (p *Partition) AppliedCommands() uint64 { return p.commands.Load() }

// AppliedBytes returns the size of the log entries that were applied since the start.
func (p *Partition) AppliedBytes() uint64 { return p.logBytes.Load() }

// Checkpoint makes the applied state durable and truncates the log behind it.
func (p *Partition) Checkpoint(ctx context.Context) error { return p.group.Snapshot(ctx) }

// Close leaves the group: it transfers leadership if possible, aborts attempts, and waits
// for everything that the replica started.
func (p *Partition) Close(ctx context.Context) error {
	if err := p.group.Shutdown(ctx); err != nil {
		return fmt.Errorf("close partition %d: %w", p.id, err)
	}
	p.digests.close()
	return nil
}

// Invoker runs attempts for the partitions that this node leads.
type Invoker interface {
	// Open starts a leadership; the session's attempts read from p and report to it.
	Open(p attempts.Partition) attempts.Session
	// Status returns false if no session of this node runs or retries the invocation.
	Status(id ids.Invocation) (attempts.Status, bool)
}
