package partition

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"platform/internal/feature"
	"platform/internal/ids"
	"platform/internal/raftgroup"
	"platform/internal/raftgroup/hardstate"
	"platform/internal/raftgroup/logstore"
	"platform/internal/raftgroup/watchdog"
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
	Flush   func() (wait func(context.Context) error, err error)
	Storage logstore.Storage
	// HardState is the record of the group's term and vote outside Storage; nil: none.
	HardState *hardstate.State
	Invoker   Invoker
	// Deliver passes messages to the leader of another partition.
	Deliver func(ctx context.Context, to uint32, d *machine.Deliver) error
	// OutboxMemory is shared by the partitions of the node; nil: not shared.
	OutboxMemory *OutboxMemory
	// ListingMemory is shared by the partitions of the node; nil: not shared, 128 MiB.
	ListingMemory *ListingMemory
	// Streams reads event streams; nil: none are read.
	Streams Streams
	// Rules is the source of the rule book; nil: there are no rules.
	Rules RuleSource

	Transport *raftgroup.Transport
	Profile   raftgroup.Profile
	LocalID   raft.ServerID
	// Voters are the initial members of a new partition; used only if the log is empty.
	Voters []raft.Server
	// Join opens a replica that waits to be added by the partition's leader instead.
	Join     bool
	Watchdog *watchdog.Watchdog
	Metrics  *raftgroup.Metrics // nil: none
	// MaxBatchCommands and MaxBatchBytes bound one log entry; 0: the proposer's
	// defaults.
	MaxBatchCommands int
	MaxBatchBytes    int
	// Bulk bounds the log entries with large inputs that are in flight; nil: one of this
	// partition.
	Bulk *raftgroup.BulkGate
	// FlowControl enables flow control. A partition that holds invocations and was led
	// without it refuses, see ErrHoldsData.
	FlowControl bool
	// FlowEnabled reports whether flow control is enabled on all partitions, which skips
	// the check of ErrHoldsData. nil: it is not.
	FlowEnabled func() bool
	// Level is the cluster's feature level as known to this node. It must not decrease
	// while the replica is open, nor exceed feature.Supported. nil: the first level.
	Level func() feature.Level
	// Room returns why this node should accept no new invocations, or nil. Existing ones
	// continue. nil: it always accepts.
	Room func() error
	// Clock is the wall clock for leading; nil: the machine's.
	Clock Clock
	// FetchDigest requests another replica's result of a round; nil: the replicas are not
	// compared.
	FetchDigest func(ctx context.Context, to raft.Server, partition uint32, r DigestRound) (DigestResponse, error)
	// DigestEntries is the number of log entries after which the leader compares replicas,
	// 4096 if 0, and DigestPause the minimum time in between, a second if 0.
	DigestEntries uint64
	DigestPause   time.Duration
	DigestMetrics *DigestMetrics // nil: none
	// Stats counts invocations while the replica leads; nil: nothing is counted.
	Stats *stats.Counters
	// Tracer records invocations as spans while the replica leads; nil: none.
	Tracer *tracing.Tracer
	// OnFailed is called once if the replica cannot continue.
	OnFailed func(error)
	Log      *slog.Logger
}

// Partition is this node's replica of one partition.
type Partition struct {
	id            uint32
	node          string
	count         uint32
	tables        *store.Partition
	group         *raftgroup.Group
	invoker       Invoker
	deliver       func(ctx context.Context, to uint32, d *machine.Deliver) error
	rules         RuleSource
	streams       Streams
	outboxMemory  *OutboxMemory
	listingMemory *ListingMemory
	stats         *stats.Counters
	tracer        *tracing.Tracer
	level         func() feature.Level
	room          func() error
	clock         Clock
	log           *slog.Logger

	opened      chan struct{} // closed once the fields above are set
	role        role
	batch       raftgroup.ProposerConfig // limits of a log entry
	flowControl bool                     // flow control is to be enabled
	flowEnabled func() bool              // flow control is enabled on all partitions
	onFailed    func(error)
	commands    atomic.Uint64 // applied since the start
	logBytes    atomic.Uint64 // of the log entries with them

	localID     raft.ServerID
	digests     *digests
	digestPause time.Duration
	fetchDigest func(ctx context.Context, to raft.Server, partition uint32, r DigestRound) (DigestResponse, error)
}

// GroupID returns the number of a partition's Raft group; group 0 is the metadata.
func GroupID(partition uint32) uint32 { return partition + 1 }

// Open starts the replica. It serves until Close.
func Open(cfg Config) (*Partition, error) {
	p := &Partition{
		id: cfg.ID, node: cfg.Node, count: cfg.Count, localID: cfg.LocalID,
		tables: cfg.Tables, invoker: cfg.Invoker, streams: cfg.Streams, deliver: cfg.Deliver,
		outboxMemory: cfg.OutboxMemory, listingMemory: cfg.ListingMemory,
		rules: cfg.Rules, flowControl: cfg.FlowControl, flowEnabled: cfg.FlowEnabled,
		level: cfg.Level, room: cfg.Room, clock: cfg.Clock,
		fetchDigest: cfg.FetchDigest, digestPause: cmp.Or(cfg.DigestPause, defaultDigestPause()),
		stats: cfg.Stats, tracer: cfg.Tracer, onFailed: cfg.OnFailed,
		log:    cfg.Log.With("component", "platform/partition", "partition_id", cfg.ID),
		opened: make(chan struct{}), role: newRole(),
		batch: raftgroup.ProposerConfig{MaxBatchCommands: cfg.MaxBatchCommands, MaxBatchBytes: cfg.MaxBatchBytes, Bulk: cfg.Bulk},
	}
	if p.level == nil {
		p.level = func() feature.Level { return feature.Level1 }
	}
	if p.clock == nil {
		p.clock = machineClock{}
	}
	if p.listingMemory == nil {
		p.listingMemory = NewListingMemory(128 << 20)
	}
	if cfg.Join {
		cfg.Voters = nil
	}
	p.digests = newDigests(cfg.Tables, cmp.Or(cfg.DigestEntries, digestEntries), cfg.DigestMetrics, p.log, p.diverged)
	fsm := &fsm{
		p: p, tables: cfg.Tables, flush: cfg.Flush,
		machine: machine.New(machine.Shards{Self: cfg.ID, Count: cfg.Count}),
	}
	group, err := raftgroup.Open(raftgroup.Config{
		ID:             GroupID(cfg.ID),
		Name:           fmt.Sprintf("partition-%d", cfg.ID),
		LocalID:        cfg.LocalID,
		Storage:        cfg.Storage,
		HardState:      cfg.HardState,
		Transport:      cfg.Transport,
		StateMachine:   fsm,
		Profile:        cfg.Profile,
		Voters:         cfg.Voters,
		Lead:           p.runLeader,
		HandOver:       p.handOver,
		OnLeaderChange: func(raftgroup.Leader) { p.role.changed.broadcast() },
		OnFailed:       cfg.OnFailed,
		Watchdog:       cfg.Watchdog,
		Metrics:        cfg.Metrics,
		Logger:         cfg.Log,
	})
	if err != nil {
		p.digests.close()
		return nil, fmt.Errorf("open partition %d: %w", cfg.ID, err)
	}
	p.group = group
	close(p.opened)
	return p, nil
}

// LocalID returns this replica's Raft server ID.
func (p *Partition) LocalID() raft.ServerID { return p.localID }

// ID returns the partition's number.
func (p *Partition) ID() uint32 { return p.id }

// Leading reports whether this replica leads and serves.
func (p *Partition) Leading() bool { return p.role.leadership() != nil }

// WaitLeading returns once this replica leads and serves.
func (p *Partition) WaitLeading(ctx context.Context) error { return p.role.wait(ctx) }

// Leader returns the partition's leader as known to this replica, which may be outdated;
// the zero Leader if it is unknown.
func (p *Partition) Leader() raftgroup.Leader { return p.group.Leader() }

// Changed returns a channel that is closed at the next change of Leading or Leader. To miss
// no change, get the channel before calling them.
func (p *Partition) Changed() <-chan struct{} { return p.role.changed.next() }

// Backlog returns how many proposed commands have no outcome yet, and whether large commands
// occupy the partition: one is in flight, for which the next command has to wait, or another one
// is likely to follow soon. It returns 0 if this replica does not lead.
func (p *Partition) Backlog() (commands int, occupied bool) {
	l, err := p.leader()
	if err != nil {
		return 0, false
	}
	commands, bulk := l.proposer.Backlog()
	return commands, bulk || l.large.recent()
}

// Commands returns how many log commands were applied since the start.
func (p *Partition) Commands() uint64 { return p.commands.Load() }

// LogBytes returns the size of the log entries that were applied since the start.
func (p *Partition) LogBytes() uint64 { return p.logBytes.Load() }

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
