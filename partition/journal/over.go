package journal

import "iter"

// wakeNow is the inner result of a node that cannot be decided without running the
// handler: it makes the whole await over.
const wakeNow Settled = 0xFF

// Over reports whether what f waits for has happened, by the service protocol's
// wake-up rule. settled tells how a notification stands.
//
// Waking a handler too early costs an attempt, since it looks again and suspends
// again; waking it too late hangs the invocation. So wherever the outcome depends
// on an order that is not known here, the answer is true.
func (f *Future) Over(settled func(NotificationID) Settled) bool {
	return f.settle(settled, wakeNow) != Pending
}

// Certain reports whether f is over whatever the order was in which the notifications
// came.
func (f *Future) Certain(settled func(NotificationID) Settled) bool {
	return f.settle(settled, Pending) != Pending
}

// Flat is the set of everything in f that is pending. It is over as soon as anything
// of it comes.
func (f *Future) Flat(settled func(NotificationID) Settled) *Future {
	flat, seen := &Future{Combinator: CombineFirstCompleted}, map[NotificationID]bool{}
	for id := range f.Leaves() {
		if !seen[id] && settled(id) == Pending {
			flat.add(id)
		}
		seen[id] = true
	}
	return flat
}

// Prune returns f without the parts that are done, so that later only new
// notifications need to be looked at: whatever is left is pending. It also keeps,
// in effect, which child of a race was first. It must not be called when f is over.
// f itself stays as it is.
func (f *Future) Prune(settled func(NotificationID) Settled) *Future {
	rest, _ := f.prune(settled)
	return rest
}

// prune also returns the result of the node, so that each leaf is looked at once,
// however deep it is.
func (f *Future) prune(settled func(NotificationID) Settled) (*Future, Settled) {
	rest := &Future{Combinator: f.Combinator}
	var t tally
	f.own(func(id NotificationID) bool {
		s := settled(id)
		t.add(s)
		if s == Pending {
			rest.add(id)
		}
		return true
	})
	for i := range f.Nested {
		left, s := f.Nested[i].prune(settled)
		t.add(s)
		if s == Pending {
			rest.Nested = append(rest.Nested, *left)
		}
	}
	return rest, t.result(f.Combinator, wakeNow)
}

// add makes id a leaf of the root node.
func (f *Future) add(id NotificationID) {
	switch {
	case id.Name != "":
		f.Names = append(f.Names, id.Name)
	case id.Signal:
		f.Signals = append(f.Signals, id.Index)
	default:
		f.Completions = append(f.Completions, id.Index)
	}
}

// Depth is the number of levels: 1 for a flat set.
func (f *Future) Depth() int {
	deepest := 0
	for i := range f.Nested {
		deepest = max(deepest, f.Nested[i].Depth())
	}
	return deepest + 1
}

// Leaves yields the notifications anywhere in the tree; one that is there twice
// comes twice.
func (f *Future) Leaves() iter.Seq[NotificationID] {
	return func(yield func(NotificationID) bool) { f.each(yield) }
}

// Has reports whether the tree has id as a leaf.
func (f *Future) Has(id NotificationID) bool {
	return !f.each(func(leaf NotificationID) bool { return leaf != id })
}

func (f *Future) each(yield func(NotificationID) bool) bool {
	if !f.own(yield) {
		return false
	}
	for i := range f.Nested {
		if !f.Nested[i].each(yield) {
			return false
		}
	}
	return true
}

// own goes through the leaves of the root node alone.
func (f *Future) own(yield func(NotificationID) bool) bool {
	for _, c := range f.Completions {
		if !yield(Completion(c)) {
			return false
		}
	}
	for _, s := range f.Signals {
		if !yield(NumberedSignal(s)) {
			return false
		}
	}
	for _, n := range f.Names {
		if !yield(NamedSignal(n)) {
			return false
		}
	}
	return true
}

// settle is the result of the node: Pending, Succeeded, Failed, Either or wakeNow.
// Every child is looked at, even when one alone decides, because wakeNow counts
// wherever it occurs. A node that cannot be decided comes to doubt.
func (f *Future) settle(settled func(NotificationID) Settled, doubt Settled) Settled {
	var t tally
	f.own(func(id NotificationID) bool { t.add(settled(id)); return true })
	for i := range f.Nested {
		t.add(f.Nested[i].settle(settled, doubt))
	}
	return t.result(f.Combinator, doubt)
}

// tally is what the children of a node came to.
type tally struct{ pending, succeeded, failed, either, wakeNow bool }

// result is what that makes of the node; doubt, if it cannot be decided.
func (t *tally) result(c Combinator, doubt Settled) Settled {
	if t.wakeNow {
		return wakeNow
	}
	switch c {
	case CombineFirstCompleted:
		return t.first()
	case CombineAllCompleted:
		return t.allCompleted()
	case CombineFirstSucceededOrAllFailed:
		return t.decide(t.succeeded, Succeeded, Failed, doubt)
	case CombineAllSucceededOrFirstFailed:
		return t.decide(t.failed, Failed, Succeeded, doubt)
	}
	if t.succeeded || t.failed || t.either {
		return Either
	}
	return Pending
}

func (t *tally) add(s Settled) {
	switch s {
	case Pending:
		t.pending = true
	case Succeeded:
		t.succeeded = true
	case Failed:
		t.failed = true
	case Either:
		t.either = true
	case wakeNow:
		t.wakeNow = true
	}
}

// first is the result of the child that was done first. When several are done and
// differ, which one was first is not known.
func (t *tally) first() Settled {
	switch {
	case t.either, t.succeeded && t.failed:
		return Either
	case t.succeeded:
		return Succeeded
	case t.failed:
		return Failed
	}
	return Pending
}

func (t *tally) allCompleted() Settled {
	if t.pending {
		return Pending
	}
	return Succeeded
}

// decide is for nodes that one child can decide, and that otherwise end with the
// opposite when no child is pending any more.
func (t *tally) decide(decisive bool, one, all, doubt Settled) Settled {
	switch {
	case decisive:
		return one
	case t.either:
		return doubt
	case t.pending:
		return Pending
	}
	return all
}
