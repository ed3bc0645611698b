package store

import (
	"bytes"
	"encoding/binary"
)

// The keys of queues and rings end with a sequence number. Removed members leave gaps, which may
// be long: a kill removes thousands of waiting invocations.

// firstNumbered returns the first row whose key equals key up to the number at its end, which is
// at least that of key and below before; nil if there is none. The writes of the table must be in
// the small set.
func (t *Txn) firstNumbered(key []byte, before uint64) (seq uint64, value []byte, err error) {
	seq = numberOf(key)
	if seq >= before {
		return 0, nil, nil
	}
	if value, err = t.smallRow(key); err != nil || value != nil {
		return seq, value, err
	}
	lower := bytes.Clone(key) // key may be in memory that is reused
	upper := binary.BigEndian.AppendUint64(bytes.Clone(key[:len(key)-8]), before)
	for i := range t.small.rows {
		r := &t.small.rows[i]
		if !r.deleted && bytes.Compare(r.key, lower) > 0 && bytes.Compare(r.key, upper) < 0 {
			seq, value, upper = numberOf(r.key), r.value, r.key
		}
	}
	committed, err := t.committed()
	if err != nil {
		return 0, nil, err
	}
	err = committed.each(lower, upper, func(k, v []byte) (more bool, err error) {
		if t.small.find(k) != nil || t.inDeletedRange(k) {
			return true, nil
		}
		seq, value = numberOf(k), v
		return false, nil
	})
	return seq, value, err
}

// numberOf decodes the sequence number at the end of a key.
func numberOf(key []byte) uint64 { return binary.BigEndian.Uint64(key[len(key)-8:]) }
