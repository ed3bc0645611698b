package partition

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"platform/internal/feature"
	"platform/internal/ids"
	"platform/internal/raftgroup"
	"platform/partition/attempts"
	"platform/partition/machine"
	"platform/partition/store"
)

// Config says how to open a replica of a partition.
type Config struct {
	ID    uint32 // 0 ≤ ID < Count
	Count uint32 // partitions of the cluster
	Node  string // this node's name, for people

	Tables *store.Partition
	// Flush makes the tables durable.
	Flush   func() (wait func(context.Context) error, err error)
	Storage raftgroup.Storage
	// HardState is the record of the group's promises outside Storage; nil: none.
	HardState *raftgroup.HardState
	Invoker   Invoker
	// Deliver hands messages to the leader of another partition.
	Deliver func(ctx context.Context, to uint32, d *machine.Deliver) error
	// OutboxMemory is shared by the partitions of the node; nil: the partition has its own.
	OutboxMemory *OutboxMemory
	// Rules is where the rule book comes from; nil: there are no rules.
	Rules RuleSource

	Transport *raftgroup.Transport
	Profile   raftgroup.Profile
	LocalID   raft.ServerID
	// Voters are the first members of a new partition; they are used only when the
	// log is empty.
	Voters []raft.Server
	// Join opens a replica that waits to be added by the partition's leader instead.
	Join     bool
	Watchdog *raftgroup.Watchdog
	Metrics  *raftgroup.Metrics // nil: none
	// MaxBatchCommands and MaxBatchBytes bound one log entry; 0: the proposer's
	// defaults.
	MaxBatchCommands int
	MaxBatchBytes    int
	// FlowControl enables flow control. A partition that holds invocations and was led
	// without it declines, see ErrHoldsData.
	FlowControl bool
	// FlowEnabled reports whether all partitions have it already: none is asked again.
	// nil: they have not.
	FlowEnabled func() bool
	// Level is the cluster's feature level as far as this node knows it. It must not fall
	// while the replica is open, nor exceed feature.Supported. nil: the first level.
	Level func() feature.Level
	// Room says why this node should take nothing new, nil while it may; nil: it always
	// may. What is there already goes on.
	Room func() error
	// Clock is the time to lead by; nil: the machine's.
	Clock Clock
	// AskDigest asks another replica of the partition for its result of a round; nil: the
	// replicas are not compared.
	AskDigest func(ctx context.Context, to raft.Server, partition uint32, r DigestRound) (DigestAnswer, error)
	// DigestEntries is after how many log entries the leader compares replicas, 4096 if
	// 0, and DigestPause the least time in between, a second if 0.
	DigestEntries uint64
	DigestPause   time.Duration
	DigestMetrics *DigestMetrics // nil: none
	// OnFailed is told once when the replica cannot go on.
	OnFailed func(error)
	Log      *slog.Logger
}

// Partition is this node's replica of one partition.
type Partition struct {
	id           uint32
	node         string
	count        uint32
	tables       *store.Partition
	group        *raftgroup.Group
	invoker      Invoker
	deliver      func(ctx context.Context, to uint32, d *machine.Deliver) error
	rules        RuleSource
	outboxMemory *OutboxMemory
	level        func() feature.Level
	room         func() error
	clock        Clock
	log          *slog.Logger

	opened   chan struct{}              // closed once the fields above are set
	turn     sync.Mutex                 // held while pending and lead change
	pending  atomic.Pointer[leadership] // announced or about to be
	lead     atomic.Pointer[leadership] // announced and applied
	latest   atomic.Pointer[leadership] // begun last, may have ended
	ready    *gate
	changed  *notice                  // of who leads
	batch    raftgroup.ProposerConfig // limits of a log entry
	flow     bool                     // flow control is to be enabled
	enabled  func() bool              // flow control is enabled on all partitions
	onFailed func(error)
	commands atomic.Uint64 // applied since the start

	localID     raft.ServerID
	digests     *digests
	digestPause time.Duration
	askDigest   func(ctx context.Context, to raft.Server, partition uint32, r DigestRound) (DigestAnswer, error)
}

// GroupID is the number of a partition's Raft group; group 0 is the metadata's.
func GroupID(partition uint32) uint32 { return partition + 1 }

// Open starts the replica. It serves until Close.
func Open(cfg Config) (*Partition, error) {
	p := &Partition{
		id: cfg.ID, node: cfg.Node, count: cfg.Count, tables: cfg.Tables, invoker: cfg.Invoker, deliver: cfg.Deliver, rules: cfg.Rules, outboxMemory: cfg.OutboxMemory,
		level: cfg.Level, room: cfg.Room, clock: cfg.Clock,
		log:   cfg.Log.With("partition_id", cfg.ID),
		ready: newGate(), changed: newNotice(),
		flow: cfg.FlowControl, enabled: cfg.FlowEnabled, onFailed: cfg.OnFailed,
		opened: make(chan struct{}),
		batch:  raftgroup.ProposerConfig{MaxBatchCommands: cfg.MaxBatchCommands, MaxBatchBytes: cfg.MaxBatchBytes},
	}
	if p.level == nil {
		p.level = func() feature.Level { return feature.Level1 }
	}
	if p.clock == nil {
		p.clock = machineClock{}
	}
	if cfg.Join {
		cfg.Voters = nil
	}
	p.localID, p.askDigest, p.digestPause = cfg.LocalID, cfg.AskDigest, cmp.Or(cfg.DigestPause, defaultDigestPause())
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
		OnLeaderChange: func(raftgroup.Leader) { p.changed.give() },
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

// LocalID is this replica's Raft server id.
func (p *Partition) LocalID() raft.ServerID { return p.group.LocalID() }

// ID is the partition's number.
func (p *Partition) ID() uint32 { return p.id }

// Replica is the Raft server id of this replica.
func (p *Partition) Replica() raft.ServerID { return p.localID }

// Leading reports whether this replica leads and serves.
func (p *Partition) Leading() bool { return p.lead.Load() != nil }

// WaitLeading returns once this replica leads and serves.
func (p *Partition) WaitLeading(ctx context.Context) error { return p.ready.wait(ctx) }

// Leader is who leads the partition as far as this replica knows, which may be
// outdated; the zero Leader if it knows nobody.
func (p *Partition) Leader() raftgroup.Leader { return p.group.Leader() }

// Changed returns a channel that is closed at the next change of what Leading or
// Leader say. To miss none, ask for it before asking them.
func (p *Partition) Changed() <-chan struct{} { return p.changed.next() }

// Commands is how many log commands were applied since the start.
func (p *Partition) Commands() uint64 { return p.commands.Load() }

// Checkpoint makes the applied state durable and cuts the log behind it.
func (p *Partition) Checkpoint(ctx context.Context) error { return p.group.Snapshot(ctx) }

// Close leaves the group: leadership is handed over if there is anybody to take
// it, attempts are cut, and everything the replica started has ended.
func (p *Partition) Close(ctx context.Context) error {
	if err := p.group.Shutdown(ctx); err != nil {
		return fmt.Errorf("close partition %d: %w", p.id, err)
	}
	p.digests.close()
	return nil
}

// Invoker runs attempts for the partitions that this node leads.
type Invoker interface {
	// Open begins a leadership; the session's attempts read from p and report to it.
	Open(p attempts.Partition) attempts.Session
	// Status returns false if no session of this node runs or retries the invocation.
	Status(id ids.Invocation) (attempts.Status, bool)
}
