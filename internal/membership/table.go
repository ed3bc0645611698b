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
	mu       sync.Mutex // covers the fields below
	members  map[string]Member
	watchers map[chan struct{}]struct{}
}

func newTable() *table {
	return &table{members: make(map[string]Member), watchers: make(map[chan struct{}]struct{})}
}

// put records m as alive. Since is reset for a new process of the node, even if the end of
// the old one went unnoticed.
func (t *table) put(m Member) {
	t.mu.Lock()
	defer t.mu.Unlock()
	old := t.members[m.Name]
	m.State, m.Since = Alive, time.Now()
	if old.State == Alive && old.Incarnation == m.Incarnation && old.Started.Equal(m.Started) {
		m.Since = old.Since
	}
	t.members[m.Name] = m
	t.changed()
}

// markGone records that a member is dead or has left. Left is final.
func (t *table) markGone(name, incarnation string, state State) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m, ok := t.members[name]
	if !ok || m.Incarnation != incarnation || m.State == state || m.State == Left {
		return
	}
	if m.State == Alive {
		m.Since = time.Now()
	}
	m.State = state
	t.members[name] = m
	t.changed()
}

// remove removes a member.
func (t *table) remove(name, incarnation string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if m, ok := t.members[name]; ok && m.Incarnation == incarnation {
		delete(t.members, name)
		t.changed()
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
		}
	}
	if len(gone) > 0 {
		t.changed()
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

// changed notifies the watchers. The caller holds mu.
func (t *table) changed() {
	for ch := range t.watchers {
		select {
		case ch <- struct{}{}:
		default: // a notification is already pending
		}
	}
}
