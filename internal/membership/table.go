package membership

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// retention is for how long members that are gone are listed and looked for.
const retention = time.Hour

// table holds the members as the gossip last described them.
type table struct {
	// mu covers the rest.
	mu       sync.Mutex
	members  map[string]Member
	watchers map[chan struct{}]struct{}
}

func newTable() *table {
	return &table{members: make(map[string]Member), watchers: make(map[chan struct{}]struct{})}
}

// put notes that m is alive and described like this. Another process of the node is not
// alive for longer than it runs, also if nobody noticed that it was gone.
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

// end notes that the member is not there any more. Who left stays so.
func (t *table) end(name, incarnation string, state State) {
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

// remove forgets a member.
func (t *table) remove(name, incarnation string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if m, ok := t.members[name]; ok && m.Incarnation == incarnation {
		delete(t.members, name)
		t.changed()
	}
}

// prune forgets members that have been gone for longer than age and returns them.
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

// snapshot returns all members by name.
func (t *table) snapshot() []Member {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.SortedFunc(maps.Values(t.members), byName)
}

// watch returns a channel that holds a value after a change.
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

// changed tells the watchers. The caller holds mu.
func (t *table) changed() {
	for ch := range t.watchers {
		select {
		case ch <- struct{}{}:
		default: // it has not looked since the last change
		}
	}
}
