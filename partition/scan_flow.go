package partition

import (
	"platform/flowcontrol"
	"platform/partition/store"
)

func (sc *scanner) queues(from store.Place) error {
	rules, now, err := rulesOf(sc.view)
	if err != nil {
		return err
	}
	return sc.view.WalkVQueues(from, func(at store.Place, named store.NamedVQueue) (store.Visit, error) {
		if sc.s.Scope != nil && *sc.s.Scope != named.Key.Scope || !among(sc.s.Services, named.Key.Service) {
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
