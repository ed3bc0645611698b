package partition

import (
	"context"
	"errors"

	"platform/internal/errcode"
	"platform/internal/ids"
	"platform/internal/raftgroup"
	"platform/partition/attempts"
	"platform/partition/machine"
	"platform/partition/store"
)

// attemptSource gives the attempts of a leadership access to the partition.
type attemptSource struct{ l *leadership }

var _ attempts.Partition = attemptSource{}

// Load implements attempts.Partition.
func (a attemptSource) Load(id ids.Invocation, attempt uint64, most int, stateLimit func(*machine.Invocation) (int, error)) (*attempts.Replay, error) {
	view := a.l.p.tables.View()
	defer view.Close()
	inv, err := invoked(view, id, attempt)
	if err != nil {
		return nil, err
	}
	limit, err := stateLimit(inv)
	if err != nil {
		return nil, err
	}
	r := &attempts.Replay{Invocation: inv, ReadAt: a.l.clock.Millis()}
	size := 0
	if r.Entries, size, err = view.Journal(id, inv.Length, most); err != nil {
		return nil, err
	}
	if r.Entries == nil {
		return nil, &attempts.TooLargeError{Size: size}
	}
	r.State, r.Partial, err = eagerState(view, inv.Target, limit)
	return r, err
}

// invoked reads an invocation; attempts.ErrGone if this is no longer its current attempt.
func invoked(view *store.View, id ids.Invocation, attempt uint64) (*machine.Invocation, error) {
	inv, err := view.Invocation(id)
	if err == nil && (inv == nil || inv.Status != machine.Invoked || inv.Attempt != attempt) {
		err = attempts.ErrGone
	}
	return inv, err
}

// eagerState reads the state that is sent with the start of an attempt.
func eagerState(view *store.View, t machine.Target, limit int) (state []machine.StateEntry, partial bool, err error) {
	if limit <= 0 || !t.Type.Keyed() {
		return nil, true, nil
	}
	state, complete, err := view.Values(t.Object(), limit)
	return state, !complete, err
}

// State implements attempts.Partition.
func (a attemptSource) State(o machine.Object, limit int) ([]machine.StateEntry, bool, error) {
	state, complete, err := a.l.p.tables.Values(o, limit)
	return state, !complete, err
}

// ValueSize implements attempts.Partition.
func (a attemptSource) ValueSize(o machine.Object, key []byte) (int, error) {
	view := a.l.p.tables.View()
	defer view.Close()
	return view.ValueSize(o, key)
}

// StateSizes implements attempts.Partition.
func (a attemptSource) StateSizes(o machine.Object, visit func(key []byte, size int)) error {
	view := a.l.p.tables.View()
	defer view.Close()
	return view.StateSizes(o, visit)
}

// Propose implements attempts.Partition. While the proposer is overloaded it blocks, which
// slows the handler down.
func (a attemptSource) Propose(p *machine.Progress, done func(machine.Outcome, error)) {
	parts, err := a.l.splitProgress(a.l.timed(p))
	if err != nil {
		a.abandonOnError(done)(machine.Outcome{}, err)
		return
	}
	done = a.l.countUnapplied(p, done)
	if len(parts) > 1 {
		done = (&combinedOutcome{left: len(parts), done: done}).add
	}
	report := a.abandonOnError(done)
	for i := range parts {
		err := a.submit(&parts[i], report)
		if err == nil {
			continue
		}
		for range parts[i:] { // the journal must not have gaps
			report(machine.Outcome{}, err)
		}
		return
	}
}

// abandonOnError returns done, preceded by the end of the leadership if the proposal failed:
// the attempt stops then, and only a new leadership starts another. Progress that is too
// large fails the attempt only.
func (a attemptSource) abandonOnError(done func(machine.Outcome, error)) func(machine.Outcome, error) {
	return func(o machine.Outcome, err error) {
		if err != nil && !errors.Is(err, raftgroup.ErrTooLarge) {
			a.l.abandon(err)
		}
		done(o, err)
	}
}

// submit proposes a part of an attempt's progress. If it returns an error, nothing was
// proposed and report is not called.
func (a attemptSource) submit(p *progressPart, report func(machine.Outcome, error)) error {
	for {
		err := a.l.submitAs(a.l.ctx, p.Progress, submission{copies: p.copies}, report)
		if errors.Is(err, raftgroup.ErrOverloaded) && pause(a.l.ctx, overloadPause) {
			continue
		}
		if errors.Is(err, raftgroup.ErrTooLarge) {
			err = errcode.New(errcode.RT0003, "cannot store the messages of the handler: %w", err)
		}
		return err
	}
}

// Confirm implements attempts.Partition. It uses a log entry, since responses that were in
// transit when the process was paused do not prove current leadership. A sole voter needs
// no proof: no other replica can lead, even if its disk is slow.
func (a attemptSource) Confirm(ctx context.Context) error {
	var err error
	if !a.l.p.group.SoleVoter() {
		err = a.l.p.group.Barrier(ctx)
	}
	if err == nil {
		err = context.Cause(a.l.ctx)
	}
	if err != nil {
		a.l.abandon(err)
		select {
		case <-a.l.left:
		case <-ctx.Done():
		}
	}
	return err
}
