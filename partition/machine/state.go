package machine

import (
	"iter"

	"platform/flowcontrol"
	"platform/internal/feature"
	"platform/internal/ids"
	"platform/partition/journal"
)

// State is the part of a partition's tables that commands may access. The store implements
// it with one write batch per Raft batch; tests use maps. Reads see preceding writes.
// Writing methods cannot fail: errors surface when the batch is committed.
//
// Bytes and records passed in or out are shared and never modified in place, with one
// exception: an *Invocation from Invocation belongs to the machine until it is put back.
type State interface {
	// Meta is the partition's own record; the machine changes it in place.
	Meta() *Meta

	// Invocation returns nil if the ID is unknown.
	Invocation(ids.Invocation) (*Invocation, error)
	// Absent declares that no invocation has an ID, nor anything that belongs to it exists, so
	// that the tables need not be read when one is put.
	Absent(ids.Invocation)
	PutInvocation(*Invocation)
	DeleteInvocation(ids.Invocation)

	Entry(id ids.Invocation, index uint32) (journal.Entry, error)
	AppendEntry(id ids.Invocation, index uint32, e journal.Entry)
	// DeleteJournal deletes the entries and notifications of an invocation.
	DeleteJournal(id ids.Invocation, length uint32)

	// Event returns an event of the history of an invocation.
	Event(id ids.Invocation, number uint32) (Event, error)
	PutEvent(id ids.Invocation, number uint32, e Event)
	// DeleteEvents deletes the events first ≤ number < next.
	DeleteEvents(id ids.Invocation, first, next uint32)

	// Notified returns whether a notification is in the journal, and how it ended.
	Notified(ids.Invocation, journal.NotificationID) (journal.Settled, error)
	PutNotified(ids.Invocation, journal.NotificationID, journal.Settled)

	Value(Object, []byte) (value []byte, found bool, err error)
	PutValue(o Object, key, value []byte)
	DeleteValue(o Object, key []byte)
	// Values yields an object's state in key order.
	Values(Object) iter.Seq2[StateEntry, error]
	// Keys yields the keys of an object's state in order, without reading the values.
	Keys(Object) iter.Seq2[[]byte, error]
	// DeleteValues deletes an object's state. Its cost does not depend on the size of the state.
	DeleteValues(Object)

	// Lock returns the zero Lock for an object without a holder or waiters; putting the
	// zero Lock deletes the record.
	Lock(Object) (Lock, error)
	PutLock(Object, Lock)
	// FirstWaiting returns the first invocation in the queue for an object with a sequence
	// number from ≤ n < before; the zero ID if there is none. Its cost hardly depends on the
	// number of gaps.
	FirstWaiting(o Object, from, before uint64) (seq uint64, id ids.Invocation, err error)
	PutWaiting(o Object, seq uint64, id ids.Invocation)
	DeleteWaiting(o Object, seq uint64)

	// Promise returns the zero Promise for one that was never requested or completed.
	Promise(o Object, key string) (Promise, error)
	PutPromise(o Object, key string, p Promise)
	DeletePromise(o Object, key string)
	// Promises yields a workflow's promises in key order.
	Promises(Object) iter.Seq2[NamedPromise, error]

	HasTimer(Timer) (bool, error)
	PutTimer(Timer)
	DeleteTimer(Timer)

	// Outgoing messages per receiving partition, numbered from 1.
	LastSent(to uint32) (uint64, error)
	// PutLastSent skips the numbers up to and including seq.
	PutLastSent(to uint32, seq uint64)
	PutOutgoing(to uint32, seq uint64, m Message)
	// DeleteOutgoing deletes the messages up to and including seq.
	DeleteOutgoing(to uint32, upto uint64)
	LastDelivered(from uint32) (uint64, error)
	PutLastDelivered(from uint32, seq uint64)

	// Ingested is what is stored about the records of a stream in this partition. Without any,
	// its offsets are NoOffset.
	Ingested(Stream) (Ingested, error)
	PutIngested(Stream, Ingested)
	// FirstIncarnation is the first incarnation of a subscription that was not forgotten.
	FirstIncarnation(subscription string) (uint64, error)
	// Position returns the position of a topic partition, of whichever incarnation and topic
	// ID; nil if there is none.
	Position(Stream) (*StreamPosition, error)
	PutPosition(*StreamPosition)
	// DeleteStreams deletes the rows of Ingested of the incarnations of a subscription before
	// the given one, which becomes the FirstIncarnation, and on request its positions and dead
	// letters.
	DeleteStreams(subscription string, before uint64, positions bool)
	// DeadLetter returns a dead letter; nil if there is none.
	DeadLetter(subscription string, id DeadLetterID) (*DeadLetter, error)
	PutDeadLetter(*DeadLetter)
	DeleteDeadLetter(subscription string, id DeadLetterID)
	// DeadLetters returns the number and size of the dead letters of a subscription.
	DeadLetters(subscription string) (DeadLetters, error)
	// PutDeadLetters stores them; zeros delete the row.
	PutDeadLetters(subscription string, total DeadLetters)

	// The tables of flow control: counters, vqueues, waiting invocations, the rule book.
	flowcontrol.Tables
}

// Meta is the record of the partition as a whole: what the log has established so far.
type Meta struct {
	Epoch   uint64 // newest leader epoch
	Clock   int64  // partition time: the largest header time applied
	Attempt uint64 // last assigned attempt number
	Rules   uint32 // version of the rule book
	Flow    bool   // the last leader had flow control enabled
	// Level is the highest feature level of an applied entry; 0 means the first level.
	Level feature.Level
	// Reevaluation is whether the counters are being re-evaluated after a change of the rules;
	// from feature level 4 on.
	Reevaluation Reevaluation
}

// Reevaluation is the state of the re-evaluation of all counters after a change of the rules.
type Reevaluation uint8

// The states. A timer continues a re-evaluation; what changes the rules meanwhile does not
// restart it, so that frequent changes do not keep it from reaching the last counter.
const (
	NotReevaluating Reevaluation = iota
	Reevaluating
	ReevaluatingTwice // the rules have changed again since it began
)

// Lock is the holder of an object's key and the queue for it. Waiting invocations have the
// sequence numbers Head ≤ n < Tail; an invocation that was removed while it waited leaves a
// gap.
type Lock struct {
	Holder     ids.Invocation
	Head, Tail uint64
}

// StateEntry is one key and value of an object's state.
type StateEntry struct{ Key, Value []byte }

// Promise is a durable promise of a workflow: completed, or with waiters. The waiters of a
// completed promise are still to be answered.
type Promise struct {
	Result  *journal.Result // nil: not completed
	Waiting []Sink
}

// NamedPromise is a promise and its key.
type NamedPromise struct {
	Key string
	Promise
}

// Shards is the number of this partition and of all partitions.
type Shards struct{ Self, Count uint32 }

// of returns the partition that owns a partition key.
func (s Shards) of(partitionKey uint64) uint32 { return PartitionOf(partitionKey, s.Count) }
