package machine

import (
	"fmt"

	"platform/flowcontrol"
	"platform/internal/ids"
)

// Bounds of how many one command admits. Deleting the rule that a million wait for must
// not hold the partition up: the rest follows by a timer, one command of which admits
// more. Others do not, because while a crowd can be admitted each of them, of which an
// entry holds many, could admit as many as there may be at all.
const (
	maxAdmitted        = 16
	maxAdmittedByTimer = 256
)

// admitWaiting gives free slots to those who wait for them, in the scopes where
// something has changed.
func (m *Machine) admitWaiting(most int) error {
	if err := m.scheduler(); err != nil {
		return err
	}
	admitted := 0
	for _, scope := range m.freed {
		for {
			if admitted == most {
				m.wakeCounter(flowcontrol.CounterKey{Scope: scope}, m.now)
				break
			}
			found, err := m.admitNext(scope)
			if err != nil {
				return fmt.Errorf("admit the next of scope %s: %w", scope, err)
			}
			if !found {
				break
			}
			admitted++
		}
	}
	return nil
}

// admitNext lets the next one of a scope run, if there is a slot and somebody waits.
func (m *Machine) admitNext(scope string) (found bool, err error) {
	var inv *Invocation
	next, found, err := m.flow.Next(scope, func(id ids.Invocation) (flowcontrol.Transition, error) {
		inv, err = m.invocation(id)
		switch {
		case err != nil:
			return flowcontrol.Transition{}, err
		case inv == nil || inv.Flow == nil:
			return flowcontrol.Transition{}, fmt.Errorf("%s stands in line and has no record", id)
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

// wakeQueues looks at a counter again whose timer has fired.
func (m *Machine) wakeQueues(t Timer) error {
	p, err := flowcontrol.ParsePattern(t.Name)
	if err != nil {
		return fmt.Errorf("timer of counter %q: %w", t.Name, err)
	}
	if err := m.scheduler(); err != nil {
		return err
	}
	m.free(p.Scope)
	return m.flow.Awake(flowcontrol.CounterKey{Scope: p.Scope, LimitKey: flowcontrol.LimitKey{L1: p.L1, L2: p.L2}})
}

// setRules takes a newer rule book over. What runs, runs on.
func (m *Machine) setRules(c *SetRules) (Outcome, error) {
	if c.Book == nil || c.Book.Version <= m.meta.Rules {
		return Outcome{Code: Existing}, nil
	}
	m.st.PutRules(c.Book)
	m.meta.Rules = c.Book.Version
	if err := m.scheduler(); err != nil {
		return Outcome{}, err
	}
	scopes, err := m.flow.Revise()
	m.freed = append(m.freed, scopes...)
	return Outcome{}, err
}

func (m *Machine) pauseQueue(c *PauseQueue) (Outcome, error) {
	if c.Queue.Scope == "" {
		return Outcome{Code: NotFound}, nil
	}
	if err := m.scheduler(); err != nil {
		return Outcome{}, err
	}
	known, err := m.flow.Pause(c.Queue, c.Paused)
	if err != nil || !known {
		return Outcome{Code: NotFound}, err
	}
	m.free(c.Queue.Scope)
	return Outcome{}, nil
}

// queueFull refuses a request from outside of which one more may not wait. What
// handlers send is in their journals and cannot be refused any more, and what starts
// later lines up later.
func (m *Machine) queueFull(c *Invoke) (Outcome, error) {
	if c.Target.Scope == "" || c.Target.Type == StateUpdate || c.StartAt > m.now {
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
