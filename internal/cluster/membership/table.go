package membership

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// retention is how long members that died or left stay listed. Dead members are join
// targets for as long.
const retention = time.Hour

// table holds the members as last described by gossip.
type table struct {
	// recent is how long ago a member may have acknowledged a probe for a report of its death
	// to be uncertain, and refuteTime how long the member then has to refute it.
	recent, refuteTime time.Duration

	mu           sync.Mutex // covers the fields below
	members      map[string]Member
	acked        map[string]time.Time   // last acknowledged probe, by name
	deathReports map[string]*time.Timer // that may still be refuted, by name
	watchers     map[chan struct{}]struct{}
}

func newTable(p profile) *table {
	return &table{
		// A report of a crash takes at least as long, after the last probe that succeeded.
		recent:     time.Duration(p.suspicionMult) * p.probeInterval,
		refuteTime: 5 * p.gossipInterval,
		members:    make(map[string]Member), acked: make(map[string]time.Time), deathReports: make(map[string]*time.Timer),
		watchers: make(map[chan struct{}]struct{}),
	}
}

// put records m as alive. Since is reset for a new process of the node, even if the end of
// the old one went unnoticed.
func (t *table) put(m Member) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dropDeathReportLocked(m.Name)
	old := t.members[m.Name]
	m.State, m.Since = Alive, time.Now()
	if old.State == Alive && old.Incarnation == m.Incarnation && old.Started.Equal(m.Started) {
		m.Since = old.Since
	}
	t.members[m.Name] = m
	t.changedLocked()
}

// noteAck records that a member has just acknowledged a probe of this node.
func (t *table) noteAck(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.acked[name] = time.Now()
}

// markDead records that a member was reported dead. If it has recently acknowledged a probe
// of this node, it is first given time to refute the report by put.
func (t *table) markDead(name, incarnation string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dropDeathReportLocked(name)
	if time.Since(t.acked[name]) >= t.recent {
		t.markGoneLocked(name, incarnation, Dead)
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(t.refuteTime, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.deathReports[name] == timer {
			delete(t.deathReports, name)
			t.markGoneLocked(name, incarnation, Dead)
		}
	})
	t.deathReports[name] = timer
}

// dropDeathReportLocked forgets a report of a member's death.
func (t *table) dropDeathReportLocked(name string) {
	if timer, ok := t.deathReports[name]; ok {
		timer.Stop()
		delete(t.deathReports, name)
	}
}

// markGone records that a member is dead or has left. Left is final.
func (t *table) markGone(name, incarnation string, state State) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.markGoneLocked(name, incarnation, state)
}

// markGoneLocked is markGone.
func (t *table) markGoneLocked(name, incarnation string, state State) {
	m, ok := t.members[name]
	if !ok || m.Incarnation != incarnation || m.State == state || m.State == Left {
		return
	}
	if m.State == Alive {
		m.Since = time.Now()
	}
	m.State = state
	t.members[name] = m
	t.changedLocked()
}

// remove removes a member.
func (t *table) remove(name, incarnation string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if m, ok := t.members[name]; ok && m.Incarnation == incarnation {
		t.dropDeathReportLocked(name)
		delete(t.members, name)
		delete(t.acked, name)
		t.changedLocked()
	}
}

// prune removes and returns members that have been gone for longer than age.
func (t *table) prune(age time.Duration) []Member {
	t.mu.Lock()
	defer t.mu.Unlock()
	var gone []Member
	for name, m := range t.members {
		if m.State != Alive && time.Since(m.Since) > age {
			gone = append(gone, m)
			delete(t.members, name)
			delete(t.acked, name)
		}
	}
	if len(gone) > 0 {
		t.changedLocked()
	}
	return gone
}

func (t *table) get(name string) (Member, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m, ok := t.members[name]
	return m, ok
}

// snapshot returns all members sorted by name.
func (t *table) snapshot() []Member {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.SortedFunc(maps.Values(t.members), byName)
}

// watch returns a channel that receives a value after a change, and a function that ends
// the subscription.
func (t *table) watch() (<-chan struct{}, func()) {
	ch := make(chan struct{}, 1)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.watchers[ch] = struct{}{}
	return ch, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.watchers, ch)
	}
}

// changedLocked notifies the watchers.
func (t *table) changedLocked() {
	for ch := range t.watchers {
		select {
		case ch <- struct{}{}:
		default: // a notification is already pending
		}
	}
}
