package flowcontrol_test

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"platform/flowcontrol"
	"platform/flowcontrol/flowtest"
	"platform/internal/ids"
)

// entry is an invocation of the model.
type entry struct {
	id       ids.Invocation
	queue    flowcontrol.QueueKey
	priority uint8
	stage    flowcontrol.Stage
	since    int64
	lined    int64  // when it was queued
	order    int    // of queueing
	seq      uint64 // sequence number in its lane
}

// sim drives the scheduler as the machine does, along with a model that uses only lists:
// the stage of each invocation and their order of arrival.
type sim struct {
	t       require.TestingT
	tables  *flowtest.Tables
	s       flowcontrol.Scheduler
	book    *flowcontrol.Book
	entries []*entry
	order   int
	wakes   []wake
	paused  map[flowcontrol.QueueKey]bool
	scopes  map[string]bool // paused ones
	started []*entry        // in order of admission
	tokens  map[flowcontrol.CounterKey][]int64
}

type wake struct {
	key flowcontrol.CounterKey
	at  int64
}

func newSim(t require.TestingT) *sim {
	s := &sim{
		t: t, tables: flowtest.New(), book: &flowcontrol.Book{},
		paused: map[flowcontrol.QueueKey]bool{}, scopes: map[string]bool{}, tokens: map[flowcontrol.CounterKey][]int64{},
	}
	s.s = flowcontrol.Scheduler{Tables: s.tables, Rules: flowcontrol.NewMatcher(s.book), Now: 1_000_000}
	s.s.Wake = func(key flowcontrol.CounterKey, at int64) { s.wakes = append(s.wakes, wake{key, at}) }
	return s
}

func (s *sim) arrive(q flowcontrol.QueueKey, priority uint8) *entry {
	var id ids.Invocation
	binary.BigEndian.PutUint64(id[16:], uint64(len(s.entries)+1))
	e := &entry{id: id, queue: q, priority: priority, since: s.s.Now}
	s.entries = append(s.entries, e)
	s.ask(e)
	return e
}

// ask requests a slot, for a new invocation or one that continues.
func (s *sim) ask(e *entry) {
	admitted, seq, err := s.s.Admit(e.queue, e.id, e.priority, flowcontrol.Transition{From: e.stage, Since: e.since})
	require.NoError(s.t, err)
	e.lined, e.seq, s.order = s.s.Now, seq, s.order+1
	e.order, e.since = s.order, s.s.Now
	if e.stage = flowcontrol.Inbox; admitted {
		s.runs(e)
	}
	s.drain(e.queue.Scope)
}

// runs records that an entry has got a slot, for which it must have been first.
func (s *sim) runs(e *entry) {
	require.Equal(s.t, flowcontrol.Inbox, e.stage)
	require.Same(s.t, s.first(e.queue), e, "not the first of %v", e.queue)
	require.False(s.t, s.scopes[e.queue.Scope], "its scope is paused")
	for l, key := range flowtest.Above(e.queue.Counter()) {
		if r := s.s.Rules.Match(e.queue.Scope, e.queue.LimitKey)[l]; r != nil {
			require.True(s.t, r.Limits.Concurrency == 0 || s.running(key) < int(r.Limits.Concurrency), "%v is above the limit", key)
		}
		s.tokens[key] = append(s.tokens[key], s.s.Now)
	}
	e.stage, e.since = flowcontrol.Running, s.s.Now
	s.started = append(s.started, e)
}

// first returns the entry of a queue that must be next.
func (s *sim) first(q flowcontrol.QueueKey) *entry {
	var waiting []*entry
	for _, e := range s.entries {
		if e.queue == q && e.stage == flowcontrol.Inbox {
			waiting = append(waiting, e)
		}
	}
	return slices.MinFunc(waiting, func(a, b *entry) int {
		rank := func(e *entry) int64 { return e.lined - int64(e.priority)*flowcontrol.PriorityHeadStart }
		return cmp.Or(cmp.Compare(rank(a), rank(b)), -cmp.Compare(a.priority, b.priority), cmp.Compare(a.order, b.order))
	})
}

func (s *sim) running(key flowcontrol.CounterKey) (n int) {
	for _, e := range s.entries {
		if e.stage == flowcontrol.Running && slices.Contains(flowtest.Above(e.queue.Counter()), key) {
			n++
		}
	}
	return n
}

func (s *sim) drain(scopes ...string) {
	for len(scopes) > 0 {
		scope := scopes[0]
		s.s.RingRemovals = 2 // as few as reach the bound; each call continues
		next, found, err := s.s.Next(scope, func(id ids.Invocation) (flowcontrol.Transition, error) {
			return flowcontrol.Transition{Since: s.find(id).since}, nil
		})
		require.NoError(s.t, err)
		if !found {
			if s.s.RingRemovals > 0 {
				scopes = scopes[1:]
			}
			continue
		}
		e := s.find(next.ID)
		require.Equal(s.t, e.queue, next.Key)
		require.False(s.t, s.paused[e.queue])
		s.runs(e)
	}
	require.Empty(s.t, s.tables.Broken(s.s.Now, nil))
}

func (s *sim) find(id ids.Invocation) *entry { return s.entries[binary.BigEndian.Uint64(id[16:])-1] }

// move moves an entry to a stage that needs no slot.
func (s *sim) move(e *entry, to flowcontrol.Stage) {
	if e.stage == flowcontrol.Inbox {
		require.NoError(s.t, s.s.Remove(e.queue, e.priority, e.seq))
	}
	require.NoError(s.t, s.s.Move(e.queue, flowcontrol.Transition{From: e.stage, To: to, Since: e.since}))
	e.stage, e.since = to, s.s.Now
	s.drain(e.queue.Scope)
}

func (s *sim) setRules(b *flowcontrol.Book) {
	s.book, s.s.Rules = b, flowcontrol.NewMatcher(b)
	s.tables.PutRules(b)
	clear(s.tokens)
	var all []string
	for from, more := (flowcontrol.CounterKey{}), true; more; {
		var scopes []string
		var err error
		scopes, from, more, err = s.s.RulesChanged(from, 3)
		require.NoError(s.t, err)
		all = append(all, scopes...)
	}
	s.drain(all...)
}

func (s *sim) pass(millis int64) {
	until := s.s.Now + millis
	for {
		slices.SortStableFunc(s.wakes, func(a, b wake) int { return cmp.Compare(a.at, b.at) })
		if len(s.wakes) == 0 || s.wakes[0].at > until {
			break
		}
		s.s.Now = max(s.s.Now, s.wakes[0].at)
		var scopes []string
		for len(s.wakes) > 0 && s.wakes[0].at <= s.s.Now {
			require.NoError(s.t, s.s.Reevaluate(s.wakes[0].key))
			scopes = append(scopes, s.wakes[0].key.Scope)
			s.wakes = s.wakes[1:]
		}
		s.drain(scopes...)
	}
	s.s.Now = until
	require.Empty(s.t, s.tables.Broken(s.s.Now, nil), "a timer is missing")
	for _, c := range s.tables.AllCounters() {
		require.True(s.t, c.WakeAt == 0 || c.WakeAt > s.s.Now, "%v", c)
	}
}

// withinRates checks that no interval has more starts than the bucket and its refill allow.
func (s *sim) withinRates() {
	for key, times := range s.tokens {
		r := s.s.Rules.Match(key.Scope, key.LimitKey)[key.Level()]
		if r == nil || r.Limits.Rate == nil {
			continue
		}
		rate := r.Limits.Rate
		for i := range times {
			for j := i; j < len(times); j++ {
				spent := time.Duration(times[j]-times[i]) * time.Millisecond
				allowed := int64(rate.Count) + int64(spent)*int64(rate.Count)/int64(rate.Period) + 1
				require.LessOrEqual(s.t, int64(j-i+1), allowed, "%v of %v", key, rate)
			}
		}
	}
}

func drawQueue(t *rapid.T) flowcontrol.QueueKey {
	return flowcontrol.QueueKey{
		Scope: rapid.SampledFrom([]string{"s", "r"}).Draw(t, "scope"),
		LimitKey: rapid.SampledFrom([]flowcontrol.LimitKey{{}, {L1: "a"}, {L1: "b"}, {L1: "a", L2: "x"}, {L1: "a", L2: "y"}}).
			Draw(t, "limit key"),
		Service: rapid.SampledFrom([]string{"A", "B"}).Draw(t, "service"),
	}
}

func drawBook(t *rapid.T) *flowcontrol.Book {
	var changes []flowcontrol.Change
	for _, p := range []string{"*", "s", "*/*", "s/a", "*/a/*", "s/*/x"} {
		if rapid.IntRange(0, 2).Draw(t, p) == 0 {
			continue
		}
		pattern, err := flowcontrol.ParsePattern(p)
		require.NoError(t, err)
		c := flowcontrol.Change{Pattern: pattern, Disabled: rapid.IntRange(0, 4).Draw(t, "disabled") == 0}
		c.Limits.Concurrency = rapid.Uint32Range(0, 4).Draw(t, "concurrency")
		if rapid.IntRange(0, 2).Draw(t, "rated") == 0 {
			c.Limits.Rate = &flowcontrol.Rate{
				Count:  rapid.Uint32Range(1, 3).Draw(t, "count"),
				Period: time.Duration(rapid.IntRange(1, 3000).Draw(t, "period")) * time.Millisecond,
			}
		}
		changes = append(changes, c)
	}
	b, _, err := (&flowcontrol.Book{}).Put(changes, 1)
	require.NoError(t, err)
	return b
}

// After every step sim checks that no limit is exceeded, that no admissible invocation
// waits, and the order within queues.
func TestTheSchedulerAgreesWithLists(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSim(t)
		s.setRules(drawBook(t))
		pick := func(stages ...flowcontrol.Stage) *entry {
			var some []*entry
			for _, e := range s.entries {
				if slices.Contains(stages, e.stage) {
					some = append(some, e)
				}
			}
			if len(some) == 0 {
				return nil
			}
			return rapid.SampledFrom(some).Draw(t, "entry")
		}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			switch n := rapid.IntRange(0, 20).Draw(t, "step"); {
			case n < 8:
				s.arrive(drawQueue(t), uint8(rapid.SampledFrom([]int{0, 0, 0, 1, 9}).Draw(t, "priority")))
			case n < 11:
				if e := pick(flowcontrol.Running); e != nil {
					s.move(e, rapid.SampledFrom([]flowcontrol.Stage{flowcontrol.Finished, flowcontrol.Finished, flowcontrol.Suspended, flowcontrol.Paused}).Draw(t, "to"))
				}
			case n < 13:
				if e := pick(flowcontrol.Suspended, flowcontrol.Paused); e != nil {
					s.ask(e)
				}
			case n < 14:
				if e := pick(flowcontrol.Inbox); e != nil {
					s.move(e, flowcontrol.Finished)
				}
			case n < 15:
				if e := pick(flowcontrol.Finished); e != nil {
					s.move(e, flowcontrol.Nowhere)
				}
			case n < 18:
				s.pass(int64(rapid.SampledFrom([]int{1, 50, 1000, 70_000}).Draw(t, "pass")))
			case n < 19:
				s.withinRates()
				s.setRules(drawBook(t))
			case n < 20:
				scope := drawQueue(t).Scope
				if s.scopes[scope] {
					require.NoError(t, s.s.ResumeScope(scope))
				} else {
					require.NoError(t, s.s.PauseScope(scope, &flowcontrol.QueuePause{By: "10.0.0.1", At: 1}))
				}
				s.scopes[scope] = !s.scopes[scope]
				s.drain(scope)
			default:
				q := drawQueue(t)
				change := s.s.Resume
				if !s.paused[q] {
					change = func(q flowcontrol.QueueKey) (bool, error) {
						return s.s.Pause(q, &flowcontrol.QueuePause{By: "10.0.0.1", At: 1})
					}
				}
				known, err := change(q)
				require.NoError(t, err)
				if known {
					s.paused[q] = !s.paused[q]
				}
				s.drain(q.Scope)
			}
		}
		s.withinRates()
		s.finish()
	})
}

// finish lets everything end; then no rows may be left.
func (s *sim) finish() {
	for scope := range s.scopes {
		require.NoError(s.t, s.s.ResumeScope(scope))
		s.scopes[scope] = false
		s.drain(scope)
	}
	for q := range s.paused {
		_, err := s.s.Resume(q)
		require.NoError(s.t, err)
		s.paused[q] = false
		s.drain(q.Scope)
	}
	for range 10 * len(s.entries) {
		for _, e := range s.entries {
			switch e.stage {
			case flowcontrol.Suspended, flowcontrol.Paused:
				s.ask(e)
			case flowcontrol.Running:
				s.move(e, flowcontrol.Finished)
			case flowcontrol.Finished:
				s.move(e, flowcontrol.Nowhere)
			}
		}
		s.pass(3000)
	}
	for _, e := range s.entries {
		require.Equal(s.t, flowcontrol.Nowhere, e.stage, "%v starves", e)
	}
	s.pass(10_000)
	for _, named := range s.tables.AllCounters() {
		require.Fail(s.t, "left over", "%v", named)
	}
	for q := range s.tables.VQueues() {
		require.Fail(s.t, "left over", "%v", q)
	}
}

func limit(t *testing.T, rules ...flowcontrol.Change) *flowcontrol.Book {
	b, _, err := (&flowcontrol.Book{}).Put(rules, 1)
	require.NoError(t, err)
	return b
}

func TestQueuesTakeTurns(t *testing.T) {
	s := newSim(t)
	s.setRules(limit(t, flowcontrol.Change{Pattern: flowcontrol.Pattern{Scope: "s"}, Limits: flowcontrol.Limits{Concurrency: 2}}))
	long := flowcontrol.QueueKey{Scope: "s", Service: "Long"}
	short := flowcontrol.QueueKey{Scope: "s", LimitKey: flowcontrol.LimitKey{L1: "a"}, Service: "Short"}
	for range 100 {
		s.arrive(long, 0)
	}
	for range 10 {
		s.arrive(short, 0)
	}
	for range 20 {
		running := slices.IndexFunc(s.entries, func(e *entry) bool { return e.stage == flowcontrol.Running })
		s.move(s.entries[running], flowcontrol.Finished)
	}
	var order string
	for _, e := range s.started[2:] {
		order += e.queue.Service[:1]
	}
	require.Equal(t, "LSLSLSLSLSLSLSLSLSLS", order)
}

func TestUrgentInvocationsDoNotStarveTheirQueue(t *testing.T) {
	s := newSim(t)
	s.setRules(limit(t, flowcontrol.Change{Pattern: flowcontrol.Pattern{Scope: "s"}, Limits: flowcontrol.Limits{Concurrency: 1}}))
	q := flowcontrol.QueueKey{Scope: "s", Service: "A"}
	s.arrive(q, 0)
	patient := s.arrive(q, 0)
	overtakers := 0
	for patient.stage == flowcontrol.Inbox {
		s.arrive(q, 9)
		s.pass(flowcontrol.PriorityHeadStart / 2)
		running := slices.IndexFunc(s.entries, func(e *entry) bool { return e.stage == flowcontrol.Running })
		s.move(s.entries[running], flowcontrol.Finished)
		overtakers++
	}
	require.InDelta(t, 2*9, overtakers, 2)
}

func TestARaisedLimitAdmitsAndALoweredLimitStopsNothing(t *testing.T) {
	s := newSim(t)
	any := func(n uint32) *flowcontrol.Book {
		return limit(t, flowcontrol.Change{Pattern: flowcontrol.Pattern{Scope: flowcontrol.Any}, Limits: flowcontrol.Limits{Concurrency: n}})
	}
	s.setRules(any(2))
	for i := range 20 {
		s.arrive(flowcontrol.QueueKey{Scope: fmt.Sprint("s", i%2), Service: "A"}, 0)
	}
	require.Len(t, s.started, 4, "each scope has a separate budget")
	s.setRules(any(5))
	require.Len(t, s.started, 10)
	s.setRules(any(1))
	require.Equal(t, 5, s.running(flowcontrol.CounterKey{Scope: "s0"}))
	for range 4 {
		s.move(s.started[0], flowcontrol.Finished)
		s.started = slices.DeleteFunc(s.started, func(e *entry) bool { return e.stage == flowcontrol.Finished })
	}
	s.setRules(&flowcontrol.Book{})
	for _, e := range s.entries {
		require.NotEqual(t, flowcontrol.Inbox, e.stage)
	}
}

func TestQueueLimits(t *testing.T) {
	s := newSim(t)
	two := uint64(2)
	s.setRules(limit(t, flowcontrol.Change{Pattern: flowcontrol.Pattern{Scope: "s"}, Limits: flowcontrol.Limits{Concurrency: 1, QueueLimit: &two}}))
	q := flowcontrol.QueueKey{Scope: "s", Service: "A"}
	for n, full := range []bool{false, false, false, true} {
		r, err := s.s.Full(q, false)
		require.NoError(t, err)
		require.Equal(t, full, r != nil, "%d", n)
		if !full {
			s.arrive(q, 0)
		}
	}
}

func BenchmarkAdmitAndFinish(b *testing.B) {
	b.ReportAllocs()
	s := newSim(b)
	book, _, err := s.book.Put([]flowcontrol.Change{{Pattern: flowcontrol.Pattern{Scope: "*"}, Limits: flowcontrol.Limits{Concurrency: 10}}}, 1)
	require.NoError(b, err)
	s.s.Rules = flowcontrol.NewMatcher(book)
	q := flowcontrol.QueueKey{Scope: "s", Service: "A"}
	for b.Loop() {
		admitted, _, err := s.s.Admit(q, ids.Invocation{}, 0, flowcontrol.Transition{Since: s.s.Now})
		if !admitted || err != nil {
			b.Fatal(admitted, err)
		}
		if err := s.s.Move(q, flowcontrol.Transition{From: flowcontrol.Running, Since: s.s.Now}); err != nil {
			b.Fatal(err)
		}
	}
}

func TestAverages(t *testing.T) {
	s := newSim(t)
	q := flowcontrol.QueueKey{Scope: "s", Service: "A"}
	from := s.s.Now
	move := func(c flowcontrol.Transition) {
		c.RunnableAt = from
		require.NoError(t, s.s.Move(q, c))
	}
	move(flowcontrol.Transition{To: flowcontrol.Inbox, Since: s.s.Now}) // for its key
	s.s.Now += 30
	admitted, _, err := s.s.Admit(q, ids.Invocation{1}, 0, flowcontrol.Transition{From: flowcontrol.Inbox, Since: from, RunnableAt: from, First: true, LockWait: 30})
	require.NoError(t, err)
	require.True(t, admitted)
	s.s.Now += 100
	move(flowcontrol.Transition{From: flowcontrol.Running, To: flowcontrol.Finished, Since: s.s.Now - 100})
	record, err := s.tables.VQueue(q)
	require.NoError(t, err)
	a := record.Averages
	for name, c := range map[string]struct {
		average flowcontrol.Average
		millis  int64
	}{
		"queue": {a.Queue, 30}, "inbox": {a.Inbox, 30}, "lock": {a.Lock, 30}, "run": {a.Run, 100}, "end to end": {a.EndToEnd, 130},
	} {
		micros, known := c.average.Micros()
		require.True(t, known, name)
		require.Equal(t, c.millis*1000, micros, name)
	}
	_, known := a.Suspension.Micros()
	require.False(t, known)
	require.Equal(t, from+30, record.LastStartAt)
	require.Equal(t, s.s.Now, record.LastFinishAt)
}
