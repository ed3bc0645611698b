package store

import (
	"encoding/binary"
	"errors"

	"platform/flowcontrol"
)

func (s space) limit(b []byte, table byte, k *flowcontrol.CounterKey) []byte {
	b = s.table(b, table)
	b = appendPart(b, k.Scope)
	b = appendPart(b, k.LimitKey.L1)
	return appendPart(b, k.LimitKey.L2)
}

func (s space) vqueue(b []byte, table byte, k *flowcontrol.QueueKey) []byte {
	parent := k.Counter()
	return appendPart(s.limit(b, table, &parent), k.Service)
}

func (s space) queued(b []byte, k *flowcontrol.QueueKey, priority uint8, slot uint64) []byte {
	return binary.BigEndian.AppendUint64(append(s.vqueue(b, tableQueued, k), priority), slot)
}

func (s space) ring(b []byte, k *flowcontrol.CounterKey, slot uint64) []byte {
	return binary.BigEndian.AppendUint64(s.limit(b, tableRings, k), slot)
}

// limitLen returns a lower bound of the length of the key of a counter.
func limitLen(k *flowcontrol.CounterKey) int {
	return prefixLen + 8 + len(k.Scope) + len(k.LimitKey.L1) + len(k.LimitKey.L2)
}

func vqueueLen(k *flowcontrol.QueueKey) int {
	parent := k.Counter()
	return limitLen(&parent) + 4 + len(k.Service)
}

var errKey = errors.New("malformed key")

// limitOf decodes the key of a counter and returns what follows it.
func limitOf(key []byte) (k flowcontrol.CounterKey, rest []byte, err error) {
	rest = key[prefixLen:]
	for _, part := range []*string{&k.Scope, &k.LimitKey.L1, &k.LimitKey.L2} {
		var ok bool
		if *part, rest, ok = cutPart(rest); !ok {
			return k, nil, errKey
		}
	}
	return k, rest, nil
}

// vqueueOf decodes the key of a vqueue.
func vqueueOf(key []byte) (k flowcontrol.QueueKey, err error) {
	parent, rest, err := limitOf(key)
	if err != nil {
		return k, err
	}
	service, rest, ok := cutPart(rest)
	if !ok || len(rest) > 0 {
		return k, errKey
	}
	return flowcontrol.QueueKey{Scope: parent.Scope, LimitKey: parent.LimitKey, Service: service}, nil
}
