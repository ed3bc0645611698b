package metadata

import "platform/internal/keyring"

// view is a state with the channels on which readers wait for changes.
type view struct {
	*state
	keys          *keyring.Keyring // of this node for secrets; nil: none
	readable      *readable
	layout        *Layout
	changed       chan struct{} // closed when something other than requests has changed
	layoutChanged chan struct{} // closed when the layout has changed
	rulesChanged  chan struct{} // closed when the rule book has changed

	subscriptionsChanged chan struct{} // closed when subscriptions or Kafka clusters have changed
}

func newView(st *state) *view {
	return &view{
		state: st, readable: newReadable(nil, st), layout: st.layout(), changed: make(chan struct{}), layoutChanged: make(chan struct{}), rulesChanged: make(chan struct{}),
		subscriptionsChanged: make(chan struct{}),
	}
}

// next returns the view after a draft. wake notifies the readers of v; call it once they
// can see the new view.
func (v *view) next(d *draft) (next *view, wake func()) {
	if len(d.writes) == 0 && !d.changed {
		return v, func() {}
	}
	st := d.state // without the other fields of a draft
	next = &view{
		state: &st, keys: v.keys, readable: v.readable.after(v.keys, d, d.schemas != v.schemas), layout: v.layout, changed: v.changed, layoutChanged: v.layoutChanged, rulesChanged: v.rulesChanged,
		subscriptionsChanged: v.subscriptionsChanged,
	}
	if d.layoutChanged {
		next.layout, next.layoutChanged = d.layout(), make(chan struct{})
	}
	if d.rulesChanged {
		next.rulesChanged = make(chan struct{})
	}
	if d.subscriptionsChanged {
		next.subscriptionsChanged = make(chan struct{})
	}
	if d.changed {
		next.changed = make(chan struct{})
	}
	return next, func() {
		if d.layoutChanged {
			close(v.layoutChanged)
		}
		if d.rulesChanged {
			close(v.rulesChanged)
		}
		if d.subscriptionsChanged {
			close(v.subscriptionsChanged)
		}
		if d.changed {
			close(v.changed)
		}
	}
}
