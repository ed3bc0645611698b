package machine

import (
	"fmt"
	"math"

	"platform/flowcontrol"
	"platform/internal/feature"
	"platform/internal/ids"
	"platform/internal/target"
)

// Bounds on the admissions of one command and, from feature level 4 on, of one log entry. Deleting
// a rule that a million invocations wait for must not block the partition: the rest is admitted by
// a timer, whose command admits more. The bound of other commands is lower because with a backlog
// each command of an entry would admit as many as it may. All commands of an entry may admit one
// invocation each, since each may free a slot.
const (
	maxAdmitted        = 16
	maxAdmittedByTimer = 256
	maxAdmittedByEntry = 512
)

// Bounds on what a log entry does in the tables of flow control: counters that a timer
// re-evaluates after a change of the rules, and children that are removed from their rings because
// they cannot use a slot.
const (
	maxReevaluated  = 256
	maxRingRemovals = 2048
)

// admitWaiting assigns free slots to waiting invocations in the scopes that have changed.
func (m *Machine) admitWaiting(most int) error {
	if err := m.scheduler(); err != nil {
		return err
	}
	if m.level >= feature.Level4 {
		most = min(most, m.bounds.admittedByEntry-m.used.admitted)
	}
	admitted := 0
	defer func() { m.used.admitted += admitted }()
	for _, scope := range m.freedScopes {
		for {
			if admitted >= most {
				m.wakeCounter(flowcontrol.CounterKey{Scope: scope}, m.now)
				break
			}
			found, err := m.admitNext(scope)
			if err != nil {
				return fmt.Errorf("admit the next of scope %s: %w", scope, err)
			}
			if !found {
				if m.flow.RingRemovals <= 0 {
					m.wakeCounter(flowcontrol.CounterKey{Scope: scope}, m.now)
				}
				break
			}
			admitted++
		}
	}
	return nil
}

// admitNext starts the next waiting invocation of a scope if there is a free slot.
func (m *Machine) admitNext(scope string) (found bool, err error) {
	var inv *Invocation
	next, found, err := m.flow.Next(scope, func(id ids.Invocation) (flowcontrol.Transition, error) {
		inv, err = m.invocation(id)
		switch {
		case err != nil:
			return flowcontrol.Transition{}, err
		case inv == nil || inv.Flow == nil:
			return flowcontrol.Transition{}, fmt.Errorf("invocation %s is queued for a slot but has no record", id)
		}
		return inv.Flow.transition(m.now), nil
	})
	if !found || err != nil {
		return false, err
	}
	f := *inv.Flow
	if next.Throttled {
		f.Throttling.add(m.now - next.Since)
	} else {
		f.Rules.add(m.now - next.Since)
	}
	m.enter(&f, flowcontrol.Running)
	inv.Flow, inv.QueueSeq = &f, 0
	return true, m.start(inv, nil)
}

// wakeCounter sets a timer for a counter.
func (m *Machine) wakeCounter(key flowcontrol.CounterKey, at int64) {
	m.setTimer(Timer{At: at, Kind: TimerQueue, Name: key.String()})
}

// wakeQueues re-evaluates the counter whose timer has fired.
func (m *Machine) wakeQueues(t Timer) error {
	key, err := counterOf(t)
	if err != nil {
		return err
	}
	if err := m.scheduler(); err != nil {
		return err
	}
	m.markFreed(key.Scope)
	return m.flow.Reevaluate(key)
}

// setRules installs a newer rule book. Running invocations are not affected.
func (m *Machine) setRules(c *SetRules) (Outcome, error) {
	if c.Book == nil || c.Book.Version <= m.meta.Rules {
		return Outcome{Code: Existing}, nil
	}
	m.st.PutRules(c.Book)
	m.meta.Rules = c.Book.Version
	if m.meta.Reevaluation != NotReevaluating {
		m.meta.Reevaluation = ReevaluatingTwice
		return Outcome{}, nil
	}
	return Outcome{}, m.reevaluate(flowcontrol.CounterKey{})
}

// reevaluate applies the rules to the waiting invocations of the counters from a key on, and
// leaves the rest to a timer. Until then, invocations that a change of the rules makes
// admissible may wait, but none is admitted against the rules.
func (m *Machine) reevaluate(from flowcontrol.CounterKey) error {
	if err := m.scheduler(); err != nil {
		return err
	}
	most := m.bounds.reevaluated
	if m.level < feature.Level4 {
		most = math.MaxInt
	}
	scopes, next, more, err := m.flow.RulesChanged(from, most)
	if err != nil {
		return err
	}
	m.freedScopes, m.freed = append(m.freedScopes, scopes...), nil
	switch {
	case more:
		m.meta.Reevaluation = max(m.meta.Reevaluation, Reevaluating)
		m.setTimer(Timer{At: m.now, Kind: TimerRules, Name: next.String()})
	case m.meta.Reevaluation == ReevaluatingTwice:
		m.meta.Reevaluation = Reevaluating
		m.setTimer(Timer{At: m.now, Kind: TimerRules})
	default:
		m.meta.Reevaluation = NotReevaluating
	}
	return nil
}

// reevaluateFrom continues a re-evaluation when its timer fires.
func (m *Machine) reevaluateFrom(t Timer) error {
	if t.Name == "" {
		return m.reevaluate(flowcontrol.CounterKey{})
	}
	key, err := counterOf(t)
	if err != nil {
		return err
	}
	return m.reevaluate(key)
}

// counterOf returns the counter that a timer names.
func counterOf(t Timer) (flowcontrol.CounterKey, error) {
	p, err := flowcontrol.ParsePattern(t.Name)
	if err != nil {
		return flowcontrol.CounterKey{}, fmt.Errorf("timer of counter %q: %w", t.Name, err)
	}
	return flowcontrol.CounterKey{Scope: p.Scope, LimitKey: flowcontrol.LimitKey{L1: p.L1, L2: p.L2}}, nil
}

func (m *Machine) pauseQueue(c *PauseQueue) (Outcome, error) {
	if c.Queue.Scope == "" {
		return Outcome{Code: NotFound}, nil
	}
	if err := m.scheduler(); err != nil {
		return Outcome{}, err
	}
	known, err := m.switchQueue(c)
	if err != nil || !known {
		return Outcome{Code: NotFound}, err
	}
	m.markFreed(c.Queue.Scope)
	return Outcome{}, nil
}

// switchQueue pauses or resumes a queue or a scope; known is false for a queue without a record, and
// for an invalid scope, whose counter no timer could name.
func (m *Machine) switchQueue(c *PauseQueue) (known bool, err error) {
	scope := c.Queue == flowcontrol.QueueKey{Scope: c.Queue.Scope} && m.level >= feature.Level4
	switch {
	case scope && flowcontrol.CheckScope(c.Queue.Scope) != nil:
		return false, nil //nolint:nilerr // a refusal, which all replicas agree on
	case scope && c.Paused:
		return true, m.flow.PauseScope(c.Queue.Scope, &flowcontrol.QueuePause{By: c.By, Reason: c.Reason, At: m.now})
	case scope:
		return true, m.flow.ResumeScope(c.Queue.Scope)
	case !c.Paused:
		return m.flow.Resume(c.Queue)
	}
	var record *flowcontrol.QueuePause
	if m.level >= feature.Level4 {
		record = &flowcontrol.QueuePause{By: c.By, Reason: c.Reason, At: m.now}
	}
	return m.flow.Pause(c.Queue, record)
}

// queueFull rejects an external request if its vqueue has no room for another waiting
// invocation. Calls by handlers are in their journals and can no longer be rejected, and
// delayed invocations queue later.
func (m *Machine) queueFull(c *Invoke) (Outcome, error) {
	if c.Target.Scope == "" || c.Target.Type == target.StateUpdate || c.StartAt > m.now {
		return Outcome{}, nil
	}
	if err := m.scheduler(); err != nil || !m.flow.Rules.Bounded() {
		return Outcome{}, err
	}
	if known, err := m.invocation(c.ID); known != nil || err != nil {
		return Outcome{}, err
	}
	locked := false
	if c.Target.Type.Exclusive() {
		lock, err := m.st.Lock(c.Target.Object())
		if err != nil {
			return Outcome{}, fmt.Errorf("read lock of %v: %w", c.Target.Object(), err)
		}
		locked = !lock.Holder.IsZero()
	}
	inv := Invocation{Target: c.Target, LimitKey: c.LimitKey}
	rule, err := m.flow.Full(inv.VQueue(), locked)
	if rule == nil || err != nil {
		return Outcome{}, err
	}
	return Outcome{Code: QueueFull, Rule: rule.Pattern.String()}, nil
}
