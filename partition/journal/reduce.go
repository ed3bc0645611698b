package journal

// Reduce returns f without what is settled, apart from signals that may occur repeatedly: which
// of these a handler has consumed is not known, so they stay, and their ancestors do. Everything
// else that is left is pending, so that later only new notifications need to be evaluated. once
// returns the state of the notifications that occur once. Reduce must not be called if f is over.
// f itself is not modified.
func (f *Future) Reduce(once func(NotificationID) Settled) *Future {
	rest, _, _ := f.reduce(once)
	return rest
}

// reduce also returns whether the node is steady, which means that no repeatable signal is below
// it, and then its result.
func (f *Future) reduce(once func(NotificationID) Settled) (rest *Future, steady bool, result Settled) {
	own, left := Future{Combinator: f.Combinator}, &Future{Combinator: f.Combinator}
	steady = true
	var ofOwn, ofNested tally
	f.ownLeaves(func(id NotificationID) bool {
		if id.Repeats() {
			left.add(id)
			steady = false
			return true
		}
		s := once(id)
		ofOwn.add(s)
		if s == Pending {
			own.add(id)
		}
		return true
	})
	settled := make([]Settled, 0, len(f.Nested)) // of steady nested nodes
	for i := range f.Nested {
		inner, innerSteady, s := f.Nested[i].reduce(once)
		switch {
		case !innerSteady:
			steady = false
			left.Nested = append(left.Nested, *inner)
		case s == Pending:
			ofNested.add(s)
			left.Nested = append(left.Nested, *inner)
		default:
			ofNested.add(s)
			settled = append(settled, s)
		}
	}
	if steady {
		all := ofOwn.with(ofNested)
		left.Completions, left.Signals = own.Completions, own.Signals
		return left, true, all.result(f.Combinator, wakeNow)
	}
	if ofOwn != (tally{}) {
		// Apart from the signals beside them, so that their own result can be kept.
		if s := ofOwn.result(f.Combinator, wakeNow); s == Pending {
			left.Nested = append(left.Nested, own)
		} else {
			settled = append(settled, s)
		}
	}
	for _, s := range settled {
		if !f.Combinator.ignores(s) {
			left.Nested = append(left.Nested, constant(s))
		}
	}
	return left, false, Pending
}

// with returns the summary of the children of both.
func (t tally) with(other tally) tally {
	return tally{
		t.pending || other.pending, t.succeeded || other.succeeded, t.failed || other.failed,
		t.either || other.either, t.wakeNow || other.wakeNow,
	}
}

// ignores reports whether a child with that result can be left out beside others.
func (c Combinator) ignores(s Settled) bool {
	switch c {
	case CombineAllCompleted:
		return s != wakeNow
	case CombineFirstSucceededOrAllFailed:
		return s == Failed
	case CombineAllSucceededOrFirstFailed:
		return s == Succeeded
	}
	return false
}

// constant returns a future without leaves that has a result.
func constant(s Settled) Future {
	succeeded, failed := Future{Combinator: CombineAllCompleted}, Future{Combinator: CombineFirstSucceededOrAllFailed}
	switch s {
	case Succeeded:
		return succeeded
	case Failed:
		return failed
	}
	return Future{Combinator: CombineUnknown, Nested: []Future{succeeded}} // either
}
