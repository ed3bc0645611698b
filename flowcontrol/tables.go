package flowcontrol

import "iter"

// Tables are the rows that the scheduler works on. Reads see the writes made before
// them; writing methods cannot fail: what fails is the batch they belong to.
type Tables interface {
	// Counter is the zero Counter where there is none; putting the zero Counter
	// deletes the row.
	Counter(CounterKey) (Counter, error)
	PutCounter(CounterKey, Counter)
	// Counters yields all counters ordered by key. Tables are not to be changed
	// meanwhile.
	Counters() iter.Seq2[NamedCounter, error]

	// VQueue is the zero VQueue where there is none; putting the zero VQueue deletes
	// the row.
	VQueue(QueueKey) (VQueue, error)
	PutVQueue(QueueKey, VQueue)

	// Queued is who waits at a place, zero if nobody does.
	Queued(q QueueKey, priority uint8, place uint64) (Queued, error)
	PutQueued(q QueueKey, priority uint8, place uint64, who Queued)
	DeleteQueued(q QueueKey, priority uint8, place uint64)

	// Child is who stands at a place of a counter's ring, zero if nobody does.
	Child(ring CounterKey, place uint64) (Child, error)
	PutChild(ring CounterKey, place uint64, c Child)
	DeleteChild(ring CounterKey, place uint64)

	// Rules is the rule book; an empty one if none was ever put. It never changes.
	Rules() (*Book, error)
	PutRules(*Book)
}
