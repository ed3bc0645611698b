package store

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/cockroachdb/pebble/v2"

	"platform/internal/ids"
	"platform/partition/journal"
	"platform/partition/machine"
)

// A key consists of the partition (2 bytes), the generation (1), the table (1) and the key
// within the table. Numbers are big endian, so that keys sort numerically. An import writes
// rows of the inactive generation.
//
// Keys are part of the disk format: their meaning must not change.
const (
	tableMeta             = 'm' // metadata of the partition
	tableLive             = 'i' // id → invocation that is not completed
	tableDone             = 'd' // id → completed invocation
	tableJournal          = 'j' // id, index → journal entry
	tableNotified         = 'n' // id, kind, index or name → how it was settled
	tableValues           = 'v' // object, key → value
	tablePromises         = 'p' // workflow, key → promise
	tableLocks            = 'l' // object → lock
	tableWaiting          = 'w' // object, slot → id
	tableTimers           = 't' // time, kind, id, completion → nothing
	tableOutbox           = 'o' // receiver, sequence number → message
	tableSent             = 's' // receiver → last sequence number
	tableDelivered        = 'r' // sender → last sequence number
	tableChunks           = 'x' // key of a large row, log entry, number → chunk of its value
	tableCounters         = 'c' // scope and limit key → counter
	tableVQueues          = 'q' // scope, limit key and service → vqueue
	tableQueued           = 'e' // vqueue, priority, slot → queued invocation
	tableRings            = 'h' // counter, slot → child in the round-robin ring
	tableRules            = 'b' // nothing → rule book
	tableIngested         = 'g' // subscription, incarnation, topic, topic ID, partition → last record
	tableForgotten        = 'f' // subscription → first incarnation that was not forgotten
	tablePositions        = 'k' // subscription, topic, partition → position
	tableDeadLetters      = 'u' // subscription, topic, partition, offset → dead letter
	tableDeadLetterTotals = 'a' // subscription → number and size of the dead letters
	tableEvents           = 'y' // id, number → event of its history
)

const (
	maxPartition = math.MaxUint16
	prefixLen    = 4
	idLen        = len(ids.Invocation{})
)

// Generations of a partition's rows. The header row contains the active one.
const (
	generationA = 1
	generationB = 2
)

// headerKey is the key of the header row; without that row, generation A is active.
func headerKey(partition uint16) []byte {
	return append(binary.BigEndian.AppendUint16(nil, partition), 0)
}

// space is the key space of one generation of a partition.
type space struct {
	partition  uint16
	generation byte
}

// table appends the prefix of the keys of a table.
func (s space) table(b []byte, table byte) []byte {
	return append(binary.BigEndian.AppendUint16(b, s.partition), s.generation, table)
}

// bounds returns the first key of the space and the first one after it.
func (s space) bounds() (lower, upper []byte) {
	lower = append(binary.BigEndian.AppendUint16(nil, s.partition), s.generation)
	return lower, after(lower)
}

func (s space) invocation(b []byte, table byte, id *ids.Invocation) []byte {
	return append(s.table(b, table), id[:]...)
}

func (s space) entry(b []byte, id *ids.Invocation, index uint32) []byte {
	return binary.BigEndian.AppendUint32(s.invocation(b, tableJournal, id), index)
}

// Notification kinds in keys.
const (
	byCompletion = 0
	bySignal     = 1
	byName       = 2
)

func (s space) notified(b []byte, id *ids.Invocation, n *journal.NotificationID) []byte {
	b = s.invocation(b, tableNotified, id)
	switch {
	case n.Name != "":
		return append(append(b, byName), n.Name...)
	case n.Signal:
		return binary.BigEndian.AppendUint32(append(b, bySignal), n.Index)
	default:
		return binary.BigEndian.AppendUint32(append(b, byCompletion), n.Index)
	}
}

func (s space) object(b []byte, table byte, o *machine.Object) []byte {
	b = s.table(b, table)
	b = appendPart(b, o.Scope)
	b = appendPart(b, o.Service)
	return appendPart(b, o.Key)
}

func (s space) value(b []byte, o *machine.Object, key []byte) []byte {
	return append(s.object(b, tableValues, o), key...)
}

func (s space) promise(b []byte, o *machine.Object, key string) []byte {
	return append(s.object(b, tablePromises, o), key...)
}

func (s space) waiting(b []byte, o *machine.Object, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(s.object(b, tableWaiting, o), seq)
}

func (s space) timer(b []byte, t *machine.Timer) []byte {
	b = s.timersAt(b, t.At)
	b = append(append(b, byte(t.Kind)), t.ID[:]...)
	return append(binary.BigEndian.AppendUint32(b, t.Completion), t.Name...)
}

// timersAt appends the key prefix of the timers of one millisecond.
func (s space) timersAt(b []byte, at int64) []byte {
	return binary.BigEndian.AppendUint64(s.table(b, tableTimers), uint64(at)^1<<63) // negative times sort first
}

func (s space) peer(b []byte, table byte, partition uint32) []byte {
	return binary.BigEndian.AppendUint32(s.table(b, table), partition)
}

func (s space) outgoing(b []byte, to uint32, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(s.peer(b, tableOutbox, to), seq)
}

// timerOf decodes a timer from its key without the prefix.
func timerOf(rest []byte) (t machine.Timer, ok bool) {
	const fixed = 8 + 1 + idLen + 4
	if len(rest) < fixed {
		return t, false
	}
	t.At = int64(binary.BigEndian.Uint64(rest) ^ 1<<63)
	t.Kind = machine.TimerKind(rest[8])
	copy(t.ID[:], rest[9:])
	t.Completion = binary.BigEndian.Uint32(rest[9+idLen:])
	t.Name = string(rest[fixed:])
	return t, true
}

// The parts of an object have any length and content. They are terminated by partEnd, and
// zero bytes are escaped, so that no object's key is a prefix of another's, and keys sort
// like their parts.
const (
	partEscape = 0xff // after a zero byte: the zero byte itself
	partEnd    = 0x01 // after a zero byte: end of the part
)

func appendPart(b []byte, part string) []byte {
	for i := 0; i < len(part); i++ {
		b = append(b, part[i])
		if part[i] == 0 {
			b = append(b, partEscape)
		}
	}
	return append(b, 0, partEnd)
}

// objectEnd returns the end of the three parts of an object at the beginning of b, or len(b)
// if b is truncated.
func objectEnd(b []byte) int {
	at := 0
	for range 3 {
		at += endOfPart(b[at:])
	}
	return at
}

// endOfPart returns the end of the part at the beginning of b, or len(b) if b is truncated.
func endOfPart(b []byte) int {
	for at := 0; ; {
		zero := bytes.IndexByte(b[at:], 0)
		if zero < 0 || at+zero+1 >= len(b) {
			return len(b)
		}
		at += zero + 2
		if b[at-1] == partEnd {
			return at
		}
	}
}

// after returns the smallest key greater than all keys with a prefix, which must not consist
// of 0xff only.
func after(prefix []byte) []byte {
	end := bytes.Clone(prefix)
	for i := len(end) - 1; ; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
}

// comparer orders keys bytewise. It defines the prefix of a key that bloom filters are built
// from: the owner for rows that are read by owner, so that the lookup of a missing journal
// or state costs no disk access, otherwise the entire key.
var comparer = func() *pebble.Comparer {
	c := *pebble.DefaultComparer
	c.Name = "platform.tables.1"
	c.Split = split
	return &c
}()

func split(key []byte) int {
	if len(key) < prefixLen {
		return len(key)
	}
	switch key[prefixLen-1] {
	case tableJournal, tableNotified, tableEvents:
		return min(len(key), prefixLen+idLen)
	case tableValues, tablePromises:
		return prefixLen + objectEnd(key[prefixLen:])
	case tableChunks:
		return prefixLen + endOfPart(key[prefixLen:])
	default:
		return len(key)
	}
}
