// Package flowtest has the scheduler's tables in memory, for tests.
package flowtest

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"platform/flowcontrol"
)

// Tables are the scheduler's tables in memory. The zero value is not usable.
type Tables struct {
	counters map[flowcontrol.CounterKey]flowcontrol.Counter
	queues   map[flowcontrol.QueueKey]flowcontrol.VQueue
	queued   map[Place]flowcontrol.Queued
	children map[Turn]flowcontrol.Child
	rules    *flowcontrol.Book
	faults   []string
}

var _ flowcontrol.Tables = (*Tables)(nil)

// Place is a place in a queue.
type Place struct {
	Queue    flowcontrol.QueueKey
	Priority uint8
	Place    uint64
}

// Turn is a place in a ring.
type Turn struct {
	Ring  flowcontrol.CounterKey
	Place uint64
}

// New returns empty tables.
func New() *Tables {
	return &Tables{
		counters: map[flowcontrol.CounterKey]flowcontrol.Counter{},
		queues:   map[flowcontrol.QueueKey]flowcontrol.VQueue{},
		queued:   map[Place]flowcontrol.Queued{},
		children: map[Turn]flowcontrol.Child{},
		rules:    &flowcontrol.Book{},
	}
}

// Clone is a copy that shares nothing that changes.
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
func (t *Tables) Counters() iter.Seq2[flowcontrol.NamedCounter, error] {
	return func(yield func(flowcontrol.NamedCounter, error) bool) {
		for _, k := range slices.SortedFunc(maps.Keys(t.counters), compareCounters) {
			if !yield(flowcontrol.NamedCounter{Key: k, Counter: t.counters[k]}, nil) {
				return
			}
		}
	}
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

// Queued implements flowcontrol.Tables.
func (t *Tables) Queued(q flowcontrol.QueueKey, priority uint8, place uint64) (flowcontrol.Queued, error) {
	return t.queued[Place{q, priority, place}], nil
}

// PutQueued implements flowcontrol.Tables.
func (t *Tables) PutQueued(q flowcontrol.QueueKey, priority uint8, place uint64, who flowcontrol.Queued) {
	p := Place{q, priority, place}
	if _, taken := t.queued[p]; taken {
		t.fault("two wait at %v", p)
	}
	t.queued[p] = who
}

// DeleteQueued implements flowcontrol.Tables.
func (t *Tables) DeleteQueued(q flowcontrol.QueueKey, priority uint8, place uint64) {
	p := Place{q, priority, place}
	if _, there := t.queued[p]; !there {
		t.fault("nobody waits at %v", p)
	}
	delete(t.queued, p)
}

// Child implements flowcontrol.Tables.
func (t *Tables) Child(ring flowcontrol.CounterKey, place uint64) (flowcontrol.Child, error) {
	return t.children[Turn{ring, place}], nil
}

// PutChild implements flowcontrol.Tables.
func (t *Tables) PutChild(ring flowcontrol.CounterKey, place uint64, c flowcontrol.Child) {
	p := Turn{ring, place}
	if _, taken := t.children[p]; taken {
		t.fault("two at %v", p)
	}
	t.children[p] = c
}

// DeleteChild implements flowcontrol.Tables.
func (t *Tables) DeleteChild(ring flowcontrol.CounterKey, place uint64) {
	p := Turn{ring, place}
	if _, there := t.children[p]; !there {
		t.fault("nobody at %v", p)
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

// FlowFaults lists the violations of the contract seen so far.
func (t *Tables) FlowFaults() []string { return t.faults }

// VQueues yields all queues in order.
func (t *Tables) VQueues() iter.Seq2[flowcontrol.QueueKey, flowcontrol.VQueue] {
	return inOrder(t.queues, compareQueues)
}

// Line yields all who stand in line, in order of the places.
func (t *Tables) Line() iter.Seq2[Place, flowcontrol.Queued] {
	return inOrder(t.queued, func(a, b Place) int {
		return cmp.Or(compareQueues(a.Queue, b.Queue), cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Place, b.Place))
	})
}

// Children yields all rings in order of the places.
func (t *Tables) Children() iter.Seq2[Turn, flowcontrol.Child] {
	return inOrder(t.children, func(a, b Turn) int {
		return cmp.Or(compareCounters(a.Ring, b.Ring), cmp.Compare(a.Place, b.Place))
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
