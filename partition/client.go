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
	"platform/internal/target"
	"platform/partition/codec"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/partition/store"
)

// ErrNotFound means that no invocation with that ID is known, or no longer is.
var ErrNotFound = errors.New("invocation not found")

// Ending is the result of a completed invocation.
type Ending struct {
	Target    machine.Target
	Result    journal.Result
	ExpiresAt int64 // when the result expires, ms since 1970
}

// Invoke proposes an invocation and returns once it is durable and applied; the outcome
// says whether its ID was already known.
func (p *Partition) Invoke(ctx context.Context, inv *machine.Invoke) (machine.Outcome, error) {
	l, err := p.leaderWithRoom()
	if err != nil {
		return machine.Outcome{}, err
	}
	current := l.withCurrentID(inv)
	if failpoint.Active(failpoint.AckBeforeCommit) {
		go func() { _, _ = l.propose(context.WithoutCancel(ctx), l.withStartTime(current)) }()
		return machine.Outcome{ID: current.ID}, nil
	}
	o, err := l.propose(ctx, l.withStartTime(current))
	if o.ID.IsZero() && current.ID != inv.ID {
		o.ID = current.ID
	}
	return l.clock.Offset().outcome(o), err
}

// withCurrentID returns inv with the ID that the log's feature level assigns. The leader
// decides, because all requests for the ID meet here, while nodes learn of a new level at
// different times.
func (l *leadership) withCurrentID(inv *machine.Invoke) *machine.Invoke {
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
	current := *inv // the caller may retry it, possibly elsewhere
	current.ID, current.Since = id, machine.Moment{}
	return &current
}

// withStartTime returns inv with its delay converted to a start time of the leader's clock.
func (l *leadership) withStartTime(inv *machine.Invoke) *machine.Invoke {
	if inv.Delay == 0 {
		return inv
	}
	timed := *inv // the caller may retry it, possibly elsewhere
	timed.StartAt, timed.Delay = l.clock.Millis()+inv.Delay, 0
	return &timed
}

// leaderWithRoom returns the leadership, for requests that create work: it fails if this
// node accepts none.
func (p *Partition) leaderWithRoom() (*leadership, error) {
	l, err := p.leader()
	if err == nil {
		err = p.cfg.Room()
	}
	return l, err
}

// Call proposes an invocation and waits for its end. The outcome's code is machine.Existing
// if the ID was already known; with machine.QueueFull there is no ending.
func (p *Partition) Call(ctx context.Context, inv *machine.Invoke) (Ending, machine.Outcome, error) {
	l, err := p.leaderWithRoom()
	if err != nil {
		return Ending{}, machine.Outcome{}, err
	}
	current := l.withCurrentID(inv)
	for {
		e, o, err := l.call(ctx, current)
		if err == nil && !o.ID.IsZero() { // the invocation has another ID: wait for that one
			other := *current
			other.ID, other.Since, current = o.ID, machine.Moment{}, &other
			continue
		}
		if current.ID != inv.ID {
			o.ID = current.ID
		}
		offset := l.clock.Offset()
		return offset.ending(e), offset.outcome(o), err
	}
}

// call proposes an invocation and waits for its end, unless it has another ID, which the
// outcome then contains.
func (l *leadership) call(ctx context.Context, inv *machine.Invoke) (Ending, machine.Outcome, error) {
	c := l.newCall(inv)
	if err := l.submitAs(ctx, l.withStartTime(inv), c.submission(inv), c.applied); err != nil {
		l.waiters.remove(inv.ID, c.waiter)
		return Ending{}, machine.Outcome{}, err
	}
	select {
	case e := <-c.waiter.ended:
		return e.of(inv.Target), c.result(), e.err
	case <-ctx.Done():
		l.waiters.remove(inv.ID, c.waiter)
		return Ending{}, machine.Outcome{}, context.Cause(ctx)
	}
}

// call is one Call in progress.
type call struct {
	waiter  *waiter
	waiters *waiters
	id      ids.Invocation
	once    bool // a call that finds an invocation of another request does not wait for it
	others  int  // calls in progress that take the same lock

	mu      sync.Mutex // covers outcome
	outcome machine.Outcome
}

// newCall returns a call that is about to be proposed. Until it is applied, only the end of
// an invocation of the same request ends it: one of another request may end before that.
func (l *leadership) newCall(inv *machine.Invoke) *call {
	c := &call{waiter: newWaiter(), waiters: l.waiters, id: inv.ID, once: inv.Target.Type == target.WorkflowRun}
	c.waiter.only = inv.Request
	if inv.Delay == 0 && inv.StartAt == 0 {
		c.waiter.lock = lockOf(&inv.Target)
	}
	c.others = l.waiters.add(inv.ID, c.waiter)
	return c
}

// submission defers a call that cannot start before another one ends. The next command is usually that end, and the
// caller gets no response before it. With only one other call, its end may already have been proposed, and no command
// would follow. A call with an idempotency key is not deferred, since its result may exist already.
func (c *call) submission(inv *machine.Invoke) submission {
	return submission{deferred: c.others >= 2 && inv.IdempotencyKey == nil}
}

// applied receives the outcome of the proposal. The end itself comes through the waiters,
// unless the invocation had already ended.
func (c *call) applied(o machine.Outcome, err error) {
	if err != nil {
		c.end(ending{err: proposeError(err)})
		return
	}
	c.mu.Lock()
	c.outcome = o
	c.mu.Unlock()
	switch {
	case o.Code == machine.Stale:
		c.end(ending{err: ErrNotLeader})
	case !o.ID.IsZero(), o.Code == machine.QueueFull:
		c.end(ending{})
	case o.Code == machine.Existing && c.once && !o.Own:
		c.end(ending{})
	case o.Code == machine.Existing && o.Result != nil:
		c.end(ending{result: *o.Result, expiresAt: o.ExpiresAt})
	default:
		c.waiters.settle(c.id, c.waiter, o.Code != machine.Existing || o.Own)
	}
}

// end completes the call in cases without an effect.
func (c *call) end(e ending) {
	c.waiters.remove(c.id, c.waiter)
	c.waiter.offer(e)
}

func (c *call) result() machine.Outcome {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.outcome
}

// Await waits for the end of an existing invocation.
func (p *Partition) Await(ctx context.Context, id ids.Invocation) (Ending, error) {
	l, err := p.leader()
	if err != nil {
		return Ending{}, err
	}
	w := newWaiter()
	l.waiters.add(id, w) // before reading, so that no end is missed
	defer l.waiters.remove(id, w)
	inv, err := p.Find(ctx, id)
	if err != nil {
		return Ending{}, err
	}
	if inv.Status == machine.Completed {
		return Ending{inv.Target, *inv.Result, inv.ExpiresAt}, nil
	}
	select {
	case e := <-w.ended:
		return l.clock.Offset().ending(e.of(inv.Target)), e.err
	case <-ctx.Done():
		return Ending{}, context.Cause(ctx)
	}
}

// Find reads an invocation's record; ErrNotFound if there is none. It is linearizable. The
// caller owns the record; its times are wall-clock times.
func (p *Partition) Find(ctx context.Context, id ids.Invocation) (*machine.Invocation, error) {
	var inv *machine.Invocation
	l, err := p.readThen(ctx, linearizable, func(view *store.View) (err error) {
		if inv, err = view.Record(id); err != nil {
			err = fmt.Errorf("read %s: %w", id, err)
		}
		return err
	}, func(l *leadership, view *store.View) error {
		if inv == nil || inv.Expired(l.clock.Millis()) {
			return ErrNotFound
		}
		if err := view.FetchResult(ctx, inv); err != nil {
			return fmt.Errorf("read the result of %s: %w", id, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	l.clock.Offset().invocation(inv)
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
	if len(d.Messages) == 0 && (o.Code == machine.OK || o.Code == machine.Existing) {
		if o.Code == machine.OK {
			l.log.Warn("messages that this partition had received were lost with its data", "from_partition", d.From, "before_seq", d.FirstSeq)
		}
		return nil
	}
	if o.Code != machine.OK {
		return fmt.Errorf("partition %d rejected messages from %d on of partition %d: outcome %v", p.id, d.FirstSeq, d.From, o.Code)
	}
	return nil
}

func (p *Partition) leader() (*leadership, error) {
	if l := p.role.leadership(); l != nil {
		return l, nil
	}
	return nil, ErrNotLeader
}

// submit proposes a command. done is called once with its outcome, on a goroutine that it
// must not block; it is not called if submit fails. A command that the cluster's feature
// level does not include fails with a *feature.Error.
func (l *leadership) submit(c machine.Command, done func(machine.Outcome, error)) error {
	return l.submitAs(l.ctx, c, submission{}, done)
}

// submission has options for proposing a command.
type submission struct {
	copies   int  // approximate number of bytes that the command copies within the tables
	deferred bool // wait for the next command, up to the limit of Proposer.SubmitDeferred
}

// submitAs is submit with options. A large command may be dropped, with an error, if ctx ends before it
// is proposed.
func (l *leadership) submitAs(ctx context.Context, c machine.Command, how submission, done func(machine.Outcome, error)) error {
	size, copies := codec.CommandSize(c), how.copies
	p := l.priorityOf(c, size)
	if inv, ok := c.(*machine.Invoke); ok {
		l.recentIDs.mu.Lock()
		defer l.recentIDs.mu.Unlock()
		c = l.recentIDs.markedLocked(inv, p)
	}
	switch {
	case p == bulk:
		return proposeError(l.submitBulk(ctx, c, size+copies, done))
	case p == yielding && !how.deferred:
		return proposeError(l.submitYielding(c, size, copies, done))
	}
	if size >= bulkCommand && !l.proposer.HasRoom(size+copies, false) {
		return raftgroup.ErrOverloaded // without encoding it for each try
	}
	data, err := l.encode(c)
	if err != nil {
		return err
	}
	completion := raftgroup.CompletionFunc[machine.Outcome](done)
	if how.deferred {
		return proposeError(l.proposer.SubmitDeferred(data, completion))
	}
	return proposeError(l.proposer.Submit(data, copies, completion))
}

// checkCommandSize rejects a command larger than the configured limits allow. Messages of an outbox are
// exempt: the first release accepted larger ones, and they must be delivered. They are sent
// once every node can receive a log entry that contains one.
func checkCommandSize(level feature.Level, c machine.Command, size int) error {
	most := limits.Command
	if _, stored := c.(*machine.Deliver); stored && level >= feature.Level2 {
		most = limits.StoredCommand
	}
	if size <= most {
		return nil
	}
	return fmt.Errorf("%w: command has %d bytes, the limit is %d", raftgroup.ErrTooLarge, size, most)
}

// propose proposes a command and waits until it is applied.
func (l *leadership) propose(ctx context.Context, c machine.Command) (machine.Outcome, error) {
	type response struct {
		outcome machine.Outcome
		err     error
	}
	copies, refusal, err := l.copies(c)
	if err != nil || refusal != machine.OK {
		return machine.Outcome{Code: refusal}, err
	}
	responses := make(chan response, 1)
	if err := l.submitAs(ctx, c, submission{copies: copies}, func(o machine.Outcome, err error) { responses <- response{o, proposeError(err)} }); err != nil {
		return machine.Outcome{}, err
	}
	select {
	case r := <-responses:
		if r.err == nil && r.outcome.Code == machine.Stale {
			return r.outcome, ErrNotLeader
		}
		return r.outcome, r.err
	case <-ctx.Done():
		return machine.Outcome{}, fmt.Errorf("%w: %w", raftgroup.ErrUnknownOutcome, context.Cause(ctx))
	}
}
