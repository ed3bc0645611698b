package metadata

import "sync"

// view is a state for readers.
type view struct {
	*state
	layout  *Layout
	changed chan struct{} // closed when anything but requests has changed since
	moved   chan struct{} // closed when the layout has changed since
	ruled   chan struct{} // closed when the rule book has changed since
}

func newView(st *state) *view {
	return &view{state: st, layout: st.layout(), changed: make(chan struct{}), moved: make(chan struct{}), ruled: make(chan struct{})}
}

// next is the view after a draft. wake tells those that wait for it; it is to be
// called once they can see it.
func (v *view) next(d *draft) (next *view, wake func()) {
	if len(d.writes) == 0 && !d.changed {
		return v, func() {}
	}
	st := d.state // without what else a draft holds
	next = &view{state: &st, layout: v.layout, changed: v.changed, moved: v.moved, ruled: v.ruled}
	if d.moved {
		next.layout, next.moved = d.layout(), make(chan struct{})
	}
	if d.ruled {
		next.ruled = make(chan struct{})
	}
	if d.changed {
		next.changed = make(chan struct{})
	}
	return next, func() {
		if d.moved {
			close(v.moved)
		}
		if d.ruled {
			close(v.ruled)
		}
		if d.changed {
			close(v.changed)
		}
	}
}

// broadcast wakes everybody that waits for something to change.
type broadcast struct {
	// mu covers woken.
	mu    sync.Mutex
	woken chan struct{}
}

// next is closed at the next send. Get it before looking at what changes.
func (b *broadcast) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.woken == nil {
		b.woken = make(chan struct{})
	}
	return b.woken
}

func (b *broadcast) send() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.woken != nil {
		close(b.woken)
		b.woken = nil
	}
}
