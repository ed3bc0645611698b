package partition

import (
	"context"
	"fmt"

	"platform/flowcontrol"
	"platform/internal/feature"
	"platform/partition/machine"
	"platform/partition/store"
)

// Operate proposes an operation and returns once it is applied. Of a *machine.PauseQueue
// only the ID is required. The outcome says whether it was refused.
func (p *Partition) Operate(ctx context.Context, c machine.Operation) (machine.Outcome, error) {
	l, err := p.leader()
	if err != nil {
		return machine.Outcome{}, err
	}
	if pause, ok := c.(*machine.Pause); ok {
		c = l.pauseOf(pause)
	}
	if queue, ok := c.(*machine.PauseQueue); ok && queue.Queue == (flowcontrol.QueueKey{}) {
		key, err := p.queueOf(queue.ID)
		if err != nil {
			return machine.Outcome{}, err
		}
		named := *queue // repeated by the caller, maybe elsewhere
		if named.Queue = key; l.level() < feature.Level4 {
			named.By, named.Reason = "", ""
		}
		c = &named
	}
	o, err := l.propose(ctx, c)
	if resume, ok := c.(*machine.Resume); ok && err == nil && o.Code == machine.OK && l.session.Settle(ctx, resume.Target) {
		// The invocation may have paused after all: its last attempt had failed, which was
		// not in the log yet.
		if again, err := l.propose(ctx, c); err != nil || again.Code == machine.OK {
			return again, err
		}
	}
	return o, err
}

// pauseOf adds what the leader knows to a pause, and removes what the log's level does not
// include.
func (l *leadership) pauseOf(requested *machine.Pause) *machine.Pause {
	c := *requested // the caller may retry it, possibly elsewhere
	if attempts, known := l.p.cfg.Invoker.Status(c.Target); known && c.Failure == nil {
		c.Failure = attempts.LastFailure
	}
	if l.level() < feature.Level3 {
		c.By = ""
	}
	if l.level() < feature.Level4 {
		c.Reason = ""
	}
	return &c
}

// State reads the state of an object. It is linearizable.
func (p *Partition) State(ctx context.Context, o machine.Object, limit int) (entries []machine.StateEntry, complete bool, err error) {
	_, err = p.read(ctx, linearizable, func(view *store.View) (err error) {
		if entries, complete, err = view.Values(o, limit); err != nil {
			err = fmt.Errorf("read state of %v: %w", o, err)
		}
		return err
	})
	if err != nil {
		return nil, false, err
	}
	return entries, complete, nil
}
