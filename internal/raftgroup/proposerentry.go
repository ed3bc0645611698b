package raftgroup

import (
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"platform/internal/limits"
)

// bulkNumber is the number of entries that have none, since they do not count as in flight.
const bulkNumber = 0

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
	s := p.queue.fitting(len(e.commands), e.bytes, p.cfg.MaxBatchCommands, p.cfg.MaxBatchBytes)
	n := s.prompt + s.yielding
	if n == 0 || p.inBytes+s.bytes > p.cfg.maxInFlightBytes {
		return
	}
	p.joining = p.queue.appendTo(p.joining[:0], s)
	defer clear(p.joining)
	for i := range p.joining {
		e.commands = append(e.commands, p.joining[i].data)
	}
	data, err := p.cfg.Seal(e.commands)
	if err != nil || len(data) > limits.Entry {
		return // the next entry has them
	}
	for i := range p.joining {
		e.done = append(e.done, p.joining[i].done)
	}
	p.dequeueLocked(s)
	log.Data, e.data = data, data
	e.bytes += s.bytes
	p.inCommands += n
	p.inBytes += s.bytes
	if len(p.bulk.commands) > 0 { // one may have waited for these
		p.wakeUp()
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

// resetOrderLocked forgets the entries that Raft has refused, once nothing is in flight that follows them.
func (p *Proposer[R]) resetOrderLocked() {
	if p.inFlight == 0 && !p.bulk.inFlight {
		p.order.reset()
	}
}
