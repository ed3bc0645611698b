package flowtest

import (
	"fmt"

	"platform/flowcontrol"
)

// Broken lists the invariants that are violated at a time; after a command there must be
// none. In the scopes of due, a timer is about to continue admission.
func (t *Tables) Broken(now int64, due map[string]bool) []string {
	c := checker{Tables: t, rules: flowcontrol.NewMatcher(t.rules), now: now, due: due}
	c.sums()
	c.rings()
	return append(c.found, t.faults...)
}

type checker struct {
	*Tables
	rules *flowcontrol.Matcher
	now   int64
	due   map[string]bool
	found []string
}

func (c *checker) want(ok bool, format string, args ...any) {
	if !ok {
		c.found = append(c.found, fmt.Sprintf(format, args...))
	}
}

// sums checks that counters and queues match the rows.
func (c *checker) sums() {
	running, waiting := map[flowcontrol.CounterKey]uint64{}, map[flowcontrol.CounterKey]uint64{}
	for k, q := range c.VQueues() {
		for _, above := range Above(k.Counter()) {
			running[above] += q.Stages[flowcontrol.Running]
			waiting[above] += q.Stages[flowcontrol.Inbox]
		}
	}
	lined := map[flowcontrol.QueueKey]uint64{}
	for p := range c.Entries() {
		lined[p.Queue]++
		lane := c.queues[p.Queue].Lanes[p.Priority]
		c.want(lane.Head <= p.Seq && p.Seq < lane.Tail, "%v is outside its lane, %v", p, lane)
	}
	for k, q := range c.VQueues() {
		c.want(q.Waiting == lined[k], "queue %v: has %d entries, recorded %d", k, lined[k], q.Waiting)
		c.want(q.Waiting <= q.Stages[flowcontrol.Inbox], "queue %v: %d entries, but %d in the inbox", k, q.Waiting, q.Stages[flowcontrol.Inbox])
		delete(lined, k)
	}
	c.want(len(lined) == 0, "queues without a record: %v", lined)
	for _, named := range c.AllCounters() {
		k := named.Key
		c.want(named.Running == running[k] && named.Waiting == waiting[k], "counter %v: %d run and %d wait, recorded %d and %d", k, running[k], waiting[k], named.Running, named.Waiting)
		delete(running, k)
		delete(waiting, k)
	}
	for k, n := range running {
		c.want(n == 0 && waiting[k] == 0, "counter %v has no record", k)
	}
}

// rings checks that every child that can use a slot is in its ring, once.
func (c *checker) rings() {
	for t, child := range c.Children() {
		ring := c.counters[t.Ring].Ring
		c.want(ring.Head <= t.Seq && t.Seq < ring.Tail, "%v: %v is outside its ring, %v", t, child, ring)
		position := uint64(0)
		if child.Queue {
			position = c.queues[flowcontrol.QueueKey{Scope: t.Ring.Scope, LimitKey: t.Ring.LimitKey, Service: child.Name}].RingSeq
		} else {
			position = c.counters[below(t.Ring, child.Name)].RingSeq
		}
		c.want(position == t.Seq, "%v: %v has recorded position %d", t, child, position)
	}
	for k, q := range c.VQueues() {
		c.want(q.RingSeq == 0 || c.children[RingPosition{k.Counter(), q.RingSeq}] == flowcontrol.Child{Name: k.Service, Queue: true}, "queue %v is not at position %d of the ring", k, q.RingSeq)
		c.want(q.RingSeq != 0 || q.Waiting == 0 || q.Paused, "queue %v is not in its ring", k)
	}
	for _, named := range c.AllCounters() {
		k := named.Key
		above := Above(k)
		if len(above) == 1 {
			c.want(named.RingSeq == 0, "scope %v has a ring position", k)
			continue
		}
		name := k.LimitKey.L1
		if k.LimitKey.L2 != "" {
			name = k.LimitKey.L2
		}
		parent := above[len(above)-2]
		c.want(named.RingSeq == 0 || c.children[RingPosition{parent, named.RingSeq}] == flowcontrol.Child{Name: name}, "counter %v is not at position %d of the ring", k, named.RingSeq)
	}
	for k, q := range c.VQueues() {
		c.want(q.Waiting == 0 || q.Paused || c.due[k.Scope] || c.blocked(k) != nil, "queue %v waits although it is admissible", k)
	}
}

// blocked returns the rule that prevents a queue from starting anything, or a pause of the scope as
// a rule; nil if there is none. A rate does until the counter's timer has fired.
func (c *checker) blocked(k flowcontrol.QueueKey) *flowcontrol.Rule {
	for l, key := range Above(k.Counter()) {
		r := c.rules.Match(k.Scope, k.LimitKey)[l]
		counter := c.counters[key]
		due := counter.WakeAt != 0 && counter.WakeAt <= c.now
		if counter.Pause != nil {
			return &flowcontrol.Rule{Pattern: flowcontrol.Pattern{Scope: key.Scope}}
		}
		if r != nil && (due || !counter.Free(r, c.now)) {
			return r
		}
	}
	return nil
}

// Above returns a counter and those above it, from the scope down.
func Above(k flowcontrol.CounterKey) []flowcontrol.CounterKey {
	keys := []flowcontrol.CounterKey{{Scope: k.Scope}}
	if k.LimitKey.L1 != "" {
		keys = append(keys, flowcontrol.CounterKey{Scope: k.Scope, LimitKey: flowcontrol.LimitKey{L1: k.LimitKey.L1}})
	}
	if k.LimitKey.L2 != "" {
		keys = append(keys, k)
	}
	return keys
}

func below(k flowcontrol.CounterKey, name string) flowcontrol.CounterKey {
	if k.LimitKey.L1 == "" {
		k.LimitKey.L1 = name
	} else {
		k.LimitKey.L2 = name
	}
	return k
}
