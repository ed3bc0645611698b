package store

import (
	"bytes"
	"fmt"
	"slices"

	"platform/flowcontrol"
	"platform/partition/codec"
)

// Counter implements flowcontrol.Tables.
func (t *Txn) Counter(k flowcontrol.CounterKey) (flowcontrol.Counter, error) {
	key := t.space.limit(t.keys.room(limitLen(&k)), tableCounters, &k)
	return cached(t, &t.limits, t.p.cache.limits, maxCounters, key, codec.DecodeCounter)
}

// cached reads a row from the write set, the cache or the database.
func cached[V any](t *Txn, set *writeSet[V], rows map[string]V, limit int, key []byte, decode func([]byte) (V, error)) (v V, err error) {
	if r := set.find(key); r != nil {
		return r.value, nil
	}
	if v, ok := rows[string(key)]; ok {
		return v, nil
	}
	b, err := t.stored(key)
	if err != nil {
		return v, err
	}
	if b != nil {
		if v, err = decode(b); err != nil {
			return decoded(key, v, err)
		}
	}
	putRow(rows, key, v, limit)
	return v, nil
}

// PutCounter implements flowcontrol.Tables.
func (t *Txn) PutCounter(k flowcontrol.CounterKey, c flowcontrol.Counter) {
	t.limits.put(t.keys.keep(t.space.limit(t.keys.room(limitLen(&k)), tableCounters, &k)), c)
}

// Counters implements flowcontrol.Tables.
func (t *Txn) Counters(from flowcontrol.CounterKey, most int) ([]flowcontrol.NamedCounter, error) {
	rows, err := t.counterRows(t.space.limit(nil, tableCounters, &from), most)
	if err != nil {
		return nil, fmt.Errorf("read counters: %w", err)
	}
	all := make([]flowcontrol.NamedCounter, len(rows))
	for i, r := range rows {
		k, _, err := limitOf(r.key)
		if err != nil {
			return nil, fmt.Errorf("read counters: %w", err)
		}
		all[i] = flowcontrol.NamedCounter{Key: k, Counter: r.value}
	}
	return all, nil
}

// counterRows merges written rows with as many committed ones as can be needed.
func (t *Txn) counterRows(lower []byte, most int) ([]row[flowcontrol.Counter], error) {
	var rows []row[flowcontrol.Counter]
	for _, r := range t.limits.rows {
		if r.value != (flowcontrol.Counter{}) && bytes.Compare(r.key, lower) >= 0 {
			rows = append(rows, r)
		}
	}
	committed, err := t.committed()
	if err != nil {
		return nil, err
	}
	read := 0
	err = committed.each(lower, after(t.space.table(nil, tableCounters)), func(key, value []byte) (bool, error) {
		if t.limits.find(key) != nil {
			return true, nil
		}
		c, err := codec.DecodeCounter(value)
		rows = append(rows, row[flowcontrol.Counter]{key: bytes.Clone(key), value: c})
		read++
		return err == nil && read < most, err
	})
	slices.SortFunc(rows, func(a, b row[flowcontrol.Counter]) int { return bytes.Compare(a.key, b.key) })
	return rows[:min(len(rows), most)], err
}

// VQueue implements flowcontrol.Tables.
func (t *Txn) VQueue(k flowcontrol.QueueKey) (flowcontrol.VQueue, error) {
	key := t.space.vqueue(t.keys.room(vqueueLen(&k)), tableVQueues, &k)
	return cached(t, &t.vqueues, t.p.cache.vqueues, maxVQueues, key, codec.DecodeVQueue)
}

// PutVQueue implements flowcontrol.Tables.
func (t *Txn) PutVQueue(k flowcontrol.QueueKey, q flowcontrol.VQueue) {
	t.vqueues.put(t.keys.keep(t.space.vqueue(t.keys.room(vqueueLen(&k)), tableVQueues, &k)), q)
}

// fillFlow writes counters, vqueues and the rules.
func (t *Txn) fillFlow() {
	for i := range t.limits.rows {
		r := &t.limits.rows[i]
		if r.value == (flowcontrol.Counter{}) {
			t.delete(r.key)
		} else {
			t.set(r.key, codec.AppendCounter(t.scratch[:0], &r.value))
		}
		putRow(t.p.cache.limits, r.key, r.value, maxCounters)
	}
	for i := range t.vqueues.rows {
		r := &t.vqueues.rows[i]
		if r.value == (flowcontrol.VQueue{}) {
			t.delete(r.key)
		} else {
			t.set(r.key, codec.AppendVQueue(t.scratch[:0], &r.value))
		}
		putRow(t.p.cache.vqueues, r.key, r.value, maxVQueues)
	}
	if t.rules != nil {
		t.set(t.space.table(t.keys.room(prefixLen), tableRules), codec.AppendRules(t.scratch[:0], t.rules))
	}
}

func (t *Txn) queuedKey(q *flowcontrol.QueueKey, priority uint8, slot uint64) []byte {
	return t.space.queued(t.keys.room(vqueueLen(q)+9), q, priority, slot)
}

// FirstQueued implements flowcontrol.Tables.
func (t *Txn) FirstQueued(k flowcontrol.QueueKey, priority uint8, from, before uint64) (seq uint64, q flowcontrol.Queued, err error) {
	key := t.queuedKey(&k, priority, from)
	seq, b, err := t.firstNumbered(key, before)
	if err != nil || b == nil {
		return 0, q, err
	}
	q, err = codec.DecodeQueued(b)
	q, err = decoded(key, q, err)
	return seq, q, err
}

// PutQueued implements flowcontrol.Tables.
func (t *Txn) PutQueued(q flowcontrol.QueueKey, priority uint8, slot uint64, queued flowcontrol.Queued) {
	t.small.put(t.keys.keep(t.queuedKey(&q, priority, slot)), t.keys.keep(codec.AppendQueued(t.keys.room(queuedLen), queued)))
}

// queuedLen is the maximum length of the record of a vqueue slot.
const queuedLen = 2 + idLen + 1 + 10

// DeleteQueued implements flowcontrol.Tables.
func (t *Txn) DeleteQueued(q flowcontrol.QueueKey, priority uint8, slot uint64) {
	t.small.remove(t.keys.keep(t.queuedKey(&q, priority, slot)))
}

func (t *Txn) ringKey(k *flowcontrol.CounterKey, slot uint64) []byte {
	return t.space.ring(t.keys.room(limitLen(k)+8), k, slot)
}

// FirstChild implements flowcontrol.Tables.
func (t *Txn) FirstChild(ring flowcontrol.CounterKey, from, before uint64) (seq uint64, c flowcontrol.Child, err error) {
	key := t.ringKey(&ring, from)
	seq, b, err := t.firstNumbered(key, before)
	if err != nil || b == nil {
		return 0, c, err
	}
	c, err = codec.DecodeChild(b)
	c, err = decoded(key, c, err)
	return seq, c, err
}

// PutChild implements flowcontrol.Tables.
func (t *Txn) PutChild(ring flowcontrol.CounterKey, slot uint64, c flowcontrol.Child) {
	t.small.put(t.keys.keep(t.ringKey(&ring, slot)), codec.AppendChild(nil, c))
}

// DeleteChild implements flowcontrol.Tables.
func (t *Txn) DeleteChild(ring flowcontrol.CounterKey, slot uint64) {
	t.small.remove(t.keys.keep(t.ringKey(&ring, slot)))
}

// Rules implements flowcontrol.Tables.
func (t *Txn) Rules() (*flowcontrol.Book, error) {
	if t.rules != nil {
		return t.rules, nil
	}
	key := t.space.table(nil, tableRules)
	b, err := t.stored(key)
	if err != nil {
		return nil, err
	}
	return rulesOf(key, b)
}

// rulesOf decodes the rule book; an empty one if there is no row.
func rulesOf(key, b []byte) (*flowcontrol.Book, error) {
	book := &flowcontrol.Book{}
	if b == nil {
		return book, nil
	}
	var err error
	*book, err = codec.DecodeRules(b)
	return decoded(key, book, err)
}

// PutRules implements flowcontrol.Tables. It takes ownership of b.
func (t *Txn) PutRules(b *flowcontrol.Book) { t.rules = b }
