package partition

import (
	"sync"
	"sync/atomic"

	"platform/internal/broadcast"
	"platform/internal/failpoint"
)

// role is whether a replica leads its partition. A leadership begins when this replica is
// elected, is entered when its announcement is applied here, from when on it receives effects,
// and is left at its end.
type role struct {
	mu      sync.Mutex                 // held while pending and entered change
	pending atomic.Pointer[leadership] // has begun: announced or about to be
	entered atomic.Pointer[leadership] // receives effects
	latest  atomic.Pointer[leadership] // the last one that began, which may have ended
	changed broadcast.Channel          // changes of the leader, whether here or elsewhere
}

// leadership returns the one that receives effects, nil if this replica does not lead.
func (r *role) leadership() *leadership { return r.entered.Load() }

// begin makes the leadership receive effects from its announcement on.
func (r *role) begin(l *leadership) {
	r.latest.Store(l)
	r.pending.Store(l)
}

// enter makes the leadership that announced epoch, if it belongs to this replica, the
// receiver of effects. It is called while the announcement, an entry of the given term, is
// applied. Two replicas may announce the same epoch; a term has only one leader.
func (r *role) enter(epoch, term uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.pending.Load()
	if l != nil && (l.epoch != epoch || l.term != term && !failpoint.Active(failpoint.EpochWithoutTerm)) {
		l = nil
	}
	r.entered.Store(l)
}

// follow makes the replica hand effects to no leadership. It is called when a snapshot is
// installed, which only another leader sends: the announcement of that leader may be in the
// snapshot, and the own leadership may not have ended yet.
func (r *role) follow() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entered.Store(nil)
}

// leave ends the reception of effects by a leadership.
func (r *role) leave(l *leadership) {
	r.mu.Lock()
	r.pending.CompareAndSwap(l, nil)
	r.entered.CompareAndSwap(l, nil)
	r.mu.Unlock()
	r.changed.Send()
}
