package kafka

import (
	"context"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"platform/internal/feature"
	"platform/internal/ids"
	"platform/internal/subscription"
	"platform/internal/tracing"
	"platform/metadata"
	"platform/partition"
	"platform/partition/machine"
	"platform/partition/store"
)

// Source is where subscriptions and clusters are defined.
type Source interface {
	// Subscriptions returns the subscriptions, and a channel that is closed when they or the
	// clusters have changed since. The slice is shared.
	Subscriptions() ([]subscription.Subscription, <-chan struct{})
	// ConfirmedSubscriptions is Subscriptions, confirmed by the leader of the metadata.
	ConfirmedSubscriptions(ctx context.Context) ([]subscription.Subscription, error)
	// KafkaCluster returns a cluster; false if it does not exist.
	KafkaCluster(name string) (subscription.Cluster, bool)
	// ResolveSubscription stores where an incarnation starts, unless that is stored already.
	ResolveSubscription(ctx context.Context, id string, incarnation uint64, offsets []subscription.TopicStart) (subscription.Subscription, error)
	Schemas() *metadata.Schemas
}

// Partitions passes records to the leaders of partitions.
type Partitions interface {
	Count() uint32
	Ingest(ctx context.Context, partition uint32, c *machine.Ingest) (machine.Outcome, error)
	// AwaitEnd returns when an invocation has ended, or is no longer known.
	AwaitEnd(ctx context.Context, id ids.Invocation) error
}

// Config configures an Engine.
type Config struct {
	Source     Source
	Partitions Partitions
	// Defaults returns the options of handlers that announce none, which may change.
	Defaults func() *metadata.Defaults
	// Dial connects to brokers and token endpoints.
	Dial  func(ctx context.Context, network, address string) (net.Conn, error)
	Level func() feature.Level
	// FlowControl means that invocations may have scopes.
	FlowControl bool
	Version     string
	// RecordSize is the largest value of a record, in bytes.
	RecordSize int
	// Memory bounds the records held by this node, in bytes; see memory.
	Memory int64
	// commitInterval is the time between commits for a consumer group (5 s).
	commitInterval time.Duration
	Metrics        *Metrics        // nil: none
	Tracer         *tracing.Tracer // nil: records have no spans
	Log            *slog.Logger
}

// Engine reads the topic partitions that belong to the partitions that this node leads.
type Engine struct {
	cfg      Config
	memory   *memory
	inflated atomic.Int64 // bytes that clients have decompressed and that are not polled yet

	changed chan struct{} // of owners; has capacity 1
	lookups chan struct{} // semaphore of maxLookups

	mu      sync.Mutex // covers the fields below
	owners  map[uint32]*owner
	moved   bool               // owners has changed since readers were notified
	readers map[string]*reader // by subscription

	stopping map[*reader]bool // of readers
	stops    sync.WaitGroup   // of those
}

var _ partition.Streams = (*Engine)(nil)

// positions is what a leadership stores about streams; see partition.StreamOwner.
type positions interface {
	Partition() uint32
	Position(machine.Stream) (*machine.StreamPosition, error)
	Positions(subscription string) ([]*machine.StreamPosition, error)
	PutPosition(context.Context, machine.StreamPosition) error
	Incarnations() ([]store.Incarnation, error)
	Forget(ctx context.Context, c *machine.ForgetStreams) error
	SetAside(ctx context.Context, c *machine.SetAside) (full bool, err error)
	DropDeadLetters(ctx context.Context, c *machine.DropDeadLetters) error
	DeadLetters(subscription string) (machine.DeadLetters, error)
	DeadLetter(subscription string, id machine.DeadLetterID) (*machine.DeadLetter, error)
	DeadLettersAfter(subscription string, id *machine.DeadLetterID, limit int) ([]*machine.DeadLetter, error)
}

// owner is the leadership of a partition on this node.
type owner struct {
	positions
	ctx     context.Context //nolint:containedctx // ends with the leadership
	streams sync.WaitGroup
}

// New returns an engine. It reads while Run runs.
func New(cfg Config) *Engine {
	if cfg.commitInterval == 0 {
		cfg.commitInterval = commitInterval
	}
	return &Engine{
		cfg: cfg, memory: newMemory(cfg.Memory), changed: make(chan struct{}, 1), lookups: make(chan struct{}, maxLookups),
		owners: map[uint32]*owner{}, readers: map[string]*reader{}, stopping: map[*reader]bool{},
	}
}

// Lead implements partition.Streams.
func (e *Engine) Lead(ctx context.Context, o *partition.StreamOwner) error {
	e.lead(ctx, o)
	return nil
}

func (e *Engine) lead(ctx context.Context, o positions) {
	w := &owner{positions: o, ctx: ctx}
	e.mu.Lock()
	if ctx.Err() == nil { // it must not replace its successor
		e.owners[o.Partition()] = w
		e.moved = true
	}
	e.mu.Unlock()
	e.notify()
	e.collectGarbage(ctx, w)
	e.mu.Lock()
	if e.owners[o.Partition()] == w {
		delete(e.owners, o.Partition())
		e.moved = true
	}
	e.mu.Unlock()
	e.notify()
	w.streams.Wait()
}

// notify makes Run check the owners again.
func (e *Engine) notify() {
	select {
	case e.changed <- struct{}{}:
	default:
	}
}

// owner returns the leadership of a partition, with a stream registered that the caller must
// end with streams.Done; nil if this node does not lead it.
func (e *Engine) owner(id uint32) *owner {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.owners[id]
	if w == nil || w.ctx.Err() != nil {
		return nil
	}
	w.streams.Add(1)
	return w
}

// leaderships returns the partitions that this node leads, each as owner does.
func (e *Engine) leaderships() (all []*owner) {
	e.mu.Lock()
	ids := slices.Collect(maps.Keys(e.owners))
	e.mu.Unlock()
	for _, id := range ids {
		if o := e.owner(id); o != nil {
			all = append(all, o)
		}
	}
	return all
}

func (e *Engine) leads(id uint32) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.owners[id] != nil
}

// ownerOf returns the partition that owns a topic partition of a subscription.
func (e *Engine) ownerOf(subscription, topic string, partition int32) uint32 {
	return machine.PartitionOf(ids.HashKey(subscription+"/"+topic+"/"+itoa(int64(partition))), e.cfg.Partitions.Count())
}

// coordinates reports whether this node performs the tasks that only one node performs for a
// subscription.
func (e *Engine) coordinates(subscription string) bool {
	return e.leads(machine.PartitionOf(ids.HashKey(subscription), e.cfg.Partitions.Count()))
}

// Run reads subscriptions until ctx ends.
func (e *Engine) Run(ctx context.Context) error {
	defer e.stopAll()
	for {
		subscriptions, changed := e.cfg.Source.Subscriptions()
		e.reconcile(ctx, subscriptions)
		select {
		case <-changed:
		case <-e.changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// reconcile starts and stops readers, so that there is one for each subscription while this
// node leads partitions. One that stops finishes what is in flight, which may take a while; its
// successor is started afterwards. The others are notified only if the owners have changed: with a
// thousand subscriptions, each change of one would otherwise cause a thousand requests.
func (e *Engine) reconcile(ctx context.Context, subscriptions []subscription.Subscription) {
	e.mu.Lock()
	defer e.mu.Unlock()
	wanted := make(map[string]bool, len(subscriptions))
	for i := range subscriptions {
		sub := subscriptions[i]
		cluster, known := e.cfg.Source.KafkaCluster(sub.Cluster)
		r := e.readers[sub.ID]
		switch {
		case len(e.owners) == 0:
			continue
		case r == nil:
			r = newReader(e, sub, cluster, known)
			r.start(ctx)
			e.readers[sub.ID] = r
		case r.differs(&sub, &cluster, known):
			continue
		}
		wanted[sub.ID] = true
		if e.moved {
			r.notify()
		}
	}
	e.moved = false
	for id, r := range e.readers {
		if !wanted[id] && !e.stopping[r] {
			e.stopping[r] = true
			e.stops.Go(func() { e.stop(id, r) })
		}
	}
}

// stop stops a reader and makes room for its successor.
func (e *Engine) stop(id string, r *reader) {
	r.stop()
	if _, exists := e.subscription(id); !exists {
		e.cfg.Metrics.forget(id)
	}
	e.mu.Lock()
	delete(e.readers, id)
	delete(e.stopping, r)
	e.mu.Unlock()
	e.notify()
}

func (e *Engine) stopAll() {
	e.reconcile(context.Background(), nil)
	e.stops.Wait()
}

// reader returns the reader of a subscription on this node, nil if there is none.
func (e *Engine) reader(id string) *reader {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.readers[id]
}
