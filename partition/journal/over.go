package journal

import (
	"iter"
	"slices"
)

// wakeNow is the internal result of a node that cannot be decided without running the
// handler: it makes the whole await over.
const wakeNow Settled = 0xFF

// Over reports whether f is over by the service protocol's wake-up rule. settled returns
// the state of a notification.
//
// Waking a handler too early costs an attempt, since it evaluates the await and suspends
// again; waking it too late leaves the invocation suspended forever. So wherever the
// outcome depends on an order that is not known here, the result is true.
func (f *Future) Over(settled func(NotificationID) Settled) bool {
	return f.settle(settled, wakeNow) != Pending
}

// Certain reports whether f is over regardless of the order in which the notifications
// arrived.
func (f *Future) Certain(settled func(NotificationID) Settled) bool {
	return f.settle(settled, Pending) != Pending
}

// Flat returns the set of all pending leaves of f. It is over as soon as any of them
// arrives.
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

// Prune returns f without its settled parts, so that later only new notifications need to
// be evaluated: everything left is pending. It also preserves, in effect, which child of a
// race was first. It must not be called if f is over. f itself is not modified.
func (f *Future) Prune(settled func(NotificationID) Settled) *Future {
	rest, _ := f.prune(settled)
	return rest
}

// prune also returns the result of the node, so that each leaf is evaluated once at any
// depth.
func (f *Future) prune(settled func(NotificationID) Settled) (*Future, Settled) {
	rest := &Future{Combinator: f.Combinator}
	var t tally
	f.ownLeaves(func(id NotificationID) bool {
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

// Arrive returns f without its settled parts, as Prune does, and whether f is over, if everything in it was pending until id
// settled: f was pruned before. It does not evaluate each leaf, of which there may be very many for each notification.
func (f *Future) Arrive(id NotificationID, s Settled) (rest *Future, over bool) {
	left, result := f.arrive(id, s)
	return &left, result != Pending
}

func (f *Future) arrive(id NotificationID, s Settled) (rest Future, result Settled) {
	rest.Combinator = f.Combinator
	var t tally
	var found bool
	rest.Completions, rest.Signals, rest.Names = f.Completions, f.Signals, f.Names
	switch {
	case id.Name != "":
		rest.Names, found = without(f.Names, id.Name)
	case id.Signal:
		rest.Signals, found = without(f.Signals, id.Index)
	default:
		rest.Completions, found = without(f.Completions, id.Index)
	}
	if found {
		t.add(s)
	}
	t.pending = len(rest.Completions)+len(rest.Signals)+len(rest.Names) > 0
	for i := range f.Nested {
		inner, r := f.Nested[i].arrive(id, s)
		if t.add(r); r == Pending {
			rest.Nested = append(rest.Nested, inner)
		}
	}
	return rest, t.result(f.Combinator, wakeNow)
}

// without returns the elements that are not equal to one, without changing all, and whether any is.
func without[E comparable](all []E, one E) (rest []E, found bool) {
	at := slices.Index(all, one)
	if at < 0 {
		return all, false
	}
	rest = append(make([]E, 0, len(all)-1), all[:at]...)
	for _, e := range all[at+1:] {
		if e != one {
			rest = append(rest, e)
		}
	}
	if len(rest) == 0 {
		return nil, true
	}
	return rest, true
}

// add adds id as a leaf of the root node.
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

// Depth returns the number of levels: 1 for a flat set.
func (f *Future) Depth() int {
	deepest := 0
	for i := range f.Nested {
		deepest = max(deepest, f.Nested[i].Depth())
	}
	return deepest + 1
}

// Size returns the number of nodes and leaves; duplicates count repeatedly.
func (f *Future) Size() int {
	n := 1 + len(f.Completions) + len(f.Signals) + len(f.Names)
	for i := range f.Nested {
		n += f.Nested[i].Size()
	}
	return n
}

// Leaves yields all notifications in the tree; duplicates are yielded repeatedly.
func (f *Future) Leaves() iter.Seq[NotificationID] {
	return func(yield func(NotificationID) bool) { f.each(yield) }
}

// Has reports whether the tree has id as a leaf.
func (f *Future) Has(id NotificationID) bool {
	return f.hasOwn(id) || slices.ContainsFunc(f.Nested, func(inner Future) bool { return inner.Has(id) })
}

// hasOwn reports whether the root node has id as a leaf.
func (f *Future) hasOwn(id NotificationID) bool {
	switch {
	case id.Name != "":
		return slices.Contains(f.Names, id.Name)
	case id.Signal:
		return slices.Contains(f.Signals, id.Index) || id == NamedSignal("") && slices.Contains(f.Names, "")
	}
	return slices.Contains(f.Completions, id.Index)
}

func (f *Future) each(yield func(NotificationID) bool) bool {
	if !f.ownLeaves(yield) {
		return false
	}
	for i := range f.Nested {
		if !f.Nested[i].each(yield) {
			return false
		}
	}
	return true
}

// ownLeaves yields the leaves of the root node only.
func (f *Future) ownLeaves(yield func(NotificationID) bool) bool {
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

// settle returns the result of the node: Pending, Succeeded, Failed, Either or wakeNow.
// Every child is evaluated, even if one alone decides, because wakeNow counts wherever it
// occurs. The result of an undecidable node is undecided.
func (f *Future) settle(settled func(NotificationID) Settled, undecided Settled) Settled {
	var t tally
	f.ownLeaves(func(id NotificationID) bool { t.add(settled(id)); return true })
	for i := range f.Nested {
		t.add(f.Nested[i].settle(settled, undecided))
	}
	return t.result(f.Combinator, undecided)
}

// tally summarizes the results of a node's children.
type tally struct{ pending, succeeded, failed, either, wakeNow bool }

// result returns the result of the node, or undecided if it is undecidable.
func (t *tally) result(c Combinator, undecided Settled) Settled {
	if t.wakeNow {
		return wakeNow
	}
	switch c {
	case CombineFirstCompleted:
		return t.first()
	case CombineAllCompleted:
		return t.allCompleted()
	case CombineFirstSucceededOrAllFailed:
		return t.decide(t.succeeded, Succeeded, Failed, undecided)
	case CombineAllSucceededOrFirstFailed:
		return t.decide(t.failed, Failed, Succeeded, undecided)
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

// first returns the result of the child that settled first. If several have settled with
// different results, the order is unknown.
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

// decide returns the result of a node that one child can decide, and that otherwise has the
// opposite result once no child is pending.
func (t *tally) decide(decisive bool, one, all, undecided Settled) Settled {
	switch {
	case decisive:
		return one
	case t.either:
		return undecided
	case t.pending:
		return Pending
	}
	return all
}
