package raftgroup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"platform/internal/limits"
)

// Limits of a Proposer; see ProposerConfig.
const (
	maxBatchCommands = 256
	maxBatchBytes    = 256 << 10
	maxQueueCommands = 10_000
	maxQueueBytes    = 64 << 20
	maxInFlight      = 8
	smallInFlight    = 2 // without followers
	maxInFlightBytes = 16 << 20
	maxDeferral      = 10 * time.Millisecond
)

// bulkNumber is the number of entries that have none, since they do not count as in flight.
const bulkNumber = 0

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
	// ErrOverloaded: 10,000 commands, 64 MiB. An empty queue accepts any command up to
	// maxCommandBytes, so that none is rejected as overload indefinitely.
	maxQueueCommands int
	maxQueueBytes    int
	// maxInFlight bounds the entries that were proposed and have no outcome yet: 8. That
	// many are used only for full entries. A smaller one is proposed once the previous one
	// has its outcome, so that it has all commands that arrived meanwhile: each entry costs
	// every replica a write and a request. Without followers it is proposed once the previous
	// one is written, which is while that is applied.
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

	// mu covers the fields below. Run swaps queue with spare, which it owns.
	mu         sync.Mutex
	queue      []pendingCommand[R]
	spare      []pendingCommand[R]
	deferred   int  // commands in the queue that may wait for others
	due        bool // these have waited long enough
	deferral   *time.Timer
	submitted  uint64 // commands that were ever in the queue
	bulk       bulkQueue[R]
	bytes      int           // of the queue
	inFlight   int           // entries but those of bulk
	inBytes    int           // of their commands
	inCommands int           // commands of the entries in flight but those of bulk
	newest     uint64        // number of the last of them, from 1 on
	storing    bool          // that one is not in the log yet
	transfers  uint64        // leadership transfers that had begun when nothing could have been refused
	open       *sentEntry[R] // that one, while further commands may join it; nil: they may not
	order      proposalOrder // of all entries, also those of bulk
	alone      bool          // the group has no other members
	closed     bool
}

// pendingCommand is a command that has not been proposed yet.
type pendingCommand[R any] struct {
	data     []byte
	size     int // size for the bounds in bytes
	deferred bool
	done     Completion[R]
}

// sentEntry is an entry in flight with its commands and their completions.
type sentEntry[R any] struct {
	future   raft.ApplyFuture
	inst     *instance
	data     []byte   // as passed to Raft
	commands [][]byte // while further ones may join
	bytes    int      // of them
	number   uint64   // in order; bulkNumber if it has a command of SubmitBulk
	begin    time.Time
	done     []Completion[R]
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

// HasRoom reports whether Submit would accept a command of that many bytes now. It saves
// encoding large commands that would be refused.
func (p *Proposer[R]) HasRoom(size int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hasRoomLocked(size)
}

func (p *Proposer[R]) hasRoomLocked(size int) bool {
	n := len(p.queue)
	return n < p.cfg.maxQueueCommands && (n == 0 || p.bytes+size <= p.cfg.maxQueueBytes)
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
	if !p.hasRoomLocked(c.size) {
		p.mu.Unlock()
		p.group.cfg.Metrics.refused(1, ErrOverloaded)
		return ErrOverloaded
	}
	p.queue = append(p.queue, c)
	p.submitted++
	p.bytes += c.size
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

// deferLocked counts the last command of the queue as deferred.
func (p *Proposer[R]) deferLocked() {
	p.deferred++
	if p.deferred > 1 {
		return // the timer of the first one is running
	}
	if p.deferral == nil {
		p.deferral = time.AfterFunc(p.cfg.maxDeferral, p.endDeferral)
		return
	}
	p.deferral.Reset(p.cfg.maxDeferral)
}

// endDeferral has the deferred commands proposed that have not met another one.
func (p *Proposer[R]) endDeferral() {
	p.mu.Lock()
	p.due = p.deferred > 0
	ready := p.readyLocked()
	p.mu.Unlock()
	if ready {
		p.wakeUp()
	}
}

// readyLocked reports whether an entry should be proposed now, those of bulk aside.
func (p *Proposer[R]) readyLocked() bool {
	if len(p.queue) == 0 {
		return false
	}
	if p.inFlight > 0 && p.inBytes+min(p.bytes, p.cfg.MaxBatchBytes) > p.cfg.maxInFlightBytes {
		return false
	}
	if p.heldLocked() {
		return false
	}
	switch {
	case len(p.queue) >= p.cfg.MaxBatchCommands, p.bytes >= p.cfg.MaxBatchBytes:
		return p.inFlight < p.cfg.maxInFlight
	case p.deferred == len(p.queue) && !p.due && len(p.bulk.commands) == 0:
		return false
	case p.inFlight == 0:
		return true
	}
	return p.alone && !p.storing && p.inFlight < min(smallInFlight, p.cfg.maxInFlight)
}

// heldLocked reports whether nothing may be proposed, because Raft may refuse it, or may have refused an entry that
// has no outcome yet: what follows a refused command must not be stored.
func (p *Proposer[R]) heldLocked() bool {
	begun, running := p.group.transfers.state()
	if running || begun != p.transfers && (p.inFlight > 0 || p.bulk.inFlight) {
		return true
	}
	p.transfers = begun
	return false
}

// Backlog returns how many commands of Submit have no outcome yet, and whether an entry of
// SubmitBulk is in flight, for which the next command has to wait.
func (p *Proposer[R]) Backlog() (commands int, bulk bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.queue) + p.inCommands, p.bulk.inFlight
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
	rest := p.queue
	for _, c := range p.bulk.commands {
		rest = append(rest, pendingCommand[R]{done: c.done})
	}
	p.queue, p.bytes, p.deferred = nil, 0, 0
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

// stored records that what was proposed is in the log. It is called by Raft.
func (p *Proposer[R]) stored() {
	p.mu.Lock()
	p.storing = false
	ready := p.readyLocked()
	p.mu.Unlock()
	if ready {
		p.wakeUp()
	}
}

// landed removes an entry, with that many commands and bytes of them, from those in flight.
func (p *Proposer[R]) landed(commands, bytes int, number uint64) {
	if number == bulkNumber {
		p.bulkLanded()
		return
	}
	p.mu.Lock()
	p.inFlight--
	p.inCommands -= commands
	p.inBytes -= bytes
	if number == p.newest {
		p.storing, p.open = false, nil
	}
	p.resetOrderLocked()
	ready := p.readyLocked() || len(p.bulk.commands) > 0 // which may have been held, too
	p.mu.Unlock()
	if ready {
		p.wakeUp()
	}
}

// take removes one batch from the queue, nil if none should be proposed now; the result is
// valid until the next call.
func (p *Proposer[R]) take() []pendingCommand[R] {
	alone := p.group.fsm.alone()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.alone = alone
	if !p.readyLocked() {
		return nil
	}
	p.inFlight++
	p.newest++
	p.storing, p.open = true, nil
	n, bytes := p.fittingLocked(0, 0)
	p.bytes -= bytes
	p.inCommands += n
	p.inBytes += bytes
	if n == len(p.queue) { // the usual case: swap instead of copying
		p.deferred, p.due = 0, false
		batch := p.queue
		p.queue, p.spare = p.spare[:0], batch
		return batch
	}
	p.spare = append(p.spare[:0], p.queue[:n]...)
	p.dequeueLocked(n)
	return p.spare
}

// fittingLocked returns the number and the bytes of the first queued commands that fit into an
// entry with that many commands and bytes. One command fits into an empty entry in any case.
func (p *Proposer[R]) fittingLocked(commands, size int) (n, bytes int) {
	for n < len(p.queue) && commands+n < p.cfg.MaxBatchCommands {
		next := p.queue[n].size
		if commands+n > 0 && size+bytes+next > p.cfg.MaxBatchBytes {
			break
		}
		bytes += next
		n++
	}
	return n, bytes
}

// dequeueLocked removes the first n commands from the queue.
func (p *Proposer[R]) dequeueLocked(n int) {
	for i := range n {
		if p.queue[i].deferred {
			p.deferred--
		}
	}
	p.due = p.due && p.deferred > 0
	rest := copy(p.queue, p.queue[n:])
	clear(p.queue[rest:])
	p.queue = p.queue[:rest]
}

// resetOrderLocked forgets the entries that Raft has refused, once nothing is in flight that follows them.
func (p *Proposer[R]) resetOrderLocked() {
	if p.inFlight == 0 && !p.bulk.inFlight {
		p.order.reset()
	}
}

// storingEntries is called by Raft before entries are stored, of which it has not read the data yet. If it returns an error,
// none is stored, and Raft gives up leadership.
func (p *Proposer[R]) storingEntries(logs []*raft.Log) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.order.store(logs); err != nil {
		return err
	}
	p.joinLocked(logs[len(logs)-1])
	return nil
}

// joinLocked adds the commands that have arrived since an entry was proposed, right before it is
// written. Otherwise they would wait until it is, and be an entry of their own.
func (p *Proposer[R]) joinLocked(log *raft.Log) {
	e := p.open
	if e == nil || len(log.Data) == 0 || &log.Data[0] != &e.data[0] {
		return
	}
	p.open = nil
	n, bytes := p.fittingLocked(len(e.commands), e.bytes)
	if n == 0 || p.inBytes+bytes > p.cfg.maxInFlightBytes {
		return
	}
	for i := range n {
		e.commands = append(e.commands, p.queue[i].data)
	}
	data, err := p.cfg.Seal(e.commands)
	if err != nil || len(data) > limits.Entry {
		return // the next entry has them
	}
	for i := range n {
		e.done = append(e.done, p.queue[i].done)
	}
	log.Data, e.data = data, data
	e.bytes += bytes
	p.inCommands += n
	p.inBytes += bytes
	p.bytes -= bytes
	p.dequeueLocked(n)
	if len(p.bulk.commands) > 0 { // one may have waited for these
		p.wakeUp()
	}
}

// propose proposes a batch as one entry and returns the bytes of its commands; false means
// that it was rejected and all its commands are completed.
func (p *Proposer[R]) propose(batch []pendingCommand[R], number uint64) (bytes int, ok bool) {
	p.batch = p.batch[:0]
	for i := range batch {
		p.batch = append(p.batch, batch[i].data)
		bytes += batch[i].size
	}
	if !p.group.IsLeader() {
		clear(p.batch)
		p.fail(batch, ErrNotLeader)
		return bytes, false
	}
	data, err := p.cfg.Seal(p.batch)
	clear(p.batch)
	if err != nil {
		p.fail(batch, fmt.Errorf("seal batch: %w", err))
		return bytes, false
	}
	e, _ := p.free.Get().(*sentEntry[R])
	if e == nil {
		e = new(sentEntry[R])
	}
	e.data, e.bytes, e.number = data, bytes, number
	for i := range batch {
		e.done = append(e.done, batch[i].done)
		e.commands = append(e.commands, batch[i].data)
	}
	p.mu.Lock()
	if number != bulkNumber {
		p.open = e
	}
	p.order.add(data)
	p.mu.Unlock()
	begin := time.Now()
	future, inst, err := p.group.apply(data)
	if err != nil {
		p.mu.Lock()
		p.order.undo()
		p.mu.Unlock()
		p.fail(batch, err)
		return bytes, false
	}
	e.future, e.inst, e.begin = future, inst, begin
	p.sent <- e
	return bytes, true
}

// complete passes each command its result, entry by entry.
func (p *Proposer[R]) complete() {
	for e := range p.sent {
		result, err := p.group.outcome(e.future)
		e.inst.pending.Add(-1)
		p.group.cfg.Metrics.ended(e.begin, len(e.done), len(e.data), err)
		e.finish(result, err)
		p.landed(len(e.done), e.bytes, e.number) // after finish: commands of resumed callers join the next entry
		clear(e.done)
		clear(e.commands)
		*e = sentEntry[R]{done: e.done[:0], commands: e.commands[:0]}
		p.free.Put(e)
	}
}

// finish completes the commands of one entry.
func (e *sentEntry[R]) finish(result any, err error) {
	results, ok := result.([]R)
	if err == nil && (!ok || len(results) != len(e.done)) {
		err = fmt.Errorf("%w: state machine returned %T with %d results for %d commands",
			ErrUnknownOutcome, result, len(results), len(e.done))
	}
	if err != nil {
		for _, d := range e.done {
			d.Complete(*new(R), err)
		}
		return
	}
	for i, d := range e.done {
		d.Complete(results[i], nil)
	}
}

// fail completes commands that were not proposed.
func (p *Proposer[R]) fail(commands []pendingCommand[R], err error) {
	p.group.cfg.Metrics.refused(len(commands), err)
	for _, c := range commands {
		c.done.Complete(*new(R), err)
	}
}
