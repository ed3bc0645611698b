package partition

import (
	"context"
	"sync/atomic"
	"time"

	"platform/flowcontrol"
	"platform/partition/machine"
)

// overloadPause is the delay before a rejected proposal is retried.
const overloadPause = 5 * time.Millisecond

// The functions below connect timers, rules and outbox, which know neither Raft nor the tables, to
// the leadership.

// firing bounds the FireTimers commands in progress.
type firing struct {
	slots  chan struct{} // a slot for each
	failed atomic.Bool   // the last one
}

func newFiring() *firing { return &firing{slots: make(chan struct{}, maxFiring)} }

// loadTimers reads a range of the timer table.
func (l *leadership) loadTimers(from, before machine.Timer) (due []machine.Timer, more bool, err error) {
	view := l.p.tables.View()
	defer view.Close()
	return view.Timers(from, before, timerLimit, timerLimitBytes)
}

// fireTimers proposes due timers. It waits for an outcome only if maxFiring commands are in
// progress.
func (l *leadership) fireTimers(ctx context.Context, due []machine.Timer) error {
	select {
	case l.firing.slots <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	done := func(o machine.Outcome, err error) {
		if l.firing.failed.Store(err != nil); err != nil {
			l.timers.requeue(due)
		}
		<-l.firing.slots
	}
	for l.firing.failed.Load() {
		if !pause(ctx, overloadPause) {
			return context.Cause(ctx)
		}
		l.firing.failed.Store(false)
	}
	if err := l.submit(&machine.FireTimers{Timers: due}, done); err != nil {
		done(machine.Outcome{}, err)
	}
	return nil
}

// newRules returns what keeps the rule book of the partition current; nil if there are no rules.
func (l *leadership) newRules() *ruleSyncer {
	if l.p.cfg.Flow.Rules == nil {
		return nil
	}
	return newRuleSyncer(l.p.cfg.Flow.Rules, l.knownRules, l.proposeRules)
}

// knownRules returns the version of the partition's rule book.
func (l *leadership) knownRules() (uint32, error) {
	view := l.p.tables.View()
	defer view.Close()
	meta, err := view.Meta()
	return meta.Rules, err
}

func (l *leadership) proposeRules(ctx context.Context, b *flowcontrol.Book) error {
	_, err := l.propose(ctx, &machine.SetRules{Book: b})
	return err
}

func (l *leadership) newOutbox() *outbox {
	return newOutbox(outboxConfig{
		self: l.p.id, count: l.p.cfg.Count,
		read: l.readOutbox, deliver: l.p.cfg.Deliver, acknowledge: l.acknowledge,
		log: l.log, memory: l.p.cfg.OutboxMemory,
	})
}

func (l *leadership) readOutbox(to uint32, from uint64, count, bytes int) (first uint64, messages []machine.Message, more bool, err error) {
	view := l.p.tables.View()
	defer view.Close()
	return view.Outgoing(to, from, count, bytes)
}

// acknowledge proposes to delete delivered messages. If that fails after it was proposed, the next
// leader delivers and acknowledges them again.
func (l *leadership) acknowledge(to uint32, upto uint64) error {
	ignore := func(machine.Outcome, error) {}
	return l.submit(&machine.Acknowledge{To: to, Upto: upto}, ignore)
}
