package partition

import (
	"platform/internal/ids"
	"platform/partition/machine"
	"platform/partition/store"
)

// object reports whether the rows of an object are selected, and if not, where the next
// selected ones may be. Rows are sorted by scope, service and key, so with a single service
// the rest of a scope is skipped.
func (sc *scanner) object(o machine.Object) (wanted bool, next store.Place) {
	s := sc.s
	if s.Scope != nil && o.Scope != *s.Scope {
		if o.Scope < *s.Scope {
			return false, store.ObjectPlace(machine.Object{Scope: *s.Scope})
		}
		return false, store.AfterScope(o.Scope)
	}
	if len(s.Services) == 1 && o.Service != s.Services[0] {
		if o.Service < s.Services[0] {
			return false, store.ServicePlace(o.Scope, s.Services[0])
		}
		return false, store.AfterScope(o.Scope)
	}
	if len(s.Services) == 1 && len(s.Objects) == 1 && o.Key != s.Objects[0] {
		if o.Key < s.Objects[0] {
			return false, store.ObjectPlace(machine.Object{Scope: o.Scope, Service: o.Service, Key: s.Objects[0]})
		}
		return false, store.AfterService(o.Scope, o.Service)
	}
	return matches(s.Services, o.Service) && matches(s.Objects, o.Key) && s.Keys.has(ids.Route(o.Scope, o.Key)), nil
}

// offer adds a row of an object if it is selected.
func (sc *scanner) offer(at store.Place, o machine.Object, row func() (r Row, size int, err error)) (store.Visit, error) {
	wanted, next := sc.object(o)
	if wanted {
		r, size, err := row()
		if err != nil {
			return store.Visit{}, err
		}
		r.Object = o
		sc.add(r, size)
	}
	v := sc.read(at)
	v.To = next
	if v.Stop && next != nil {
		sc.page.Next = next
	}
	return v, nil
}

func (sc *scanner) value(at store.Place, o machine.Object, key, value []byte) (store.Visit, error) {
	sc.countLarge(len(value))
	return sc.offer(at, o, func() (Row, int, error) {
		r := Row{Key: string(key), Size: len(value)}
		if sc.s.Detail == Whole {
			r.Value = append(make([]byte, 0, len(value)), value...)
		}
		return r, len(key) + len(r.Value), nil
	})
}

func (sc *scanner) promise(at store.Place, p store.WorkflowPromise) (store.Visit, error) {
	return sc.offer(at, p.Workflow, func() (Row, int, error) {
		r := Row{Key: p.Key, Promise: p.Promise}
		if p.Result != nil {
			return r, len(p.Result.Value), nil
		}
		return r, 0, nil
	})
}

func (sc *scanner) lock(at store.Place, o machine.Object, l machine.Lock) (store.Visit, error) {
	if l.Holder.IsZero() {
		return sc.read(at), nil
	}
	return sc.offer(at, o, func() (Row, int, error) {
		r := Row{ID: l.Holder}
		if sc.s.Detail == Heads {
			return r, 0, nil
		}
		holder, err := sc.view.Invocation(l.Holder)
		if err == nil && holder != nil {
			r.Since = holder.RunningAt
		}
		return r, 0, err
	})
}

func (sc *scanner) waiting(at store.Place, o machine.Object, seq uint64, id ids.Invocation) (store.Visit, error) {
	return sc.offer(at, o, func() (Row, int, error) {
		return Row{ID: id, Index: seq}, 0, nil
	})
}
