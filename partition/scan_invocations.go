package partition

import (
	"bytes"
	"slices"

	"platform/internal/target"
	"platform/partition/codec"
	"platform/partition/machine"
	"platform/partition/store"
)

func (sc *scanner) invocations(from store.Place) error {
	if !sc.s.ID.IsZero() {
		return sc.invocation()
	}
	from, upto := sc.s.Keys.bounds(from)
	completed := matches(sc.s.Statuses, machine.Completed)
	live := len(sc.s.Statuses) == 0 || slices.ContainsFunc(sc.s.Statuses, func(s machine.Status) bool { return s != machine.Completed })
	return sc.view.WalkRecords(from, upto, store.Statuses{Live: live, Completed: completed}, func(at store.Place, record []byte) (store.Visit, error) {
		head, err := codec.DecodeHead(record)
		if err == nil && sc.wants(&head) {
			err = sc.record(record)
		}
		sc.countLarge(len(record))
		return sc.read(at), err
	})
}

// invocation reads the requested invocation.
func (sc *scanner) invocation() error {
	inv, err := sc.view.Invocation(sc.s.ID)
	sc.page.Read++
	if err != nil || inv == nil {
		return err
	}
	if !sc.wants(&codec.Head{ID: inv.ID, Target: inv.Target, Status: inv.Status}) {
		return nil
	}
	if sc.s.Events && !hasEvents(inv) {
		return nil
	}
	r := Row{Record: sc.p.record(inv)}
	if sc.s.Ahead {
		r.Ahead, err = ahead(sc.view, inv)
	}
	if err == nil {
		_, err = sc.history(&r)
	}
	sc.add(r, 0)
	return err
}

// hasEvents reports whether an invocation has a history, or is in a status that is an event.
func hasEvents(inv *machine.Invocation) bool {
	switch inv.Status {
	case machine.Invoked, machine.Suspended, machine.Paused:
		return true
	}
	return inv.History.First < inv.History.Next
}

// history adds the history of an invocation to its row if it is requested.
func (sc *scanner) history(r *Row) (size int, err error) {
	h := r.Record.History
	if !sc.s.Events || h.First == h.Next {
		return 0, nil
	}
	r.Events, err = sc.view.Events(r.Record.ID)
	return int(h.Bytes), err
}

// queueEntry reads the requested invocation's entry in the queue for its key.
func (sc *scanner) queueEntry() error {
	inv, err := sc.view.Invocation(sc.s.ID)
	sc.page.Read++
	if err != nil || inv == nil || !inv.WaitsForKey() {
		return err
	}
	r := Row{ID: inv.ID, Index: inv.QueueSeq, Object: inv.Target.Object()}
	if wanted, _ := sc.object(r.Object); !wanted {
		return nil
	}
	if sc.s.Ahead {
		r.Ahead, err = ahead(sc.view, inv)
	}
	sc.add(r, 0)
	return err
}

// wants reports whether an invocation is selected. State updates by operators are stored
// like invocations, but are not listed.
func (sc *scanner) wants(h *codec.Head) bool {
	s, t := sc.s, &h.Target
	return t.Type != target.StateUpdate && (s.Scope == nil || *s.Scope == t.Scope) &&
		matches(s.Services, t.Service) && matches(s.Objects, t.Key) && matches(s.Handlers, t.Handler) && matches(s.Statuses, h.Status)
}

// record adds an invocation; record is valid only during the call.
func (sc *scanner) record(record []byte) error {
	if sc.s.Detail == Counts {
		sc.page.Matched++
		return nil
	}
	if sc.s.Detail == Heads {
		record = record[:codec.HeadLen(record)]
	}
	record = bytes.Clone(record)
	inv, err := codec.DecodeInvocation(record)
	if err != nil {
		return err
	}
	if sc.s.Events && !hasEvents(inv) {
		return nil
	}
	r := Row{Record: sc.p.record(inv)}
	size, err := sc.history(&r)
	sc.add(r, len(record)+size)
	return err
}
