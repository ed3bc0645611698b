package machinetest

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"platform/internal/ids"
	"platform/partition/journal"
	"platform/partition/machine"
)

// Reload returns a deep copy of the tables, as after a restart.
func (s *State) Reload() *State {
	c := New()
	c.strict, c.meta, c.Tables = s.strict, s.meta, s.Tables.Clone()
	for id, r := range s.invocations {
		c.PutInvocation(cloneInvocation(r.given))
		for i, e := range s.entries[id] {
			e.Payload = bytes.Clone(e.Payload)
			c.AppendEntry(id, uint32(i), e)
		}
	}
	for id, all := range s.events {
		c.events[id] = maps.Clone(all)
	}
	for id, all := range s.notified {
		c.notified[id] = maps.Clone(all)
	}
	for o, all := range s.values {
		for k, v := range all {
			c.PutValue(o, []byte(k), bytes.Clone(v))
		}
	}
	for o, all := range s.promises {
		for k, p := range all {
			p.Waiting = slices.Clone(p.Waiting)
			c.PutPromise(o, k, p)
		}
	}
	c.locks, c.waiting, c.timers = maps.Clone(s.locks), maps.Clone(s.waiting), maps.Clone(s.timers)
	c.skipped = maps.Clone(s.skipped)
	c.sent, c.delivered = maps.Clone(s.sent), maps.Clone(s.delivered)
	c.ingested, c.positions, c.first = maps.Clone(s.ingested), maps.Clone(s.positions), maps.Clone(s.first)
	for subscription, all := range s.letters {
		c.letters[subscription] = maps.Clone(all)
	}
	c.totals = maps.Clone(s.totals)
	for to, all := range s.outgoing {
		c.outgoing[to] = maps.Clone(all)
	}
	return c
}

// Faults lists the violations of the State contract that strict tables have detected.
func (s *State) Faults() []string {
	found := slices.Concat(s.faults, s.FlowFaults())
	for id, r := range s.invocations {
		if r.frozen != nil && !reflect.DeepEqual(r.given, r.frozen) {
			found = append(found, fmt.Sprintf("record of %s was changed after it was put", id))
		}
	}
	for _, w := range s.watched {
		if !bytes.Equal(w.given, w.frozen) {
			found = append(found, w.what+" was changed after it was stored")
		}
	}
	slices.Sort(found)
	return found
}

func cloneInvocation(inv *machine.Invocation) *machine.Invocation {
	c := *inv
	c.IdempotencyKey = clonePointer(inv.IdempotencyKey)
	c.Sinks = slices.Clone(inv.Sinks)
	c.Flow = clonePointer(inv.Flow)
	c.Requests = slices.Clone(inv.Requests)
	if inv.Await != nil {
		await := cloneFuture(*inv.Await)
		c.Await = &await
	}
	if inv.Result != nil {
		c.Result = &journal.Result{Value: bytes.Clone(inv.Result.Value)}
		if f := inv.Result.Failure; f != nil {
			c.Result.Failure = &journal.Failure{Code: f.Code, Message: f.Message, Metadata: slices.Clone(f.Metadata)}
		}
	}
	if c.Failure = clonePointer(inv.Failure); c.Failure != nil {
		c.Failure.RelatedIndex = clonePointer(inv.Failure.RelatedIndex)
	}
	return &c
}

func clonePointer[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

func cloneFuture(f journal.Future) journal.Future {
	f.Completions, f.Signals, f.Names = slices.Clone(f.Completions), slices.Clone(f.Signals), slices.Clone(f.Names)
	f.Nested = slices.Clone(f.Nested)
	for i := range f.Nested {
		f.Nested[i] = cloneFuture(f.Nested[i])
	}
	return f
}

func compareTimers(a, b machine.Timer) int {
	return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Kind, b.Kind), a.ID.Compare(b.ID), cmp.Compare(a.Completion, b.Completion), cmp.Compare(a.Name, b.Name))
}

func compareObjects(a, b machine.Object) int {
	return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Service, b.Service), cmp.Compare(a.Key, b.Key))
}

func sortedIDs[V any](m map[ids.Invocation]V) []ids.Invocation {
	return slices.SortedFunc(maps.Keys(m), ids.Invocation.Compare)
}
