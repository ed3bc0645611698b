package flowcontrol

import "iter"

// Tables are the rows that the scheduler uses. Reads see preceding writes. Writing methods
// cannot fail: errors surface when the batch is committed.
type Tables interface {
	// Counter returns the zero Counter if there is no row; putting the zero Counter deletes
	// the row.
	Counter(CounterKey) (Counter, error)
	PutCounter(CounterKey, Counter)
	// Counters yields all counters ordered by key. Tables must not be modified meanwhile.
	Counters() iter.Seq2[NamedCounter, error]

	// VQueue returns the zero VQueue if there is no row; putting the zero VQueue deletes
	// the row.
	VQueue(QueueKey) (VQueue, error)
	PutVQueue(QueueKey, VQueue)

	// Queued returns the entry with a sequence number, or the zero Queued.
	Queued(q QueueKey, priority uint8, seq uint64) (Queued, error)
	PutQueued(q QueueKey, priority uint8, seq uint64, entry Queued)
	DeleteQueued(q QueueKey, priority uint8, seq uint64)

	// Child returns the entry of a counter's ring with a sequence number, or the zero
	// Child.
	Child(ring CounterKey, seq uint64) (Child, error)
	PutChild(ring CounterKey, seq uint64, c Child)
	DeleteChild(ring CounterKey, seq uint64)

	// Rules returns the immutable rule book; an empty one if none was ever put.
	Rules() (*Book, error)
	PutRules(*Book)
}
