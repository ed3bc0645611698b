package raftgroup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"platform/internal/limits"
)

// Limits of a Proposer; see ProposerConfig.
const (
	maxBatchCommands = 256
	maxBatchBytes    = 256 << 10
	maxQueueCommands = 10_000
	maxQueueBytes    = 64 << 20
	maxInFlight      = 8
	yieldingInFlight = 4 // of entries that only yielding commands make full
	aloneInFlight    = 2 // of these and of smaller entries, without followers
	maxInFlightBytes = 16 << 20
	maxDeferral      = 10 * time.Millisecond
)

// Completion receives the outcome of one command. It is called exactly once for each
// command that Submit accepted; applied commands complete in log order. It runs on one of
// the proposer's two goroutines, which serve all commands of the group: it must not block.
type Completion[R any] interface {
	Complete(result R, err error)
}

// CompletionFunc adapts a function to a Completion.
type CompletionFunc[R any] func(result R, err error)

// Complete calls f.
func (f CompletionFunc[R]) Complete(result R, err error) { f(result, err) }

// ProposerConfig configures batching. Zero values mean the defaults.
type ProposerConfig struct {
	// Seal encodes a batch of commands as one log entry: the caller's envelope with
	// version, epoch and time. The batch slice is reused after the call. An error is passed
	// to all commands of the batch, which were then not proposed.
	Seal func(batch [][]byte) ([]byte, error)

	// MaxBatchCommands and MaxBatchBytes bound one entry: 256 commands, 256 KiB; a larger
	// command gets a separate entry. MaxBatchBytes above limits.Command is lowered.
	MaxBatchCommands int
	MaxBatchBytes    int
	// maxCommandBytes bounds one command; Submit rejects a larger one with ErrTooLarge:
	// limits.StoredCommand.
	maxCommandBytes int
	// maxQueueCommands and maxQueueBytes bound the queue; beyond them Submit returns
	// ErrOverloaded: 10,000 commands, 64 MiB. Yielding commands may take half of both. If none of its
	// kind waits, any command up to maxCommandBytes is accepted, so that none is rejected as overload indefinitely.
	maxQueueCommands int
	maxQueueBytes    int
	// maxInFlight bounds the entries that were proposed and have no outcome yet: 8. That
	// many are used only for entries full of prompt commands. Of entries that are full with yielding
	// ones, four are in flight: what is submitted meanwhile waits for them. A smaller entry is proposed
	// once the previous one has its outcome, so that it has all commands that arrived meanwhile: each
	// entry costs every replica a write and a request. Without followers it is proposed once the
	// previous one is written, which is while that is applied, and at most two are in flight.
	maxInFlight int
	// maxInFlightBytes bounds the bytes of those entries: 16 MiB. A single entry may be
	// larger.
	maxInFlightBytes int
	// maxDeferral bounds how long a command of SubmitDeferred waits for another one: 10 ms.
	maxDeferral time.Duration
	// Bulk bounds the entries of SubmitBulk in flight, together with other proposers; nil
	// allows this one alone a single entry.
	Bulk *BulkGate
}

// Proposer batches the commands of one group into log entries. Commands submitted while an
// entry is being written make up the next one; a single command is proposed immediately, unless it
// is of SubmitDeferred. The state machine must return []R, one element per command, as the
// result of an entry.
type Proposer[R any] struct {
	group *Group
	cfg   ProposerConfig
	wake  chan struct{}      // there may be something to propose
	sent  chan *sentEntry[R] // to the completing goroutine, in log order
	free  sync.Pool          // of *sentEntry[R]
	batch [][]byte           // reused by Run

	// mu covers the fields below.
	mu     sync.Mutex
	closed bool
	bulk   bulkQueue[R]
	order  proposalOrder // of all entries, also those of bulk
	alone  bool          // the group has no other members

	queue    commandQueue[R]     // of Submit
	spare    []pendingCommand[R] // owned by Run
	deferred int                 // commands in the queue that may wait for others
	due      bool                // these have waited long enough
	deferral *time.Timer

	// The entries in flight but those of bulk.
	inFlight   int
	inBytes    int                 // of their commands
	inCommands int                 // number of their commands
	newest     uint64              // number of the last one, from 1 on
	storing    bool                // the newest one is not in the log yet
	open       *sentEntry[R]       // the newest one, while further commands may join it; nil: they may not
	joining    []pendingCommand[R] // reused by joinLocked
	transfers  uint64              // leadership transfers that had begun when nothing in flight could have been refused
}

// pendingCommand is a command that has not been proposed yet.
type pendingCommand[R any] struct {
	data     []byte
	size     int // size for the bounds in bytes
	deferred bool
	yielding bool
	after    uint64 // yielding commands: number of prompt commands to propose before it
	done     Completion[R]
}

// NewProposer returns a proposer for g. Commands are accepted immediately and proposed
// while Run runs.
func NewProposer[R any](g *Group, cfg ProposerConfig) (*Proposer[R], error) {
	if cfg.Seal == nil {
		return nil, errors.New("proposer config has no Seal")
	}
	cfg.MaxBatchCommands = cmp.Or(cfg.MaxBatchCommands, maxBatchCommands)
	cfg.MaxBatchBytes = min(cmp.Or(cfg.MaxBatchBytes, maxBatchBytes), limits.Command)
	cfg.maxQueueCommands = cmp.Or(cfg.maxQueueCommands, maxQueueCommands)
	cfg.maxQueueBytes = cmp.Or(cfg.maxQueueBytes, maxQueueBytes)
	cfg.maxInFlight = cmp.Or(cfg.maxInFlight, maxInFlight)
	cfg.maxInFlightBytes = cmp.Or(cfg.maxInFlightBytes, maxInFlightBytes)
	cfg.maxDeferral = cmp.Or(cfg.maxDeferral, maxDeferral)
	cfg.maxCommandBytes = cmp.Or(cfg.maxCommandBytes, limits.StoredCommand)
	if cfg.Bulk == nil {
		cfg.Bulk = NewBulkGate(1)
	}
	return &Proposer[R]{
		group: g,
		cfg:   cfg,
		wake:  make(chan struct{}, 1),
		sent:  make(chan *sentEntry[R], cfg.maxInFlight+1),
	}, nil
}

// HasRoom reports whether Submit, or SubmitYielding, would accept a command of that many bytes now. It
// saves encoding large commands that would be refused.
func (p *Proposer[R]) HasRoom(size int, yielding bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hasRoomLocked(size, yielding)
}

func (p *Proposer[R]) hasRoomLocked(size int, yielding bool) bool {
	q, own, share := &p.queue, &p.queue.prompt, 1
	if yielding {
		own, share = &q.yielding, 2
	}
	if len(own.commands) >= p.cfg.maxQueueCommands/share || q.len() >= p.cfg.maxQueueCommands {
		return false
	}
	return len(own.commands) == 0 || own.bytes+size <= p.cfg.maxQueueBytes/share && q.bytes()+size <= p.cfg.maxQueueBytes
}

// Submit queues one command, which must not be modified afterwards. If applying it takes extra bytes
// of memory, these count in all bounds except that of one command. If Submit returns nil, done is
// completed exactly once; otherwise never, and nothing was proposed: ErrOverloaded, ErrStopped or
// ErrTooLarge.
func (p *Proposer[R]) Submit(command []byte, extra int, done Completion[R]) error {
	return p.submit(pendingCommand[R]{data: command, size: len(command) + extra, done: done})
}

// SubmitDeferred is Submit for a command that should share an entry with the next command of
// Submit. It waits for that one for a limited time.
func (p *Proposer[R]) SubmitDeferred(command []byte, done Completion[R]) error {
	return p.submit(pendingCommand[R]{data: command, size: len(command), deferred: true, done: done})
}

// SubmitYielding is Submit for a command that later ones of Submit may overtake. It follows what was submitted before it.
// Full entries leave about a quarter of their bytes to such commands.
func (p *Proposer[R]) SubmitYielding(command []byte, extra int, done Completion[R]) error {
	return p.submit(pendingCommand[R]{data: command, size: len(command) + extra, yielding: true, done: done})
}

func (p *Proposer[R]) submit(c pendingCommand[R]) error {
	if len(c.data) > p.cfg.maxCommandBytes {
		p.group.cfg.Metrics.refused(1, ErrTooLarge)
		return fmt.Errorf("%w: command has %d bytes, the limit is %d", ErrTooLarge, len(c.data), p.cfg.maxCommandBytes)
	}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return ErrStopped
	}
	if !p.hasRoomLocked(c.size, c.yielding) {
		p.mu.Unlock()
		p.group.cfg.Metrics.refused(1, ErrOverloaded)
		return ErrOverloaded
	}
	p.queue.add(c)
	if c.deferred {
		p.deferLocked()
	}
	ready := p.readyLocked()
	p.mu.Unlock()
	if ready {
		p.wakeUp()
	}
	return nil
}

// Backlog returns how many commands of Submit have no outcome yet, and whether an entry of
// SubmitBulk is in flight, for which the next command has to wait.
func (p *Proposer[R]) Backlog() (commands int, bulk bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queue.len() + p.inCommands, p.bulk.inFlight
}

func (p *Proposer[R]) wakeUp() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Run proposes until ctx ends. Then it rejects new commands, completes the queued ones with
// ErrStopped, and returns when all entries in flight have an outcome.
func (p *Proposer[R]) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(p.complete)
	storing, stored := p.storingEntries, p.stored
	p.group.storage.onStoring.Store(&storing)
	defer p.group.storage.onStoring.CompareAndSwap(&storing, nil)
	p.group.storage.onStored.Store(&stored)
	defer p.group.storage.onStored.CompareAndSwap(&stored, nil)
	wakeUp := p.wakeUp
	p.group.transfers.onEnd.Store(&wakeUp)
	defer p.group.transfers.onEnd.CompareAndSwap(&wakeUp, nil)
	p.wakeUp() // a transfer may have ended before that
	for {
		select {
		case <-p.wake:
			p.drain(ctx)
		case <-ctx.Done():
			p.close()
			close(p.sent)
			wg.Wait()
			return ctx.Err()
		}
	}
}

// close rejects queued and new commands.
func (p *Proposer[R]) close() {
	p.mu.Lock()
	p.closed = true
	if p.deferral != nil {
		p.deferral.Stop()
	}
	rest := slices.Concat(p.queue.prompt.commands, p.queue.yielding.commands)
	for _, c := range p.bulk.commands {
		rest = append(rest, pendingCommand[R]{done: c.done})
	}
	p.queue, p.deferred = commandQueue[R]{}, 0
	p.bulk.commands, p.bulk.bytes = nil, 0
	p.mu.Unlock()
	p.cfg.Bulk.forget(p.wake)
	p.fail(rest, ErrStopped)
}

// drain proposes the queue, batch by batch, as far as the bounds on entries in flight
// allow. It stops when ctx ends, even if a completion ends it: the commands behind one that
// failed may depend on it.
func (p *Proposer[R]) drain(ctx context.Context) {
	for ctx.Err() == nil {
		if c, ok := p.takeBulk(); ok {
			p.proposeBulk(c)
			continue
		}
		batch := p.take()
		if batch == nil {
			return
		}
		number := p.newest
		if bytes, ok := p.propose(batch, number); !ok {
			p.landed(len(batch), bytes, number)
		}
		clear(batch)
	}
}

// fail completes commands that were not proposed.
func (p *Proposer[R]) fail(commands []pendingCommand[R], err error) {
	p.group.cfg.Metrics.refused(len(commands), err)
	for _, c := range commands {
		c.done.Complete(*new(R), err)
	}
}
