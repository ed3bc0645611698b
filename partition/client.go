package partition

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"platform/internal/failpoint"
	"platform/internal/feature"
	"platform/internal/ids"
	"platform/internal/limits"
	"platform/internal/raftgroup"
	"platform/partition/codec"
	"platform/partition/journal"
	"platform/partition/machine"
)

// ErrNotFound says that no invocation with that id is known, or not any more.
var ErrNotFound = errors.New("invocation not found")

// Ending is how an invocation ended.
type Ending struct {
	Target    machine.Target
	Result    journal.Result
	ExpiresAt int64 // until when the result is kept, ms since 1970
}

// Invoke proposes an invocation and returns once it is durable and applied; the
// outcome tells whether its id was known already.
func (p *Partition) Invoke(ctx context.Context, inv *machine.Invoke) (machine.Outcome, error) {
	l, err := p.leaderWithRoom()
	if err != nil {
		return machine.Outcome{}, err
	}
	named := l.named(inv)
	if failpoint.Active(failpoint.AckBeforeCommit) {
		go func() { _, _ = l.propose(context.WithoutCancel(ctx), l.planned(named)) }()
		return machine.Outcome{ID: named.ID}, nil
	}
	o, err := l.propose(ctx, l.planned(named))
	if o.ID.IsZero() && named.ID != inv.ID {
		o.ID = named.ID
	}
	return l.shown().outcome(o), err
}

// named is inv with the id that the log's feature level gives it. It is decided here,
// where all requests for the id meet, since nodes learn of a new level one after the
// other.
func (l *leadership) named(inv *machine.Invoke) *machine.Invoke {
	id, legacy, ok := machine.Derived(&inv.Target, inv.IdempotencyKey)
	if !ok || inv.ID != id && inv.ID != legacy {
		return inv
	}
	if l.level() < feature.Level2 {
		id = legacy
	}
	if id == inv.ID {
		return inv
	}
	named := *inv // repeated by the caller, maybe elsewhere
	named.ID = id
	return &named
}

// planned is inv with the time at which it starts, by the leader's clock.
func (l *leadership) planned(inv *machine.Invoke) *machine.Invoke {
	if inv.Delay == 0 {
		return inv
	}
	planned := *inv // repeated by the caller, maybe elsewhere
	planned.StartAt, planned.Delay = l.clock.Millis()+inv.Delay, 0
	return &planned
}

// leaderWithRoom is leader for what is new.
func (p *Partition) leaderWithRoom() (*leadership, error) {
	l, err := p.leader()
	if err == nil && p.room != nil {
		err = p.room()
	}
	return l, err
}

// Call proposes an invocation and waits for its end. The outcome's code is
// machine.Existing when the id was known already; with machine.QueueFull there is no
// ending.
func (p *Partition) Call(ctx context.Context, inv *machine.Invoke) (Ending, machine.Outcome, error) {
	l, err := p.leaderWithRoom()
	if err != nil {
		return Ending{}, machine.Outcome{}, err
	}
	named := l.named(inv)
	for {
		e, o, err := l.call(ctx, named)
		if err == nil && !o.ID.IsZero() { // its invocation has another id: wait for that one
			again := *named
			again.ID, named = o.ID, &again
			continue
		}
		if named.ID != inv.ID {
			o.ID = named.ID
		}
		s := l.shown()
		return s.ending(e), s.outcome(o), err
	}
}

// call proposes an invocation and waits for its end, unless it has another id, which
// the outcome tells.
func (l *leadership) call(ctx context.Context, inv *machine.Invoke) (Ending, machine.Outcome, error) {
	c := &call{ended: make(chan ending, 1), waiters: l.waiters, id: inv.ID, once: inv.Target.Type == machine.WorkflowRun}
	l.waiters.add(inv.ID, c.ended)
	if err := l.submit(l.planned(inv), c.answered); err != nil {
		l.waiters.remove(inv.ID, c.ended)
		return Ending{}, machine.Outcome{}, err
	}
	select {
	case e := <-c.ended:
		return e.of(inv.Target), c.known(), e.err
	case <-ctx.Done():
		l.waiters.remove(inv.ID, c.ended)
		return Ending{}, machine.Outcome{}, context.Cause(ctx)
	}
}

// call is one Call under way.
type call struct {
	ended   chan ending
	waiters *waiters
	id      ids.Invocation
	once    bool // calls that find somebody else's invocation do not join it

	mu      sync.Mutex // covers outcome
	outcome machine.Outcome
}

// answered takes the answer to the proposal. The end itself comes from the
// waiters, unless it lies in the past already.
func (c *call) answered(o machine.Outcome, err error) {
	if err != nil {
		c.end(ending{err: refused(err)})
		return
	}
	c.mu.Lock()
	c.outcome = o
	c.mu.Unlock()
	switch {
	case o.Code == machine.Stale:
		c.end(ending{err: ErrNotLeader})
	case !o.ID.IsZero():
		c.end(ending{})
	case o.Code == machine.QueueFull:
		offer(c.ended, ending{})
	case o.Code == machine.Existing && c.once && !o.Own:
		c.end(ending{})
	case o.Code == machine.Existing && o.Result != nil:
		c.end(ending{result: *o.Result, expiresAt: o.ExpiresAt})
	}
}

// end tells the caller what no effect will tell.
func (c *call) end(e ending) {
	c.waiters.remove(c.id, c.ended)
	offer(c.ended, e)
}

func (c *call) known() machine.Outcome {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.outcome
}

// Await waits for the end of a known invocation.
func (p *Partition) Await(ctx context.Context, id ids.Invocation) (Ending, error) {
	l, err := p.leader()
	if err != nil {
		return Ending{}, err
	}
	ended := make(chan ending, 1)
	l.waiters.add(id, ended) // before looking, so that no end falls between
	defer l.waiters.remove(id, ended)
	inv, err := p.Find(ctx, id)
	if err != nil {
		return Ending{}, err
	}
	if inv.Status == machine.Completed {
		return Ending{inv.Target, *inv.Result, inv.ExpiresAt}, nil
	}
	select {
	case e := <-ended:
		return l.shown().ending(e.of(inv.Target)), e.err
	case <-ctx.Done():
		return Ending{}, context.Cause(ctx)
	}
}

// Find reads an invocation's record; ErrNotFound if there is none. It is
// linearizable. The record is the caller's to keep; its times are times of day.
func (p *Partition) Find(ctx context.Context, id ids.Invocation) (*machine.Invocation, error) {
	l, err := p.leader()
	if err != nil {
		return nil, err
	}
	view := p.tables.View()
	defer view.Close()
	inv, err := view.Invocation(id)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", id, err)
	}
	if err := l.confirm(ctx); err != nil {
		return nil, err
	}
	if inv == nil || inv.Expired(l.clock.Millis()) {
		return nil, ErrNotFound
	}
	l.shown().invocation(inv)
	return inv, nil
}

// Deliver commits messages of another partition's outbox.
func (p *Partition) Deliver(ctx context.Context, d *machine.Deliver) error {
	l, err := p.leader()
	if err != nil {
		return err
	}
	o, err := l.propose(ctx, l.timedMessages(d))
	if err != nil {
		return err
	}
	if o.Code != machine.OK {
		return fmt.Errorf("partition %d refused messages %d… of partition %d: %v", p.id, d.FirstSeq, d.From, o.Code)
	}
	return nil
}

func (p *Partition) leader() (*leadership, error) {
	if l := p.lead.Load(); l != nil {
		return l, nil
	}
	return nil, ErrNotLeader
}

// submit proposes a command. done is called once, with its outcome, on a goroutine
// that it must not hold up; not at all when submit fails. A command that the cluster's
// feature level does not include fails with a *feature.Error.
func (l *leadership) submit(c machine.Command, done func(machine.Outcome, error)) error {
	return l.submitLarger(c, 0, done)
}

// submitLarger is submit of a command that copies about so many bytes within the tables.
func (l *leadership) submitLarger(c machine.Command, copies int, done func(machine.Outcome, error)) error {
	data, err := codec.EncodeCommand(l.level(), c)
	if err != nil {
		return fmt.Errorf("encode %T: %w", c, err)
	}
	if err := fits(l.level(), c, len(data)); err != nil {
		return err
	}
	return refused(l.proposer.SubmitLarger(data, copies, raftgroup.CompletionFunc[machine.Outcome](done)))
}

// fits refuses a command that is larger than the configuration can explain. Messages of
// an outbox are exempt: the first release accepted larger ones, and they have to arrive.
// They are sent once every node can receive a log entry with one of them.
func fits(level feature.Level, c machine.Command, size int) error {
	most := limits.Command
	if _, stored := c.(*machine.Deliver); stored && level >= feature.Level2 {
		most = limits.StoredCommand
	}
	if size <= most {
		return nil
	}
	return fmt.Errorf("%w: a command of %d bytes, at most %d", raftgroup.ErrTooLarge, size, most)
}

// propose proposes a command and waits until it is applied.
func (l *leadership) propose(ctx context.Context, c machine.Command) (machine.Outcome, error) {
	type answer struct {
		outcome machine.Outcome
		err     error
	}
	copies, err := l.copies(c)
	if err != nil {
		return machine.Outcome{}, err
	}
	answers := make(chan answer, 1)
	if err := l.submitLarger(c, copies, func(o machine.Outcome, err error) { answers <- answer{o, refused(err)} }); err != nil {
		return machine.Outcome{}, err
	}
	select {
	case a := <-answers:
		if a.err == nil && a.outcome.Code == machine.Stale {
			return a.outcome, ErrNotLeader
		}
		return a.outcome, a.err
	case <-ctx.Done():
		return machine.Outcome{}, fmt.Errorf("%w: %w", raftgroup.ErrUnknownOutcome, context.Cause(ctx))
	}
}
