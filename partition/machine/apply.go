package machine

import (
	"errors"
	"fmt"

	"platform/flowcontrol"
	"platform/internal/failpoint"
	"platform/internal/feature"
	"platform/internal/ids"
)

// errUnknownCommand is wrapped when a command is of a type that this version does not know.
var errUnknownCommand = errors.New("unknown command")

// Machine interprets the commands of one partition. It must not be used concurrently. All that it
// keeps between log entries is a copy of the rules in the tables and reusable memory; between the
// commands of an entry, also what they have used of its bounds.
type Machine struct {
	shards Shards

	used used // by the log entry being applied

	// The fields below belong to the command being applied.
	st   State
	meta *Meta
	now  int64 // partition time

	// level is the feature level: only what it includes may be written to the tables, sent
	// to other partitions or derived. It is the highest level in the log so far, so all
	// replicas agree on it at each entry.
	level       feature.Level
	effects     []Effect
	local       []Message           // messages to this same partition, in the order in which they were caused
	updates     int                 // state updates in local
	freedScopes []string            // scopes in which an invocation may have become admissible
	freed       map[string]struct{} // the same, to find one of many; nil if there are few

	bounds bounds

	flow flowcontrol.Scheduler
	book *flowcontrol.Book // the source of flow.Rules; nil: not read yet
}

// bounds are what one log entry does at most, and how many waiters a result has: the constants, except in tests.
type bounds struct {
	admitted, admittedByTimer, admittedByEntry                             int
	reevaluated, ringRemovals                                              int
	kills, journalReads, updateBytes, answerBytes, purgedPromises, lookups int
	sinks                                                                  int
}

// used is what the commands of one log entry have used of its bounds.
type used struct {
	answers, timerAnswers byteBudget // results that commands have copied, and that timers have
	inputBytes            int        // inputs read for effects
	kills                 int        // invocations killed
	journalReads          int        // bytes of journals read, by kills and to find sleeps and notifications
	updateBytes           int        // bytes read and written by state updates
	purgedBytes           int        // bytes of promises read by purges
	lookups               int        // of notifications, to evaluate awaits; see leavesPerLookup
	admitted              int        // waiting invocations admitted
}

// New returns the machine of one partition.
func New(shards Shards) *Machine {
	m := &Machine{
		shards: shards,
		bounds: bounds{
			admitted: maxAdmitted, admittedByTimer: maxAdmittedByTimer, admittedByEntry: maxAdmittedByEntry,
			reevaluated: failpoint.Or(failpoint.ReevaluatedCounters, maxReevaluated), ringRemovals: failpoint.Or(failpoint.RingLeaves, maxRingRemovals),
			kills: maxKills, journalReads: maxJournalReads, updateBytes: maxUpdateBytes, answerBytes: answerBytes,
			purgedPromises: maxPurgedPromises, lookups: maxLookups, sinks: maxSinks,
		},
	}
	m.flow.Wake = m.wakeCounter
	return m
}

// Apply interprets one committed command and appends its effects to effects. They refer to
// the tables as they are after the command.
//
// An Outcome, including a refusal, is a result that all replicas agree on. An error means
// that this replica cannot continue: its tables cannot be read or are damaged, and what was
// written so far must not be committed.
func (m *Machine) Apply(st State, h Header, c Command, effects []Effect) (Outcome, []Effect, error) {
	m.st, m.meta, m.effects = st, st.Meta(), effects
	outcome, err := m.apply(h, c)
	effects = m.effects
	clear(m.local)
	m.st, m.meta, m.effects, m.local, m.updates = nil, nil, nil, m.local[:0], 0
	m.flow.Tables, m.freed = nil, nil
	if m.freedScopes = m.freedScopes[:0]; cap(m.freedScopes) > maxAdmittedByTimer {
		m.freedScopes = nil
	}
	return outcome, effects, err
}

// apply rejects commands of deposed leaders, advances partition time, and carries out the
// command together with the messages and admissions that it causes.
func (m *Machine) apply(h Header, c Command) (Outcome, error) {
	if h.Command == 0 {
		m.used, m.flow.RingRemovals = used{}, m.bounds.ringRemovals
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
	if err == nil && len(m.freedScopes) > 0 {
		most := m.bounds.admitted
		if _, ok := c.(*FireTimers); ok {
			most = m.bounds.admittedByTimer
		}
		err = m.admitWaiting(most)
	}
	return outcome, err
}

func (m *Machine) dispatch(c Command) (Outcome, error) {
	switch c := c.(type) {
	case *Lead:
		return Outcome{}, m.lead(c)
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
		return m.pauseByOperator(c)
	case *Resume:
		return m.resume(c)
	case *Purge:
		return m.purgeByOperator(c)
	case *Restart:
		return m.restart(c)
	case *SetRules:
		return m.setRules(c)
	case *PauseQueue:
		return m.pauseQueue(c)
	case *Ingest:
		return m.ingest(c)
	case *PutPosition:
		return m.putPosition(c)
	case *ForgetStreams:
		return Outcome{}, m.forgetStreams(c)
	case *SetAside:
		return m.setAside(c)
	case *DropDeadLetters:
		return Outcome{}, m.dropDeadLetters(c)
	case *Digest: // compares the tables themselves; the FSM handles it
		return Outcome{}, nil
	}
	return Outcome{}, fmt.Errorf("apply %T: %w", c, errUnknownCommand)
}

// LostNumbers is how many sequence numbers and attempt numbers are skipped after a recovery:
// more than can have been lost.
const LostNumbers = 1 << 32

// lead skips numbers that may have been used before data was lost in a recovery. Receivers
// would drop messages with such numbers as duplicates.
func (m *Machine) lead(c *Lead) error {
	if !c.Recovered || m.level < feature.Level4 {
		return nil
	}
	m.meta.Attempt += LostNumbers
	for to := range m.shards.Count {
		if to == m.shards.Self {
			continue
		}
		last, err := m.st.LastSent(to)
		if err != nil {
			return fmt.Errorf("read last sent to partition %d: %w", to, err)
		}
		m.st.PutLastSent(to, last+LostNumbers)
	}
	return nil
}

func (m *Machine) emit(e Effect) { m.effects = append(m.effects, e) }

func (m *Machine) setTimer(t Timer) {
	m.st.PutTimer(t)
	m.emit(&SetTimer{t})
}

// invocation reads a record; it returns nil if the ID is unknown.
func (m *Machine) invocation(id ids.Invocation) (*Invocation, error) {
	inv, err := m.st.Invocation(id)
	if err != nil {
		return nil, fmt.Errorf("read invocation %s: %w", id, err)
	}
	return inv, nil
}
