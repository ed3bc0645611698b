package machine

import (
	"errors"
	"fmt"

	"platform/flowcontrol"
	"platform/internal/feature"
	"platform/internal/ids"
)

// ErrUnknownCommand is wrapped when a command is of a type this version does not
// know.
var ErrUnknownCommand = errors.New("unknown command")

// Machine interprets the commands of one partition. It holds no state of its own
// between two calls of Apply, only memory to reuse, and has one caller at a time.
type Machine struct {
	shards Shards

	// What follows belongs to the command being applied.
	st   State
	meta *Meta
	now  int64 // partition time
	// What the entry may still copy, and how many bytes of inputs it has read. They are
	// kept from one command of an entry to the next.
	answers, owed allowance
	inputs        int

	// level is the feature level: only what it includes may be written to the tables,
	// sent to other partitions or derived. It is the highest of the log so far, so all
	// replicas have the same at the same entry.
	level   feature.Level
	effects []Effect
	local   []Message // caused by the command for this same partition, in order
	freed   []string  // scopes in which somebody may have become able to run

	flow flowcontrol.Scheduler
	book *flowcontrol.Book // what flow.Rules was made of; nil: not read yet
}

// New returns the machine of one partition.
func New(shards Shards) *Machine {
	m := &Machine{shards: shards}
	m.flow.Wake = m.wakeCounter
	return m
}

// Apply interprets one committed command and appends its effects to effects. They
// refer to the tables as they are after the command.
//
// An Outcome is a result that all replicas agree on, refusals included. An error
// means that this replica cannot go on: its tables cannot be read or are damaged,
// and what was written so far must not be committed.
func (m *Machine) Apply(st State, h Header, c Command, effects []Effect) (Outcome, []Effect, error) {
	m.st, m.meta, m.effects = st, st.Meta(), effects
	outcome, err := m.admissible(h, c)
	effects = m.effects
	clear(m.local)
	m.st, m.meta, m.effects, m.local = nil, nil, nil, m.local[:0]
	m.flow.Tables = nil
	if m.freed = m.freed[:0]; cap(m.freed) > maxAdmittedByTimer {
		m.freed = nil
	}
	return outcome, effects, err
}

// admissible refuses commands of deposed leaders and advances the clock.
func (m *Machine) admissible(h Header, c Command) (Outcome, error) {
	if h.Command == 0 {
		m.answers, m.owed, m.inputs = allowance{}, allowance{}, 0
	}
	if lead, ok := c.(*Lead); ok {
		if lead.Epoch <= m.meta.Epoch {
			return Outcome{Code: Stale}, nil
		}
		m.meta.Epoch = lead.Epoch
		m.meta.Flow = lead.Flow
	} else if h.Epoch != m.meta.Epoch {
		return Outcome{Code: Stale}, nil
	}
	m.meta.Clock = max(m.meta.Clock, h.Time)
	m.now = m.meta.Clock
	if h.Level > max(m.meta.Level, feature.Level1) {
		m.meta.Level = h.Level
	}
	m.level = max(m.meta.Level, feature.Level1)
	outcome, err := m.dispatch(c)
	if err == nil {
		err = m.settle()
	}
	if err == nil && len(m.freed) > 0 {
		most := maxAdmitted
		if _, ok := c.(*FireTimers); ok {
			most = maxAdmittedByTimer
		}
		err = m.admitWaiting(most)
	}
	return outcome, err
}

func (m *Machine) dispatch(c Command) (Outcome, error) {
	switch c := c.(type) {
	case *Lead:
		return Outcome{}, nil
	case *Invoke:
		return m.request(c)
	case *Progress:
		return m.progress(c)
	case *FireTimers:
		return Outcome{}, m.fire(c)
	case *Deliver:
		return m.deliver(c)
	case *Acknowledge:
		m.st.DeleteOutgoing(c.To, c.Upto)
		return Outcome{}, nil
	case *Signal:
		return m.signal(c)
	case *Kill:
		return m.kill(c)
	case *Pause:
		return m.pauseNow(c)
	case *Resume:
		return m.resume(c)
	case *Purge:
		return m.purgeNow(c)
	case *Restart:
		return m.restart(c)
	case *SetRules:
		return m.setRules(c)
	case *PauseQueue:
		return m.pauseQueue(c)
	case *Digest: // about the tables as a whole, which are not the machine's business
		return Outcome{}, nil
	}
	return Outcome{}, fmt.Errorf("apply %T: %w", c, ErrUnknownCommand)
}

// emit adds an effect.
func (m *Machine) emit(e Effect) { m.effects = append(m.effects, e) }

// setTimer registers a timer.
func (m *Machine) setTimer(t Timer) {
	m.st.PutTimer(t)
	m.emit(&SetTimer{t})
}

// invocation reads a record; nil if the id is unknown.
func (m *Machine) invocation(id ids.Invocation) (*Invocation, error) {
	inv, err := m.st.Invocation(id)
	if err != nil {
		return nil, fmt.Errorf("read invocation %s: %w", id, err)
	}
	return inv, nil
}
