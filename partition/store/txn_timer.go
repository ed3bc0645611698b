package store

import "platform/partition/machine"

const timerKeyLen = prefixLen + 8 + 1 + idLen + 4 // plus the name

// HasTimer implements machine.State.
func (t *Txn) HasTimer(timer machine.Timer) (bool, error) {
	key := t.space.timer(t.keys.room(timerKeyLen), &timer)
	b, err := t.smallRow(key)
	return b != nil, err
}

var noValue = []byte{}

// PutTimer implements machine.State.
func (t *Txn) PutTimer(timer machine.Timer) {
	t.small.put(t.keys.keep(t.space.timer(t.keys.room(timerKeyLen), &timer)), noValue)
}

// DeleteTimer implements machine.State.
func (t *Txn) DeleteTimer(timer machine.Timer) {
	t.small.remove(t.keys.keep(t.space.timer(t.keys.room(timerKeyLen), &timer)))
}
