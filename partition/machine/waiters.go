package machine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"platform/internal/feature"
	"platform/internal/target"
	"platform/partition/journal"
)

// Thousands of invocations may wait for one result, and each receives a copy in its
// journal. To bound what one log entry writes, the remaining waiters are kept with the
// result and a timer that is due immediately. Each time it fires, further waiters receive
// their result; a new leader finds the timer in the table. Below feature level 2 all
// waiters receive their result in the same entry.

const (
	// answerBytes bounds the results that the commands of one log entry copy to waiters
	// and, separately, those that its timers copy. A single result may be larger.
	answerBytes = 4 << 20
	// answerOverhead is the cost of one answer apart from the result.
	answerOverhead = 256
)

// byteBudget counts the bytes that one log entry has copied.
type byteBudget struct{ spent int }

// spend reports whether a result of size bytes may be copied, with most bytes in total, and counts
// it if so.
func (a *byteBudget) spend(size, most int) bool {
	size += answerOverhead
	if a.spent > 0 && a.spent+size > most {
		return false
	}
	a.spent += size
	return true
}

// mayAnswer reports whether the entry may copy a result to one more waiter.
func (m *Machine) mayAnswer(r *journal.Result) bool {
	return m.level < feature.Level2 || m.used.answers.spend(m.resultSize(r), m.bounds.answerBytes)
}

// resultSize is what copying a result costs. Below feature level 4 the metadata of a failure
// is not counted.
func (m *Machine) resultSize(r *journal.Result) int {
	size := len(r.Value)
	if r.Failure == nil {
		return size
	}
	size += len(r.Failure.Message)
	if m.level >= feature.Level4 {
		for _, pair := range r.Failure.Metadata {
			size += len(pair.Key) + len(pair.Value)
		}
	}
	return size
}

// answerSome sends the result to waiters in order while allowed permits, and returns the
// rest.
func (m *Machine) answerSome(sinks []Sink, r *journal.Result, allowed func(*journal.Result) bool) ([]Sink, error) {
	for i := range sinks {
		if !allowed(r) {
			return slices.Clip(sinks[i:]), nil
		}
		if err := m.answer(sinks[i], r); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// answerLate answers a request for the result of a completed invocation, or queues it if
// the entry has used up its budget.
func (m *Machine) answerLate(inv *Invocation, sink Sink) error {
	switch {
	case m.mayAnswer(inv.Result):
		return m.answer(sink, inv.Result)
	case len(inv.Sinks) >= m.bounds.sinks:
		return m.answer(sink, &tooManyWait)
	case len(inv.Sinks) == 0:
		m.scheduleAnswers(inv)
	}
	inv.Sinks = append(inv.Sinks, sink)
	m.st.PutInvocation(inv)
	return nil
}

func (m *Machine) scheduleAnswers(inv *Invocation) {
	m.setTimer(Timer{At: m.now, Kind: TimerAnswer, ID: inv.ID})
}

// mayAnswerByTimer reports whether a timer may copy a result.
func (m *Machine) mayAnswerByTimer(r *journal.Result) bool {
	return m.used.timerAnswers.spend(m.resultSize(r), m.bounds.answerBytes)
}

// answerPending answers further waiters of a completed invocation.
func (m *Machine) answerPending(inv *Invocation) (err error) {
	if inv.Sinks, err = m.answerSome(inv.Sinks, inv.Result, m.mayAnswerByTimer); err != nil {
		return err
	}
	if len(inv.Sinks) > 0 {
		m.scheduleAnswers(inv)
	}
	m.st.PutInvocation(inv)
	return nil
}

func (m *Machine) schedulePromiseAnswers(o Object, key string) {
	m.setTimer(Timer{At: m.now, Kind: TimerPromise, Name: promiseName(o, key)})
}

// answerPendingPromise answers further waiters of a completed promise.
func (m *Machine) answerPendingPromise(name string) error {
	o, key, ok := parsePromiseName(name)
	if !ok {
		return fmt.Errorf("timer of the promise %q: %w", name, errUnknownCommand)
	}
	p, err := m.st.Promise(o, key)
	if err != nil {
		return fmt.Errorf("read promise %q of %v: %w", key, o, err)
	}
	if p.Result == nil || len(p.Waiting) == 0 {
		return nil // deleted meanwhile, and possibly requested again
	}
	if p.Waiting, err = m.answerSome(p.Waiting, p.Result, m.mayAnswerByTimer); err != nil {
		return err
	}
	if len(p.Waiting) > 0 {
		m.schedulePromiseAnswers(o, key)
	}
	m.st.PutPromise(o, key, p)
	return nil
}

// hasPendingAnswers reports whether there are unanswered waiters that need what a purge
// would delete. From feature level 4 on, deletePromises checks those for promises.
func (m *Machine) hasPendingAnswers(inv *Invocation) (bool, error) {
	if len(inv.Sinks) > 0 || inv.Target.Type != target.WorkflowRun || m.level >= feature.Level4 {
		return len(inv.Sinks) > 0, nil
	}
	for p, err := range m.st.Promises(inv.Target.Object()) {
		if err != nil {
			return false, fmt.Errorf("read promises of %v: %w", inv.Target.Object(), err)
		}
		if p.Result != nil && len(p.Waiting) > 0 {
			return true, nil
		}
	}
	return false, nil
}

// isNeeded reports whether a completed invocation still has pending answers or sleeps.
func (m *Machine) isNeeded(inv *Invocation) (bool, error) {
	if pending, err := m.hasPendingSleeps(inv); err != nil || pending {
		return pending, err
	}
	return m.hasPendingAnswers(inv)
}

// purgeDelay is the delay, in milliseconds, before a purge is retried that pending answers
// or sleeps prevented.
const purgeDelay = 1000

// delayPurge keeps a completed invocation until nothing of it is pending.
func (m *Machine) delayPurge(inv *Invocation) {
	inv.ExpiresAt = after(m.now, purgeDelay)
	m.setTimer(Timer{At: inv.ExpiresAt, Kind: TimerPurge, ID: inv.ID})
	m.st.PutInvocation(inv)
}

// promiseName encodes a promise as a timer name: each part preceded by its length.
func promiseName(o Object, key string) string {
	var b strings.Builder
	for _, part := range []string{o.Scope, o.Service, o.Key, key} {
		b.WriteString(strconv.Itoa(len(part)))
		b.WriteByte(':')
		b.WriteString(part)
	}
	return b.String()
}

func parsePromiseName(name string) (o Object, key string, ok bool) {
	var parts [4]string
	for i := range parts {
		length, rest, found := strings.Cut(name, ":")
		n, err := strconv.Atoi(length)
		if !found || err != nil || n < 0 || n > len(rest) {
			return o, "", false
		}
		parts[i], name = rest[:n], rest[n:]
	}
	return Object{Scope: parts[0], Service: parts[1], Key: parts[2]}, parts[3], name == ""
}
