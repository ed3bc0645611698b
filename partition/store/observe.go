package store

import (
	"slices"

	"platform/internal/ids"
	"platform/partition/machine"
)

// Observer is informed of changes of invocations. Its methods are called on the applying
// goroutine, and must not open views.
type Observer interface {
	// Changed is called after the commit of a write to an invocation, in the order of the
	// commits, once per commit and invocation. Views opened from then on include the write.
	// inv is nil if the invocation was deleted; it must not be modified.
	Changed(id ids.Invocation, inv *machine.Invocation)
	// Replaced is called when an import has replaced all tables.
	Replaced()
}

// Observe makes o the observer of the partition; nil: none. Writes that are committed
// concurrently may still be reported to the previous observer.
func (p *Partition) Observe(o Observer) {
	if o == nil {
		p.observer.Store(nil)
		return
	}
	p.observer.Store(&o)
}

// report reports the invocations that this batch has written.
func (t *Txn) report(o Observer) {
	slices.SortFunc(t.changed, ids.Invocation.Compare)
	for _, id := range slices.Compact(t.changed) {
		o.Changed(id, t.invocations[id].inv)
	}
}
