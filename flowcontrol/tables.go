package flowcontrol

// Tables are the rows that the scheduler uses. Reads see preceding writes. Writing methods
// cannot fail: errors surface when the batch is committed.
type Tables interface {
	// Counter returns the zero Counter if there is no row; putting the zero Counter deletes
	// the row.
	Counter(CounterKey) (Counter, error)
	PutCounter(CounterKey, Counter)
	// Counters returns the counters from a key on, ordered by key: fewer than most only if
	// there are no others.
	Counters(from CounterKey, most int) ([]NamedCounter, error)

	// VQueue returns the zero VQueue if there is no row; putting the zero VQueue deletes
	// the row.
	VQueue(QueueKey) (VQueue, error)
	PutVQueue(QueueKey, VQueue)

	QueuedReader
	PutQueued(q QueueKey, priority uint8, seq uint64, entry Queued)
	DeleteQueued(q QueueKey, priority uint8, seq uint64)

	// FirstChild returns the first entry of a counter's ring with a sequence number
	// from ≤ n < before; the zero Child if there is none. Its cost hardly depends on the
	// number of gaps.
	FirstChild(ring CounterKey, from, before uint64) (seq uint64, c Child, err error)
	PutChild(ring CounterKey, seq uint64, c Child)
	DeleteChild(ring CounterKey, seq uint64)

	// Rules returns the immutable rule book; an empty one if none was ever put.
	Rules() (*Book, error)
	PutRules(*Book)
}
