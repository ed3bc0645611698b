package partition

import (
	"context"
	"time"

	"platform/flowcontrol"
	"platform/partition/machine"
)

// overloadPause is the delay before a rejected proposal is retried.
const overloadPause = 5 * time.Millisecond

// The functions below connect timers, rules and outbox, which know neither Raft nor the tables, to
// the leadership.

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
	case l.fireSlots <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	done := func(o machine.Outcome, err error) {
		if l.fireFailed.Store(err != nil); err != nil {
			l.timers.requeue(due)
		}
		<-l.fireSlots
	}
	for l.fireFailed.Load() {
		if !pause(ctx, overloadPause) {
			return context.Cause(ctx)
		}
		l.fireFailed.Store(false)
	}
	if err := l.submit(&machine.FireTimers{Timers: due}, done); err != nil {
		done(machine.Outcome{}, err)
	}
	return nil
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

func (l *leadership) readOutbox(to uint32, from uint64, count, bytes int) (first uint64, messages []machine.Message, more bool, err error) {
	view := l.p.tables.View()
	defer view.Close()
	return view.Outgoing(to, from, count, bytes)
}

// acknowledge proposes to delete delivered messages. If that fails, the next leader
// delivers and acknowledges them again.
func (l *leadership) acknowledge(to uint32, upto uint64) {
	ignore := func(machine.Outcome, error) {}
	if err := l.submit(&machine.Acknowledge{To: to, Upto: upto}, ignore); err != nil {
		l.log.Debug("acknowledgement not proposed", "to_partition", to, "err", err)
	}
}
