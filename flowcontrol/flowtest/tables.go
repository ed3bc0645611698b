// Package flowtest implements the scheduler's tables in memory, for tests.
package flowtest

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"

	"platform/flowcontrol"
)

// Tables implements the scheduler's tables in memory. The zero value is not usable.
type Tables struct {
	counters map[flowcontrol.CounterKey]flowcontrol.Counter
	queues   map[flowcontrol.QueueKey]flowcontrol.VQueue
	queued   map[QueuePosition]flowcontrol.Queued
	children map[RingPosition]flowcontrol.Child
	rules    *flowcontrol.Book
	faults   []string
}

var _ flowcontrol.Tables = (*Tables)(nil)

// QueuePosition is a position in a lane.
type QueuePosition struct {
	Queue    flowcontrol.QueueKey
	Priority uint8
	Seq      uint64
}

// RingPosition is a position in a ring.
type RingPosition struct {
	Ring flowcontrol.CounterKey
	Seq  uint64
}

// New returns empty tables.
func New() *Tables {
	return &Tables{
		counters: map[flowcontrol.CounterKey]flowcontrol.Counter{},
		queues:   map[flowcontrol.QueueKey]flowcontrol.VQueue{},
		queued:   map[QueuePosition]flowcontrol.Queued{},
		children: map[RingPosition]flowcontrol.Child{},
		rules:    &flowcontrol.Book{},
	}
}

// Clone returns a copy that shares no mutable data.
func (t *Tables) Clone() *Tables {
	return &Tables{
		maps.Clone(t.counters), maps.Clone(t.queues), maps.Clone(t.queued), maps.Clone(t.children), t.rules, slices.Clone(t.faults),
	}
}

// Counter implements flowcontrol.Tables.
func (t *Tables) Counter(k flowcontrol.CounterKey) (flowcontrol.Counter, error) {
	return t.counters[k], nil
}

// PutCounter implements flowcontrol.Tables.
func (t *Tables) PutCounter(k flowcontrol.CounterKey, c flowcontrol.Counter) {
	if c == (flowcontrol.Counter{}) {
		delete(t.counters, k)
		return
	}
	t.counters[k] = c
}

// Counters implements flowcontrol.Tables.
func (t *Tables) Counters(from flowcontrol.CounterKey, most int) ([]flowcontrol.NamedCounter, error) {
	all := []flowcontrol.NamedCounter{}
	for _, k := range slices.SortedFunc(maps.Keys(t.counters), compareCounters) {
		if compareCounters(k, from) >= 0 && len(all) < most {
			all = append(all, flowcontrol.NamedCounter{Key: k, Counter: t.counters[k]})
		}
	}
	return all, nil
}

// AllCounters returns all counters in order.
func (t *Tables) AllCounters() []flowcontrol.NamedCounter {
	all, _ := t.Counters(flowcontrol.CounterKey{}, math.MaxInt)
	return all
}

// VQueue implements flowcontrol.Tables.
func (t *Tables) VQueue(k flowcontrol.QueueKey) (flowcontrol.VQueue, error) { return t.queues[k], nil }

// PutVQueue implements flowcontrol.Tables.
func (t *Tables) PutVQueue(k flowcontrol.QueueKey, q flowcontrol.VQueue) {
	if q == (flowcontrol.VQueue{}) {
		delete(t.queues, k)
		return
	}
	t.queues[k] = q
}

// FirstQueued implements flowcontrol.Tables.
func (t *Tables) FirstQueued(q flowcontrol.QueueKey, priority uint8, from, before uint64) (uint64, flowcontrol.Queued, error) {
	for seq := from; seq < before; seq++ {
		if entry, there := t.queued[QueuePosition{q, priority, seq}]; there {
			return seq, entry, nil
		}
	}
	return 0, flowcontrol.Queued{}, nil
}

// PutQueued implements flowcontrol.Tables.
func (t *Tables) PutQueued(q flowcontrol.QueueKey, priority uint8, seq uint64, entry flowcontrol.Queued) {
	p := QueuePosition{q, priority, seq}
	if _, taken := t.queued[p]; taken {
		t.fault("%v is already taken", p)
	}
	t.queued[p] = entry
}

// DeleteQueued implements flowcontrol.Tables.
func (t *Tables) DeleteQueued(q flowcontrol.QueueKey, priority uint8, seq uint64) {
	p := QueuePosition{q, priority, seq}
	if _, there := t.queued[p]; !there {
		t.fault("no entry at %v", p)
	}
	delete(t.queued, p)
}

// FirstChild implements flowcontrol.Tables.
func (t *Tables) FirstChild(ring flowcontrol.CounterKey, from, before uint64) (uint64, flowcontrol.Child, error) {
	for seq := from; seq < before; seq++ {
		if child, there := t.children[RingPosition{ring, seq}]; there {
			return seq, child, nil
		}
	}
	return 0, flowcontrol.Child{}, nil
}

// PutChild implements flowcontrol.Tables.
func (t *Tables) PutChild(ring flowcontrol.CounterKey, seq uint64, c flowcontrol.Child) {
	p := RingPosition{ring, seq}
	if _, taken := t.children[p]; taken {
		t.fault("%v is already taken", p)
	}
	t.children[p] = c
}

// DeleteChild implements flowcontrol.Tables.
func (t *Tables) DeleteChild(ring flowcontrol.CounterKey, seq uint64) {
	p := RingPosition{ring, seq}
	if _, there := t.children[p]; !there {
		t.fault("no child at %v", p)
	}
	delete(t.children, p)
}

// Rules implements flowcontrol.Tables.
func (t *Tables) Rules() (*flowcontrol.Book, error) { return t.rules, nil }

// PutRules implements flowcontrol.Tables.
func (t *Tables) PutRules(b *flowcontrol.Book) { t.rules = b }

func (t *Tables) fault(format string, args ...any) {
	t.faults = append(t.faults, fmt.Sprintf(format, args...))
}

// FlowFaults lists the violations of the contract detected so far.
func (t *Tables) FlowFaults() []string { return t.faults }

// VQueues yields all queues in order.
func (t *Tables) VQueues() iter.Seq2[flowcontrol.QueueKey, flowcontrol.VQueue] {
	return inOrder(t.queues, compareQueues)
}

// Entries yields all queued invocations in order of position.
func (t *Tables) Entries() iter.Seq2[QueuePosition, flowcontrol.Queued] {
	return inOrder(t.queued, func(a, b QueuePosition) int {
		return cmp.Or(compareQueues(a.Queue, b.Queue), cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Seq, b.Seq))
	})
}

// Children yields the entries of all rings in order of position.
func (t *Tables) Children() iter.Seq2[RingPosition, flowcontrol.Child] {
	return inOrder(t.children, func(a, b RingPosition) int {
		return cmp.Or(compareCounters(a.Ring, b.Ring), cmp.Compare(a.Seq, b.Seq))
	})
}

func inOrder[K comparable, V any](m map[K]V, compare func(a, b K) int) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for _, k := range slices.SortedFunc(maps.Keys(m), compare) {
			if !yield(k, m[k]) {
				return
			}
		}
	}
}

func compareCounters(a, b flowcontrol.CounterKey) int {
	return cmp.Or(strings.Compare(a.Scope, b.Scope), strings.Compare(a.LimitKey.L1, b.LimitKey.L1), strings.Compare(a.LimitKey.L2, b.LimitKey.L2))
}

func compareQueues(a, b flowcontrol.QueueKey) int {
	return cmp.Or(compareCounters(a.Counter(), b.Counter()), strings.Compare(a.Service, b.Service))
}
