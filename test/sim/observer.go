package sim

import (
	"sync/atomic"
	"time"

	"platform/invoker"
	"platform/partition"
	"platform/partition/attempts"
	"platform/partition/machine"
	"platform/partition/store"
)

// leaderObserver stands between a replica and its invoker. It checks that a replica never
// carries out effects as leader after it has applied the announcement of another one.
type leaderObserver struct {
	*invoker.Invoker
	l       *incarnation
	tables  *store.Partition
	replica atomic.Pointer[partition.Partition] // set once it is open
	term    atomic.Uint64                       // of the latest leadership
}

// Open implements partition.Invoker.
func (o *leaderObserver) Open(p attempts.Partition) attempts.Session {
	for o.replica.Load() == nil {
		time.Sleep(time.Microsecond)
	}
	o.term.Store(max(o.term.Load(), o.replica.Load().Status().Term))
	return &observedSession{o.Invoker.Open(p), o}
}

// check compares the term of the last applied entry with that of the latest leadership.
// The entry must be read first, and the term last.
func (o *leaderObserver) check() {
	_, applied := o.tables.Applied()
	p := o.replica.Load()
	if p == nil || !p.Leading() {
		return
	}
	if own := o.term.Load(); applied > own {
		o.l.n.sim.violate("two leaders: partition %d on %s leads in term %d, and has applied entries of the leader of term %d", p.ID(), o.l.n.name, own, applied)
	}
}

type observedSession struct {
	attempts.Session
	o *leaderObserver
}

// Run implements attempts.Session.
func (s *observedSession) Run(r *machine.Run) {
	s.o.check()
	s.Session.Run(r)
}

// Notify implements attempts.Session.
func (s *observedSession) Notify(n *machine.Notify) {
	s.o.check()
	s.Session.Notify(n)
}

// Abort implements attempts.Session.
func (s *observedSession) Abort(a *machine.Abort) {
	s.o.check()
	s.Session.Abort(a)
}
