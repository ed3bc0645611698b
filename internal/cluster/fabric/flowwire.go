package fabric

import (
	"fmt"

	"platform/flowcontrol"
	"platform/internal/ids"
	"platform/partition"
	"platform/partition/codec"
	"platform/proto/node"
)

func counterKeyToWire(k flowcontrol.CounterKey) *node.PartitionCounterKey {
	return &node.PartitionCounterKey{Scope: k.Scope, L1: k.LimitKey.L1, L2: k.LimitKey.L2}
}

func counterKeyFromWire(m *node.PartitionCounterKey) flowcontrol.CounterKey {
	return flowcontrol.CounterKey{Scope: m.GetScope(), LimitKey: flowcontrol.LimitKey{L1: m.GetL1(), L2: m.GetL2()}}
}

func queueToWire(q *partition.Queue) *node.PartitionQueue {
	m := &node.PartitionQueue{
		Object: []byte(q.Object), HeadKey: []byte(q.HeadKey),
		Key: counterKeyToWire(q.Key.Counter()), Service: q.Key.Service, Vqueue: codec.AppendVQueue(nil, &q.VQueue), HeadAt: q.Head.At,
		Cause: uint32(q.Blocked.Cause), Counter: counterKeyToWire(q.Blocked.Counter), Rule: ruleToWire(q.Blocked.Rule),
		Used: q.Blocked.Used, Until: q.Blocked.Until,
	}
	if !q.Head.ID.IsZero() {
		m.Head = q.Head.ID[:]
	}
	return m
}

func queueFromWire(m *node.PartitionQueue) (*partition.Queue, error) {
	counter := counterKeyFromWire(m.Key)
	q := &partition.Queue{
		Key:  flowcontrol.QueueKey{Scope: counter.Scope, LimitKey: counter.LimitKey, Service: m.Service},
		Head: flowcontrol.Queued{At: m.HeadAt}, HeadKey: string(m.HeadKey),
		Blocked: flowcontrol.Blocked{
			Cause: flowcontrol.Cause(m.Cause), Counter: counterKeyFromWire(m.Counter), Used: m.Used, Until: m.Until,
		},
	}
	if q.Object = string(m.Object); q.Object != "" {
		q.ID = ids.OfVQueue("", "", q.Key.Service, q.Object)
	} else {
		q.ID = q.Key.ID()
	}
	if len(m.Head) != 0 {
		if len(m.Head) != len(q.Head.ID) {
			return nil, fmt.Errorf("malformed queue: id of the head has %d bytes", len(m.Head))
		}
		q.Head.ID = ids.Invocation(m.Head)
	}
	var err error
	if q.VQueue, err = codec.DecodeVQueue(m.Vqueue); err != nil {
		return nil, err
	}
	q.Blocked.Rule, err = ruleFromWire(m.Rule)
	return q, err
}

func usageToWire(u *partition.Usage) *node.PartitionUsage {
	return &node.PartitionUsage{Key: counterKeyToWire(u.Key), Counter: codec.AppendCounter(nil, &u.Counter), Rule: ruleToWire(u.Rule)}
}

func usageFromWire(m *node.PartitionUsage) (*partition.Usage, error) {
	u := &partition.Usage{NamedCounter: flowcontrol.NamedCounter{Key: counterKeyFromWire(m.Key)}}
	var err error
	if u.Counter, err = codec.DecodeCounter(m.Counter); err != nil {
		return nil, err
	}
	u.Rule, err = ruleFromWire(m.Rule)
	return u, err
}

// ruleToWire encodes a rule as a book with a single rule, nil as nothing.
func ruleToWire(r *flowcontrol.Rule) []byte {
	if r == nil {
		return nil
	}
	return codec.AppendRules(nil, &flowcontrol.Book{Version: 1, Rules: []flowcontrol.Rule{*r}})
}

func ruleFromWire(b []byte) (*flowcontrol.Rule, error) {
	if len(b) == 0 {
		return nil, nil
	}
	book, err := codec.DecodeRules(b)
	if err != nil || len(book.Rules) != 1 {
		return nil, fmt.Errorf("decode rule: %w", err)
	}
	return &book.Rules[0], nil
}
