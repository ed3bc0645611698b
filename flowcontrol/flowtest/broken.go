package flowtest

import (
	"fmt"

	"platform/flowcontrol"
)

// Broken lists the invariants of the tables that do not hold at a time, as they must
// after a command. In due scopes a timer is about to admit who may run.
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

// sums checks that counters and queues count what is there.
func (c *checker) sums() {
	running, waiting := map[flowcontrol.CounterKey]uint64{}, map[flowcontrol.CounterKey]uint64{}
	for k, q := range c.VQueues() {
		for _, above := range Above(k.Counter()) {
			running[above] += q.Stages[flowcontrol.Running]
			waiting[above] += q.Stages[flowcontrol.Inbox]
		}
	}
	lined := map[flowcontrol.QueueKey]uint64{}
	for p := range c.Line() {
		lined[p.Queue]++
		lane := c.queues[p.Queue].Lanes[p.Priority]
		c.want(lane.Head <= p.Place && p.Place < lane.Tail, "%v is outside of its lane, %v", p, lane)
	}
	for k, q := range c.VQueues() {
		c.want(q.Waiting == lined[k], "queue %v: %d stand in line, not %d", k, lined[k], q.Waiting)
		c.want(q.Waiting <= q.Stages[flowcontrol.Inbox], "queue %v: %d stand in line, %d are in the inbox", k, q.Waiting, q.Stages[flowcontrol.Inbox])
		delete(lined, k)
	}
	c.want(len(lined) == 0, "queues without a record: %v", lined)
	for named, err := range c.Counters() {
		k := named.Key
		c.want(err == nil, "counter %v: %v", k, err)
		c.want(named.Running == running[k] && named.Waiting == waiting[k], "counter %v: %d run and %d wait, not %d and %d", k, running[k], waiting[k], named.Running, named.Waiting)
		delete(running, k)
		delete(waiting, k)
	}
	for k, n := range running {
		c.want(n == 0 && waiting[k] == 0, "counter %v has no record", k)
	}
}

// rings checks that whoever can use a slot stands in its ring, and once.
func (c *checker) rings() {
	for t, child := range c.Children() {
		ring := c.counters[t.Ring].Ring
		c.want(ring.Head <= t.Place && t.Place < ring.Tail, "%v: %v is outside of its ring, %v", t, child, ring)
		turn := uint64(0)
		if child.Queue {
			turn = c.queues[flowcontrol.QueueKey{Scope: t.Ring.Scope, LimitKey: t.Ring.LimitKey, Service: child.Name}].Turn
		} else {
			turn = c.counters[below(t.Ring, child.Name)].Turn
		}
		c.want(turn == t.Place, "%v: %v says that its turn is %d", t, child, turn)
	}
	for k, q := range c.VQueues() {
		c.want(q.Turn == 0 || c.children[Turn{k.Counter(), q.Turn}] == flowcontrol.Child{Name: k.Service, Queue: true}, "queue %v has no place %d in the ring", k, q.Turn)
		c.want(q.Turn != 0 || q.Waiting == 0 || q.Paused, "queue %v is not in its ring", k)
	}
	for named, err := range c.Counters() {
		k := named.Key
		c.want(err == nil, "counter %v: %v", k, err)
		above := Above(k)
		if len(above) == 1 {
			c.want(named.Turn == 0, "scope %v has a turn", k)
			continue
		}
		name := k.LimitKey.L1
		if k.LimitKey.L2 != "" {
			name = k.LimitKey.L2
		}
		parent := above[len(above)-2]
		c.want(named.Turn == 0 || c.children[Turn{parent, named.Turn}] == flowcontrol.Child{Name: name}, "counter %v has no place %d in the ring", k, named.Turn)
	}
	for k, q := range c.VQueues() {
		c.want(q.Waiting == 0 || q.Paused || c.due[k.Scope] || c.blocked(k) != nil, "queue %v waits though it may run", k)
	}
}

// blocked is the rule that keeps a queue from starting anything, nil if none does. A
// rate does until the counter's timer has fired.
func (c *checker) blocked(k flowcontrol.QueueKey) *flowcontrol.Rule {
	for l, key := range Above(k.Counter()) {
		r := c.rules.Match(k.Scope, k.LimitKey)[l]
		counter := c.counters[key]
		due := counter.WakeAt != 0 && counter.WakeAt <= c.now
		if r != nil && (due || !counter.Free(r, c.now)) {
			return r
		}
	}
	return nil
}

// Above are a counter and those above it, from the scope down.
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
