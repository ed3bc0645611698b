package partition

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"platform/internal/failpoint"
	"platform/internal/feature"
	"platform/internal/raftgroup"
	"platform/internal/target"
	"platform/partition/attempts"
	"platform/partition/codec"
	"platform/partition/machine"
)

var (
	// ErrNotLeader means that this replica does not lead its partition, or no longer does;
	// nothing was proposed.
	ErrNotLeader = raftgroup.ErrNotLeader

	errDeposed  = fmt.Errorf("leadership lost: %w", raftgroup.ErrUnknownOutcome)
	errOutdated = errors.New("a newer leader epoch has been announced")
	errHandOver = fmt.Errorf("leadership is being handed over: %w", ErrNotLeader)
	// errRecoveryLevel starts the leadership again, on the same replica.
	errRecoveryLevel = fmt.Errorf("the feature level allows to announce a recovery: %w", ErrNotLeader)
)

// leadership is the state of a replica while it leads, from the announcement of an epoch to
// its end. The epoch is one more than the last one in the tables. It is not Raft's term,
// because a leader that abandoned its duties may resume them within the same term.
type leadership struct {
	p       *Partition
	log     *slog.Logger
	ctx     context.Context //nolint:containedctx // ends with the leadership
	abandon context.CancelCauseFunc
	left    chan struct{} // closed once it has ended and its attempts are aborted

	epoch uint64
	term  uint64 // Raft's; everything committed before it has been applied here
	// previousLevel is the highest feature level at which previous leaders wrote.
	previousLevel feature.Level

	// Proposing.
	clock         *clock
	proposer      *raftgroup.Proposer[machine.Outcome]
	recentIDs     *recentIDs
	large         *largeCommands
	bulkProgress  pendingCounts // bulk commands, which the progress that follows must not overtake
	yieldProgress pendingCounts // the same for yielding commands
	unapplied     pendingCounts // bytes of state that is set, so that it may not be in the tables yet

	// Receivers of effects.
	waiters *waiters
	session attempts.Session
	timers  *timers
	outbox  *outbox

	firing *firing
	rules  *ruleSyncer // nil if there are no rules
	lister *lister
}

// newLeadership returns a leadership that has proposed nothing and has started nothing.
func (p *Partition) newLeadership(ctx context.Context, term uint64) (*leadership, error) {
	previous, err := p.beforeLeading(ctx)
	if err != nil {
		return nil, err
	}
	l := &leadership{
		p: p, log: p.log.With("leader_epoch", previous.Epoch+1), left: make(chan struct{}),
		epoch: previous.Epoch + 1, term: term, previousLevel: previous.Level,
		clock: newClock(previous.Clock, p.cfg.Clock.Now), recentIDs: newRecentIDs(), large: newLargeCommands(),
		waiters: newWaiters(), firing: newFiring(),
	}
	settings := p.cfg.Proposals
	settings.Seal = l.seal
	if l.proposer, err = raftgroup.NewProposer[machine.Outcome](p.group, settings); err != nil {
		return nil, err
	}
	l.ctx, l.abandon = context.WithCancelCause(ctx)
	// From here on l is passed on. It is complete before any of these runs or has an attempt, see serve.
	l.timers = newTimers(l.clock.Millis, l.loadTimers, l.fireTimers)
	l.outbox = l.newOutbox()
	l.rules = l.newRules()
	l.lister = newLister(p.tables, p.cfg.ListingMemory, l.ctx.Done())
	l.session = p.cfg.Invoker.Open(attemptSource{l})
	return l, nil
}

// beforeLeading returns what previous leaders have left, once the clock is known. It fails if this server must
// not lead with its configuration, or its version.
func (p *Partition) beforeLeading(ctx context.Context) (codec.Meta, error) {
	previous, err := p.previous()
	if err == nil && p.cfg.Flow.toBeChecked() {
		err = p.checkFlowControl()
	}
	if err == nil {
		// This server must not continue a log at a level that it does not support.
		err = feature.CheckCluster(max(previous.Level, feature.Level1), time.Time{})
	}
	if err != nil {
		return codec.Meta{}, err
	}
	waitCtx, cancel := context.WithTimeout(ctx, clockTimeout)
	defer cancel()
	p.cfg.Clock.AwaitNow(waitCtx)
	return previous, nil
}

// previous returns the newest announced epoch and the time of the log. The caller has been
// elected and has applied everything of previous leaders.
func (p *Partition) previous() (codec.Meta, error) {
	view := p.tables.View()
	defer view.Close()
	return view.Meta()
}

// runLeader carries out the leader's duties until ctx ends, which is when leadership is
// lost. An error gives up leadership.
func (p *Partition) runLeader(ctx context.Context, term uint64) error {
	<-p.opened
	l, err := p.newLeadership(ctx, term)
	if err != nil {
		return fmt.Errorf("partition %d: %w", p.id, err)
	}
	defer l.abandon(nil)
	g, ctx := errgroup.WithContext(l.ctx)
	p.role.begin(l)
	g.Go(func() error { return l.proposer.Run(ctx) })
	g.Go(func() error { return l.serve(ctx, g) })
	g.Go(func() error { // the first thing at the end: no more effects, no more attempts
		<-ctx.Done()
		failpoint.Pause(failpoint.Leaving)
		l.end()
		return nil
	})
	err = g.Wait()
	if errors.Is(err, context.Canceled) {
		err = context.Cause(l.ctx) // abandoned, or ctx ended
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("partition %d: lead: %w", p.id, err)
	}
	return nil
}

// serve announces the epoch and starts the leader's duties.
func (l *leadership) serve(ctx context.Context, g *errgroup.Group) error {
	if err := l.announce(ctx); err != nil {
		return fmt.Errorf("announce epoch %d: %w", l.epoch, err)
	}
	if l.rules != nil {
		g.Go(func() error { return l.rules.Run(ctx) })
	}
	g.Go(func() error { return l.timers.Run(ctx) })
	g.Go(func() error { return l.outbox.Run(ctx) })
	g.Go(func() error { return l.lister.Run(ctx) })
	g.Go(func() error { return l.compareReplicas(ctx) })
	g.Go(func() error { return l.awaitRecoveryLevel(ctx) })
	if l.p.cfg.Streams != nil {
		g.Go(func() error { return l.p.cfg.Streams.Lead(ctx, &StreamOwner{l}) })
	}
	l.p.role.changed.Send() // of the entry of this leadership
	l.log.Debug("leading partition")
	return l.resume(ctx)
}

// announce proposes the epoch and returns once it is applied here: from then on the tables
// reflect the whole log and older leaders are fenced.
func (l *leadership) announce(ctx context.Context) error {
	failpoint.Pause(failpoint.Announcement)
	lead := &machine.Lead{Epoch: l.epoch, Node: l.p.cfg.Node, Flow: l.p.cfg.Flow.Enable}
	lead.Recovered = l.level() >= feature.Level4 && l.p.group.Recovered()
	o, err := l.propose(ctx, lead)
	if err == nil && o.Code != machine.OK {
		err = errOutdated
	}
	if err != nil || !lead.Recovered {
		return err
	}
	l.log.Warn("partition continues after a recovery; sequence numbers that may have been used are skipped")
	return l.p.group.EndRecovery()
}

// recoveryCheck is how often a recovered leader checks the feature level.
const recoveryCheck = time.Second

// awaitRecoveryLevel starts the leadership again once the feature level allows a recovered
// replica to announce that. Only this replica knows that it was recovered.
func (l *leadership) awaitRecoveryLevel(ctx context.Context) error {
	if !l.p.group.Recovered() {
		return nil
	}
	tick := time.NewTicker(recoveryCheck)
	defer tick.Stop()
	for l.level() < feature.Level4 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
	return errRecoveryLevel
}

// end ends the reception of effects, fails waiting callers, and aborts attempts.
func (l *leadership) end() {
	l.p.role.leave(l)
	l.waiters.close(errDeposed)
	l.session.Close()
	close(l.left)
	l.log.Debug("no longer leading partition")
}

// handOver ends the leadership before a successor is elected: an attempt that continued
// until the successor is known could start steps that the successor's attempt has
// completed. If no successor is elected, the leadership starts again.
func (p *Partition) handOver(ctx context.Context) {
	l := p.role.latest.Load()
	if l == nil {
		return
	}
	l.abandon(errHandOver)
	select {
	case <-l.left:
	case <-ctx.Done():
	}
}

// handle carries out effects. It is called on the apply goroutine, so it must not block.
func (l *leadership) handle(effects []machine.Effect) {
	for _, e := range effects {
		switch e := e.(type) {
		case *machine.Run:
			l.p.observer.started(e.Invocation)
			l.session.Run(e)
		case *machine.Notify:
			l.session.Notify(e)
		case *machine.Abort:
			l.session.Abort(e)
		case *machine.Yield:
			l.session.Yield(e)
		case *machine.Hasten:
			l.session.Hasten(e)
		case *machine.Finish:
			l.p.observer.ended(e)
			if e.Target.Type == target.StateUpdate {
				l.session.StateReplaced(e.Target.Object())
			}
			l.waiters.finish(e.ID, ending{result: e.Result, expiresAt: e.ExpiresAt, request: e.Request})
		case *machine.SetTimer:
			l.timers.set(e.Timer)
		case *machine.Send:
			l.outbox.send(e)
		}
	}
}

// resume starts attempts for invocations that previous leaders left running. Effects of new
// commands may refer to the same attempts; the session starts each once.
func (l *leadership) resume(ctx context.Context) error {
	view := l.p.tables.View()
	defer view.Close()
	for inv, err := range view.Live() {
		if err != nil {
			return fmt.Errorf("resume running invocations: %w", err)
		}
		if ctx.Err() != nil {
			return nil
		}
		if inv.Status == machine.Invoked {
			l.p.observer.traceStart(inv) // the previous leader may have ended before it exported this
			l.session.Run(machine.RunOf(inv))
		}
	}
	return nil
}

// seal encodes a log entry from a batch of commands.
func (l *leadership) seal(commands [][]byte) ([]byte, error) {
	return codec.Seal(l.level(), l.epoch, l.clock.Millis(), commands), nil
}

// level is the feature level at which this leader writes. It never decreases: a node that
// learns of the cluster's level later than previous leaders continues at theirs.
func (l *leadership) level() feature.Level { return max(l.previousLevel, l.p.cfg.Level()) }
