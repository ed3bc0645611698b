package partition

import (
	"platform/flowcontrol"
	"platform/internal/ids"
	"platform/partition/machine"
	"platform/partition/store"
)

func (sc *scanner) queues(from store.Place) error {
	rules, now, err := rulesOf(sc.view)
	if err != nil {
		return err
	}
	return sc.view.WalkVQueues(from, func(at store.Place, named store.NamedVQueue) (store.Visit, error) {
		if sc.s.Scope != nil && *sc.s.Scope != named.Key.Scope || !matches(sc.s.Services, named.Key.Service) || !sc.s.Keys.has(ids.HashKey(named.Key.Scope)) {
			return sc.read(at), nil
		}
		q := &Queue{ID: named.Key.ID(), Key: named.Key, VQueue: named.VQueue}
		if q.Stages[flowcontrol.Inbox] > 0 {
			if err := q.explain(sc.view, rules, now); err != nil {
				return store.Visit{}, err
			}
		}
		sc.add(Row{Queue: q}, 0)
		return sc.read(at), nil
	})
}

// lockQueue adds the queue for an unscoped object.
func (sc *scanner) lockQueue(at store.Place, o machine.Object, l machine.Lock) (store.Visit, error) {
	if o.Scope != "" || l.Holder.IsZero() {
		return sc.read(at), nil
	}
	return sc.offer(at, o, func() (Row, int, error) {
		q, err := lockQueueOf(sc.view, o, l)
		sc.page.Read += int(min(l.Tail-l.Head, flowcontrol.MaxCounted)) // read to count them
		return Row{Queue: q}, 0, err
	})
}

// lockQueueOf describes the queue for a key as a vqueue. It has no counters, so there are
// no averages and only the times of the holder.
func lockQueueOf(view *store.View, o machine.Object, l machine.Lock) (*Queue, error) {
	q := &Queue{ID: ids.OfVQueue("", "", o.Service, o.Key), Key: flowcontrol.QueueKey{Service: o.Service}, Object: o.Key}
	holder, err := view.Invocation(l.Holder)
	if err != nil {
		return nil, err
	}
	if holder != nil {
		q.Stages[holder.Stage()]++
		q.LastAttemptAt = holder.RunningAt
	}
	q.Waiting, err = waitingFor(view, o, l.Head, l.Tail)
	if err != nil || q.Waiting == 0 {
		return q, err
	}
	q.Stages[flowcontrol.Inbox] += q.Waiting
	q.Blocked.Cause = flowcontrol.ByKey
	_, id, err := view.FirstWaiting(o, l.Head, l.Tail)
	if err != nil || id.IsZero() {
		return q, err
	}
	head, err := view.Invocation(id)
	if err == nil && head != nil {
		q.Head = flowcontrol.Queued{ID: id, At: head.InboxedAt}
	}
	return q, err
}

func (sc *scanner) usages(from store.Place) error {
	rules, _, err := rulesOf(sc.view)
	if err != nil {
		return err
	}
	return sc.view.WalkCounters(from, func(at store.Place, c flowcontrol.NamedCounter) (store.Visit, error) {
		if sc.s.Scope == nil || *sc.s.Scope == c.Key.Scope {
			sc.add(Row{Usage: &Usage{NamedCounter: c, Rule: rules.Match(c.Key.Scope, c.Key.LimitKey)[c.Key.Level()]}}, 0)
		}
		return sc.read(at), nil
	})
}
