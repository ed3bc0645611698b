package partition

import (
	"bytes"
	"slices"

	"platform/partition/codec"
	"platform/partition/machine"
	"platform/partition/store"
)

func (sc *scanner) invocations(from store.Place) error {
	if !sc.s.ID.IsZero() {
		return sc.invocation()
	}
	from, upto := sc.s.Keys.within(from)
	completed := among(sc.s.Statuses, machine.Completed)
	live := len(sc.s.Statuses) == 0 || slices.ContainsFunc(sc.s.Statuses, func(s machine.Status) bool { return s != machine.Completed })
	most := sc.s.most()
	return sc.view.WalkRecords(from, upto, live, completed, func(at store.Place, record []byte) (store.Visit, error) {
		err := sc.offerRecord(record, most)
		sc.looked(len(record))
		return sc.read(at), err
	})
}

// most reports whether all of most records is wanted, so that to look at their heads
// first would be in vain.
func (s *Scan) most() bool {
	const live = int(machine.Completed) - 1 // statuses
	anyStatus := len(s.Statuses) == 0 || len(s.Statuses) >= live || len(s.Statuses) == 1 && s.Statuses[0] == machine.Completed
	return s.Detail == Whole && anyStatus && s.Scope == nil && len(s.Services)+len(s.Objects)+len(s.Handlers) == 0
}

// offerRecord adds an invocation if it is wanted; record is valid during the call only.
func (sc *scanner) offerRecord(record []byte, most bool) error {
	if !most {
		head, err := codec.DecodeHead(record)
		if err != nil || !sc.wants(&head) {
			return err
		}
	}
	switch sc.s.Detail {
	case Counts:
		sc.page.Matched++
		return nil
	case Heads:
		record = record[:codec.HeadLen(record)]
	}
	record = bytes.Clone(record)
	inv, err := codec.DecodeInvocation(record)
	if err != nil {
		return err
	}
	if !most || sc.wants(&codec.Head{ID: inv.ID, Target: inv.Target, Status: inv.Status}) {
		sc.add(Row{Record: sc.p.record(inv)}, len(record))
	}
	return nil
}

// invocation reads the one that is asked for.
func (sc *scanner) invocation() error {
	inv, err := sc.view.Invocation(sc.s.ID)
	sc.page.Read++
	if err != nil || inv == nil {
		return err
	}
	if !sc.wants(&codec.Head{ID: inv.ID, Target: inv.Target, Status: inv.Status}) {
		return nil
	}
	r := Row{Record: sc.p.record(inv)}
	if sc.s.Ahead {
		r.Ahead, err = ahead(sc.view, inv)
	}
	sc.add(r, 0)
	return err
}

// waitingOne reads the place of the one that is asked for in the line for its key.
func (sc *scanner) waitingOne() error {
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

// wants reports whether an invocation is among those that are asked for. Changes of
// state by operators are kept like invocations, but are none.
func (sc *scanner) wants(h *codec.Head) bool {
	s, t := sc.s, &h.Target
	return t.Type != machine.StateUpdate && (s.Scope == nil || *s.Scope == t.Scope) &&
		among(s.Services, t.Service) && among(s.Objects, t.Key) && among(s.Handlers, t.Handler) && among(s.Statuses, h.Status)
}
