package machine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"platform/internal/feature"
	"platform/partition/journal"
)

// One result may be waited for by thousands, and each of them gets a copy of it in its
// journal. To bound what one log entry writes, the rest of the waiters is kept beside the
// result, with a timer that is due at once. Each time it fires, some more get their
// answer; a new leader finds the timer in the table. Below feature level 2 all waiters get
// their answer in the same entry.

const (
	// answerBytes bounds the results that the commands of one log entry copy to those who
	// wait for them, and likewise those that its timers copy. One result may be larger.
	answerBytes = 4 << 20
	// answerOverhead is what an answer costs apart from the result.
	answerOverhead = 256
)

// allowance is what is left of a bound in bytes for one log entry.
type allowance struct{ spent int }

// spend reports whether a result of size bytes may be copied, and counts it.
func (a *allowance) spend(size int) bool {
	size += answerOverhead
	if a.spent > 0 && a.spent+size > answerBytes {
		return false
	}
	a.spent += size
	return true
}

// mayAnswer reports whether the entry may copy a result for one who waits.
func (m *Machine) mayAnswer(r *journal.Result) bool {
	return m.level < feature.Level2 || m.answers.spend(resultSize(r))
}

func resultSize(r *journal.Result) int {
	size := len(r.Value)
	if r.Failure != nil {
		size += len(r.Failure.Message)
	}
	return size
}

// answerSome answers as many of those who wait as allowed permits, and returns the rest.
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

// answerLate answers one who asks for the result of a completed invocation, or lets it
// wait for its turn.
func (m *Machine) answerLate(inv *Invocation, sink Sink) error {
	switch {
	case m.mayAnswer(inv.Result):
		return m.answer(sink, inv.Result)
	case len(inv.Sinks) >= maxSinks:
		return m.answer(sink, &tooManyWait)
	case len(inv.Sinks) == 0:
		m.oweAnswers(inv)
	}
	inv.Sinks = append(slices.Clip(inv.Sinks), sink)
	m.st.PutInvocation(inv)
	return nil
}

func (m *Machine) oweAnswers(inv *Invocation) {
	m.setTimer(Timer{At: m.now, Kind: TimerAnswer, ID: inv.ID})
}

// giveOwed reports whether a timer may copy a result.
func (m *Machine) giveOwed(r *journal.Result) bool { return m.owed.spend(resultSize(r)) }

// answerOwed goes on with those who wait for the result of a completed invocation.
func (m *Machine) answerOwed(inv *Invocation) (err error) {
	if inv.Sinks, err = m.answerSome(inv.Sinks, inv.Result, m.giveOwed); err != nil {
		return err
	}
	if len(inv.Sinks) > 0 {
		m.oweAnswers(inv)
	}
	m.st.PutInvocation(inv)
	return nil
}

func (m *Machine) owePromise(o Object, key string) {
	m.setTimer(Timer{At: m.now, Kind: TimerPromise, Name: promiseName(o, key)})
}

// answerOwedPromise goes on with those who wait for a completed promise.
func (m *Machine) answerOwedPromise(name string) error {
	o, key, ok := parsePromiseName(name)
	if !ok {
		return fmt.Errorf("timer of the promise %q: %w", name, ErrUnknownCommand)
	}
	p, err := m.st.Promise(o, key)
	if err != nil {
		return fmt.Errorf("read promise %q of %v: %w", key, o, err)
	}
	if p.Result == nil || len(p.Waiting) == 0 {
		return nil // forgotten meanwhile, and maybe asked for anew
	}
	if p.Waiting, err = m.answerSome(p.Waiting, p.Result, m.giveOwed); err != nil {
		return err
	}
	if len(p.Waiting) > 0 {
		m.owePromise(o, key)
	}
	m.st.PutPromise(o, key, p)
	return nil
}

// owes reports whether answers are owed that need what a purge would delete.
func (m *Machine) owes(inv *Invocation) (bool, error) {
	if len(inv.Sinks) > 0 || inv.Target.Type != WorkflowRun {
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

// purgeDelay is when a purge is tried again that would delete results that are owed.
const purgeDelay = 1000

// purgeLater keeps a completed invocation until its answers have been given.
func (m *Machine) purgeLater(inv *Invocation) {
	inv.ExpiresAt = after(m.now, purgeDelay)
	m.setTimer(Timer{At: inv.ExpiresAt, Kind: TimerPurge, ID: inv.ID})
	m.st.PutInvocation(inv)
}

// promiseName is a promise as the name of a timer: each part with its length in front.
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
