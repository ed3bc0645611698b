package machinetest

import (
	"bytes"
	"fmt"
	"iter"
	"maps"
	"slices"

	"platform/flowcontrol/flowtest"
	"platform/internal/ids"
	"platform/partition/journal"
	"platform/partition/machine"
)

// State holds a partition's tables in memory. The zero value is not usable.
//
// A strict State detects violations of the State contract, which Faults reports: records
// and bytes modified after they were passed in, entries appended at the wrong index,
// deletions of rows that do not exist.
type State struct {
	*flowtest.Tables
	strict  bool
	faults  []string
	watched []watched

	meta        machine.Meta
	invocations map[ids.Invocation]record
	entries     map[ids.Invocation][]journal.Entry
	events      map[ids.Invocation]map[uint32]machine.Event
	notified    map[ids.Invocation]map[journal.NotificationID]journal.Settled
	values      map[machine.Object]map[string][]byte
	promises    map[machine.Object]map[string]machine.Promise
	locks       map[machine.Object]machine.Lock
	waiting     map[place]ids.Invocation
	timers      map[machine.Timer]bool
	sent        map[uint32]uint64
	outgoing    map[uint32]map[uint64]machine.Message
	skipped     map[skip]bool
	delivered   map[uint32]uint64
	ingested    map[machine.Stream]machine.Ingested
	first       map[string]uint64 // incarnation by subscription
	positions   map[topicPartition]*machine.StreamPosition
	letters     map[string]map[machine.DeadLetterID]*machine.DeadLetter // by subscription
	totals      map[string]machine.DeadLetters
}

var _ machine.State = (*State)(nil)

// record is a stored invocation; frozen is its copy from when it was put.
type record struct{ given, frozen *machine.Invocation }

// place is a position in the queue of an object.
type place struct {
	Object machine.Object
	Seq    uint64
}

// watched are bytes that must not change.
type watched struct {
	what          string
	given, frozen []byte
}

// skip means that sequence numbers after one are skipped.
type skip struct {
	to    uint32
	after uint64
}

// New returns empty tables that are fast and do not check the machine.
func New() *State {
	return &State{
		Tables:      flowtest.New(),
		invocations: map[ids.Invocation]record{},
		entries:     map[ids.Invocation][]journal.Entry{},
		events:      map[ids.Invocation]map[uint32]machine.Event{},
		notified:    map[ids.Invocation]map[journal.NotificationID]journal.Settled{},
		values:      map[machine.Object]map[string][]byte{},
		promises:    map[machine.Object]map[string]machine.Promise{},
		locks:       map[machine.Object]machine.Lock{},
		waiting:     map[place]ids.Invocation{},
		timers:      map[machine.Timer]bool{},
		sent:        map[uint32]uint64{},
		outgoing:    map[uint32]map[uint64]machine.Message{},
		skipped:     map[skip]bool{},
		delivered:   map[uint32]uint64{},
		ingested:    map[machine.Stream]machine.Ingested{},
		first:       map[string]uint64{},
		positions:   map[topicPartition]*machine.StreamPosition{},
		letters:     map[string]map[machine.DeadLetterID]*machine.DeadLetter{},
		totals:      map[string]machine.DeadLetters{},
	}
}

// NewStrict returns empty tables that check the machine's use of them.
func NewStrict() *State {
	s := New()
	s.strict = true
	return s
}

func (s *State) fault(format string, args ...any) {
	s.faults = append(s.faults, fmt.Sprintf(format, args...))
}

func (s *State) watch(what string, b []byte) {
	if s.strict && len(b) > 0 {
		s.watched = append(s.watched, watched{what, b, bytes.Clone(b)})
	}
}

// Meta implements machine.State.
func (s *State) Meta() *machine.Meta { return &s.meta }

// Invocation implements machine.State.
func (s *State) Invocation(id ids.Invocation) (*machine.Invocation, error) {
	r, ok := s.invocations[id]
	if !ok {
		return nil, nil
	}
	if s.strict {
		return cloneInvocation(r.given), nil
	}
	inv := *r.given
	return &inv, nil
}

// Absent implements machine.State.
func (s *State) Absent(id ids.Invocation) {
	if _, ok := s.invocations[id]; ok {
		s.fault("invocation %s is declared absent", id)
	}
}

// PutInvocation implements machine.State.
func (s *State) PutInvocation(inv *machine.Invocation) {
	r := record{given: inv}
	if s.strict {
		r.frozen = cloneInvocation(inv)
	}
	s.invocations[inv.ID] = r
}

// DeleteInvocation implements machine.State.
func (s *State) DeleteInvocation(id ids.Invocation) {
	if _, ok := s.invocations[id]; !ok {
		s.fault("delete unknown invocation %s", id)
	}
	delete(s.invocations, id)
}

// Entry implements machine.State.
func (s *State) Entry(id ids.Invocation, index uint32) (journal.Entry, error) {
	entries := s.entries[id]
	if int(index) >= len(entries) {
		return journal.Entry{}, fmt.Errorf("entry %d of %s: there are %d", index, id, len(entries))
	}
	return entries[index], nil
}

// AppendEntry implements machine.State.
func (s *State) AppendEntry(id ids.Invocation, index uint32, e journal.Entry) {
	if int(index) != len(s.entries[id]) {
		s.fault("append entry %d of %s after %d", index, id, len(s.entries[id]))
	}
	s.watch("journal entry", e.Payload)
	s.entries[id] = append(s.entries[id], e)
}

// DeleteJournal implements machine.State.
func (s *State) DeleteJournal(id ids.Invocation, length uint32) {
	if int(length) != len(s.entries[id]) {
		s.fault("delete journal of %s with length %d, not %d", id, length, len(s.entries[id]))
	}
	delete(s.entries, id)
	delete(s.notified, id)
}

// Event implements machine.State.
func (s *State) Event(id ids.Invocation, number uint32) (machine.Event, error) {
	e, found := s.events[id][number]
	if !found {
		return e, fmt.Errorf("history of %s has no event %d", id, number)
	}
	return e, nil
}

// PutEvent implements machine.State.
func (s *State) PutEvent(id ids.Invocation, number uint32, e machine.Event) {
	if s.events[id] == nil {
		s.events[id] = map[uint32]machine.Event{}
	}
	s.events[id][number] = e
}

// DeleteEvents implements machine.State.
func (s *State) DeleteEvents(id ids.Invocation, first, next uint32) {
	for n := first; n < next; n++ {
		if _, found := s.events[id][n]; !found {
			s.fault("delete unknown event %d of %s", n, id)
		}
		delete(s.events[id], n)
	}
	if len(s.events[id]) == 0 {
		delete(s.events, id)
	}
}

// Notified implements machine.State.
func (s *State) Notified(id ids.Invocation, n journal.NotificationID) (journal.Settled, error) {
	return s.notified[id][n], nil
}

// PutNotified implements machine.State.
func (s *State) PutNotified(id ids.Invocation, n journal.NotificationID, how journal.Settled) {
	if s.notified[id] == nil {
		s.notified[id] = map[journal.NotificationID]journal.Settled{}
	}
	s.notified[id][n] = how
}

// Value implements machine.State.
func (s *State) Value(o machine.Object, key []byte) ([]byte, bool, error) {
	v, found := s.values[o][string(key)]
	return v, found, nil
}

// PutValue implements machine.State.
func (s *State) PutValue(o machine.Object, key, value []byte) {
	if s.values[o] == nil {
		s.values[o] = map[string][]byte{}
	}
	s.watch("value", value)
	s.values[o][string(key)] = value
}

// DeleteValue implements machine.State.
func (s *State) DeleteValue(o machine.Object, key []byte) {
	delete(s.values[o], string(key))
	if len(s.values[o]) == 0 {
		delete(s.values, o)
	}
}

// Values implements machine.State.
func (s *State) Values(o machine.Object) iter.Seq2[machine.StateEntry, error] {
	return func(yield func(machine.StateEntry, error) bool) {
		for _, k := range slices.Sorted(maps.Keys(s.values[o])) {
			v, ok := s.values[o][k]
			if !ok {
				s.fault("state of %v was modified during iteration", o)
			}
			if !yield(machine.StateEntry{Key: []byte(k), Value: v}, nil) {
				return
			}
		}
	}
}

// Keys implements machine.State.
func (s *State) Keys(o machine.Object) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for e, err := range s.Values(o) {
			if !yield(e.Key, err) {
				return
			}
		}
	}
}

// DeleteValues implements machine.State.
func (s *State) DeleteValues(o machine.Object) { delete(s.values, o) }

// Promise implements machine.State.
func (s *State) Promise(o machine.Object, key string) (machine.Promise, error) {
	return s.promises[o][key], nil
}

// PutPromise implements machine.State.
func (s *State) PutPromise(o machine.Object, key string, p machine.Promise) {
	if s.promises[o] == nil {
		s.promises[o] = map[string]machine.Promise{}
	}
	if p.Result == nil && len(p.Waiting) == 0 {
		s.fault("promise %s of %v has neither a result nor waiters", key, o)
	}
	s.promises[o][key] = p
}

// DeletePromise implements machine.State.
func (s *State) DeletePromise(o machine.Object, key string) {
	if _, ok := s.promises[o][key]; !ok {
		s.fault("delete unknown promise %s of %v", key, o)
	}
	delete(s.promises[o], key)
	if len(s.promises[o]) == 0 {
		delete(s.promises, o)
	}
}

// Promises implements machine.State.
func (s *State) Promises(o machine.Object) iter.Seq2[machine.NamedPromise, error] {
	return func(yield func(machine.NamedPromise, error) bool) {
		for _, k := range slices.Sorted(maps.Keys(s.promises[o])) {
			p, ok := s.promises[o][k]
			if !ok {
				s.fault("promises of %v were modified during iteration", o)
			}
			if !yield(machine.NamedPromise{Key: k, Promise: p}, nil) {
				return
			}
		}
	}
}

// Lock implements machine.State.
func (s *State) Lock(o machine.Object) (machine.Lock, error) { return s.locks[o], nil }

// PutLock implements machine.State.
func (s *State) PutLock(o machine.Object, l machine.Lock) {
	if l == (machine.Lock{}) {
		delete(s.locks, o)
		return
	}
	s.locks[o] = l
}

// FirstWaiting implements machine.State.
func (s *State) FirstWaiting(o machine.Object, from, before uint64) (uint64, ids.Invocation, error) {
	for seq := from; seq < before; seq++ {
		if id, there := s.waiting[place{o, seq}]; there {
			return seq, id, nil
		}
	}
	return 0, ids.Invocation{}, nil
}

// PutWaiting implements machine.State.
func (s *State) PutWaiting(o machine.Object, seq uint64, id ids.Invocation) {
	if _, taken := s.waiting[place{o, seq}]; taken {
		s.fault("sequence number %d of %v is already taken", seq, o)
	}
	s.waiting[place{o, seq}] = id
}

// DeleteWaiting implements machine.State.
func (s *State) DeleteWaiting(o machine.Object, seq uint64) {
	if _, ok := s.waiting[place{o, seq}]; !ok {
		s.fault("sequence number %d of %v is free", seq, o)
	}
	delete(s.waiting, place{o, seq})
}

// HasTimer implements machine.State.
func (s *State) HasTimer(t machine.Timer) (bool, error) { return s.timers[t], nil }

// PutTimer implements machine.State.
func (s *State) PutTimer(t machine.Timer) { s.timers[t] = true }

// DeleteTimer implements machine.State.
func (s *State) DeleteTimer(t machine.Timer) {
	if !s.timers[t] {
		s.fault("delete unknown timer %v", t)
	}
	delete(s.timers, t)
}

// LastSent implements machine.State.
func (s *State) LastSent(to uint32) (uint64, error) { return s.sent[to], nil }

// PutLastSent implements machine.State.
func (s *State) PutLastSent(to uint32, seq uint64) {
	if seq <= s.sent[to] {
		s.fault("numbers up to %d to partition %d are skipped after %d", seq, to, s.sent[to])
	}
	s.skipped[skip{to, s.sent[to]}] = true
	s.sent[to] = seq
}

// PutOutgoing implements machine.State.
func (s *State) PutOutgoing(to uint32, seq uint64, m machine.Message) {
	if seq != s.sent[to]+1 {
		s.fault("message %d to partition %d after %d", seq, to, s.sent[to])
	}
	if s.outgoing[to] == nil {
		s.outgoing[to] = map[uint64]machine.Message{}
	}
	s.outgoing[to][seq], s.sent[to] = m, seq
}

// DeleteOutgoing implements machine.State.
func (s *State) DeleteOutgoing(to uint32, upto uint64) {
	maps.DeleteFunc(s.outgoing[to], func(seq uint64, _ machine.Message) bool { return seq <= upto })
}

// LastDelivered implements machine.State.
func (s *State) LastDelivered(from uint32) (uint64, error) { return s.delivered[from], nil }

// PutLastDelivered implements machine.State.
func (s *State) PutLastDelivered(from uint32, seq uint64) { s.delivered[from] = seq }

// Outgoing returns a message of the outbox, or nil.
func (s *State) Outgoing(to uint32, seq uint64) machine.Message { return s.outgoing[to][seq] }

// Timers returns the registered timers in the order in which they are due.
func (s *State) Timers() []machine.Timer {
	return slices.SortedFunc(maps.Keys(s.timers), compareTimers)
}
