package partition

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"platform/internal/feature"
	"platform/internal/raftgroup"
	"platform/partition/attempts"
	"platform/partition/codec"
	"platform/partition/machine"
)

var (
	// ErrNotLeader says that this replica does not lead its partition (any more);
	// nothing was proposed.
	ErrNotLeader = raftgroup.ErrNotLeader

	errDeposed  = fmt.Errorf("leadership lost: %w", raftgroup.ErrUnknownOutcome)
	errOutdated = errors.New("a newer leader epoch is known")
	errHandOver = fmt.Errorf("leadership is being handed over: %w", ErrNotLeader)
)

// leadership is what a replica does while it leads, from one epoch's announcement
// to its end. The epoch is one more than the last one in the tables. It is not
// Raft's term, because a leader that abandoned its duties may take them up again
// within the same term.
type leadership struct {
	p       *Partition
	ctx     context.Context // ends with the leadership
	abandon context.CancelCauseFunc
	left    chan struct{} // closed once it has ended and its attempts are cut
	epoch   uint64
	term    uint64 // Raft's, in which everything committed before has been applied here
	// formerLevel is the highest feature level that former leaders wrote at.
	formerLevel feature.Level
	clock       *clock
	proposer    *raftgroup.Proposer[machine.Outcome]
	session     attempts.Session
	waiters     *waiters
	timers      *timers
	firing      chan struct{} // one element for each FireTimers command under way
	misfired    atomic.Bool   // the last one failed
	outbox      *outbox
	rules       *ruleKeeper // nil if there are no rules
	log         *slog.Logger
}

func (p *Partition) newLeadership(ctx context.Context, term uint64) (*leadership, error) {
	former, err := p.former()
	if err == nil && p.flow && (p.enabled == nil || !p.enabled()) {
		err = p.mayHaveFlow()
	}
	if err == nil {
		// What this server does not support it must not continue.
		err = feature.CheckCluster(max(former.Level, feature.Level1), time.Time{})
	}
	if err != nil {
		return nil, err
	}
	patience, cancel := context.WithTimeout(ctx, clockTimeout)
	p.clock.AwaitNow(patience)
	cancel()
	l := &leadership{
		p: p, epoch: former.Epoch + 1, term: term, formerLevel: former.Level, clock: newClock(former.Clock, p.clock.Now), waiters: newWaiters(), firing: make(chan struct{}, timerFlight), left: make(chan struct{}),
		log: p.log.With("leader_epoch", former.Epoch+1),
	}
	l.ctx, l.abandon = context.WithCancelCause(ctx)
	settings := p.batch
	settings.Seal = l.seal
	l.proposer, err = raftgroup.NewProposer[machine.Outcome](p.group, settings)
	if err != nil {
		return nil, err
	}
	l.timers = newTimers(l.clock.Millis, l.loadTimers, l.fireTimers)
	l.outbox = newOutbox(p.id, p.count)
	if p.outboxMemory != nil {
		l.outbox.memory = p.outboxMemory
	}
	l.outbox.read, l.outbox.deliver, l.outbox.acknowledge, l.outbox.log = l.readOutbox, p.deliver, l.acknowledge, l.log
	if p.rules != nil {
		l.rules = newRuleKeeper(p.rules)
		l.rules.known, l.rules.propose = l.knownRules, l.proposeRules
	}
	l.session = p.invoker.Open(attemptSource{l})
	return l, nil
}

// former has the newest epoch that was announced and the time of the log. Whoever was
// elected has applied everything of former leaders before it asks.
func (p *Partition) former() (codec.Meta, error) {
	view := p.tables.View()
	defer view.Close()
	return view.Meta()
}

// runLeader does the leader's duties until ctx ends, which is when leadership is
// lost. An error gives leadership up.
func (p *Partition) runLeader(ctx context.Context, term uint64) error {
	<-p.opened
	l, err := p.newLeadership(ctx, term)
	if err != nil {
		return fmt.Errorf("partition %d: %w", p.id, err)
	}
	defer l.abandon(nil)
	g, ctx := errgroup.WithContext(l.ctx)
	p.latest.Store(l)
	p.pending.Store(l) // effects reach it from its announcement on
	g.Go(func() error { return l.proposer.Run(ctx) })
	g.Go(func() error { return l.serve(ctx, g) })
	g.Go(func() error { // first thing when it ends: no more effects, no more attempts
		<-ctx.Done()
		p.leave(l)
		return nil
	})
	err = g.Wait()
	if errors.Is(err, context.Canceled) {
		err = context.Cause(l.ctx) // abandoned, or simply over
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("partition %d: lead: %w", p.id, err)
	}
	return nil
}

// serve announces the epoch and starts what a leader owes.
func (l *leadership) serve(ctx context.Context, g *errgroup.Group) error {
	if err := l.announce(ctx); err != nil {
		return fmt.Errorf("announce epoch %d: %w", l.epoch, err)
	}
	if l.rules != nil {
		g.Go(func() error { return l.rules.Run(ctx) })
	}
	g.Go(func() error { return l.timers.Run(ctx) })
	g.Go(func() error { return l.outbox.Run(ctx) })
	g.Go(func() error { return l.compareReplicas(ctx) })
	l.p.ready.announce(l)
	l.p.changed.give()
	l.log.Debug("leading partition")
	return l.resume(ctx)
}

// announce proposes the epoch and returns once it is applied here: from then on
// all of the log's past is in the tables and older leaders are refused.
func (l *leadership) announce(ctx context.Context) error {
	o, err := l.propose(ctx, &machine.Lead{Epoch: l.epoch, Node: l.p.node, Flow: l.p.flow})
	if err == nil && o.Code != machine.OK {
		err = errOutdated
	}
	return err
}

// enter makes the leadership that announced epoch, if it is this replica's, the
// one that gets effects. It is called while the announcement, an entry of the given
// term, is applied. Replicas that do not know of each other announce the same epoch; a
// term has one leader.
func (p *Partition) enter(epoch, term uint64) {
	p.turn.Lock()
	defer p.turn.Unlock()
	l := p.pending.Load()
	if l != nil && (l.epoch != epoch || l.term != term) {
		l = nil
	}
	p.lead.Store(l)
}

// leave ends a leadership: no more effects, callers are told, attempts are cut.
func (p *Partition) leave(l *leadership) {
	p.turn.Lock()
	p.pending.CompareAndSwap(l, nil)
	p.lead.CompareAndSwap(l, nil)
	p.turn.Unlock()
	p.ready.withdraw()
	p.changed.give()
	l.waiters.close(errDeposed)
	l.session.Close()
	close(l.left)
	l.log.Debug("no longer leading partition")
}

// handOver ends the leadership before a successor is elected: an attempt that went on
// until the successor is heard of could begin steps that the successor's attempt has
// completed. The leadership begins anew if nobody is elected.
func (p *Partition) handOver(ctx context.Context) {
	l := p.latest.Load()
	if l == nil {
		return
	}
	l.abandon(errHandOver)
	select {
	case <-l.left:
	case <-ctx.Done():
	}
}

// handle carries out effects. It is called on the goroutine that applies, so
// nothing here may block.
func (l *leadership) handle(effects []machine.Effect) {
	for _, e := range effects {
		switch e := e.(type) {
		case *machine.Run:
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
			l.waiters.finish(e.ID, ending{result: e.Result, expiresAt: e.ExpiresAt})
		case *machine.SetTimer:
			l.timers.set(e.Timer)
		case *machine.Send:
			l.outbox.send(e)
		}
	}
}

// resume starts attempts for what earlier leaders left running. Effects of new
// commands may name the same attempts; the session takes each once.
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
			l.session.Run(machine.RunOf(inv))
		}
	}
	return nil
}

// seal makes a log entry of a batch of commands.
func (l *leadership) seal(commands [][]byte) ([]byte, error) {
	return codec.Seal(l.level(), l.epoch, l.clock.Millis(), commands), nil
}

// level is the feature level of what this leader writes. It never falls: a node that
// learns of the cluster's level later than former leaders did goes on at theirs.
func (l *leadership) level() feature.Level { return max(l.formerLevel, l.p.level()) }
