package invoker

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"platform/flowcontrol"
)

// queueing is slots with the waiters that got one, without a session.
type queueing struct {
	*slots
	iv      *Invoker
	started []waiter
}

func newQueueing(limit int) *queueing {
	l := &queueing{iv: &Invoker{}}
	l.slots = &l.iv.slots
	l.limit = limit
	return l
}

func (l *queueing) arrive(service string, resumed bool, n uint64) bool {
	w := waiter{number: n}
	got, more, _ := l.acquire(flowcontrol.QueueKey{Service: service}, resumed, &w)
	if got {
		l.started = append(l.started, w)
	}
	if !more {
		return got
	}
	l.startAll()
	return slices.ContainsFunc(l.started, func(s waiter) bool { return s.number == n })
}

func (l *queueing) startAll() {
	for w, ok := l.next(); ok; w, ok = l.next() {
		l.started = append(l.started, w)
	}
}

// later lets time pass for the open attempts.
func (l *queueing) later(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.shares {
		o := &s.openings
		for _, a := range o.order.all[o.order.head:] {
			a.since = a.since.Add(-d)
		}
		l.updateHeapLocked(s, time.Now())
	}
}

// While the endpoint of a service does not keep up, its idle attempts are not suspended: they would
// need another attempt when they wake up, behind those that wait.
func TestNoRoomIsMadeWhileTheEndpointDoesNotKeepUp(t *testing.T) {
	l := newQueueing(0)
	room := func(service string) bool {
		_, ok := l.makeRoom(l.shares[service], time.Now())
		return ok
	}
	require.True(t, l.arrive("B", false, 0))
	for n := range maxRoomOpenings {
		require.True(t, l.arrive("A", n%2 == 0, 0))
	}
	require.False(t, room("A"))
	require.True(t, room("B"))

	l.shares["A"].openings.end(l.shares["A"].openings.order.all[0])
	require.True(t, room("A"), "one has responded")
	require.False(t, room("A"), "the request counts")
	l.later(openingTime)
	for range maxRoomOpenings {
		require.True(t, room("A"), "the others are no longer waited for")
	}
	require.False(t, room("A"))
	l.later(openingTime)
	require.True(t, room("A"), "although none of those that were asked has ended")
}

// While a resumed invocation waits for the endpoint, few new ones are started.
func TestNewWorkIsHeldBackBehindWorkInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newQueueing(0)
		reopened := 0
		l.reopen = func(s *share) {
			reopened++
			l.mu.Lock()
			s.openings.watched = false
			l.updateHeapLocked(s, time.Now())
			l.mu.Unlock()
			l.startAll()
		}
		require.True(t, l.arrive("A", true, 0))
		for n := range uint64(maxFreshOpenings) {
			require.True(t, l.arrive("A", false, 1+n))
		}
		require.False(t, l.arrive("A", false, 100))
		require.False(t, l.arrive("A", false, 101))
		require.True(t, l.arrive("A", true, 102), "resumed invocations are not held back")
		require.True(t, l.arrive("B", false, 103), "nor are other services")
		own, _ := l.pressure("A")
		require.False(t, own, "it is not for a slot that they wait")

		l.mu.Lock()
		require.True(t, l.started[1].share.openings.end(l.started[1].opening)) // answered
		l.updateHeapLocked(l.started[1].share, time.Now())
		l.mu.Unlock()
		l.startAll()
		require.Equal(t, uint64(100), l.started[len(l.started)-1].number, "one for each that is answered")
		require.Equal(t, 1, l.waiting)

		time.Sleep(openingTime - time.Millisecond)
		require.Equal(t, 1, l.waiting)
		time.Sleep(time.Millisecond)
		synctest.Wait()
		require.Equal(t, 1, reopened)
		require.Zero(t, l.waiting, "an endpoint that does not answer holds nothing back for longer")
	})
}

func TestNewWorkAloneIsNotHeldBack(t *testing.T) {
	l := newQueueing(0)
	for n := range uint64(10 * maxFreshOpenings) {
		require.True(t, l.arrive("A", false, n))
	}
}

// New invocations leave a few slots for those that wake up.
func TestWorkInProgressGetsASlot(t *testing.T) {
	l := newQueueing(1000)
	resumed := uint64(10_000)
	for n := range uint64(1000) {
		require.Equal(t, n < 942, l.arrive("A", false, n))
	}
	l.later(openingTime)
	for l.arrive("A", true, resumed) {
		resumed++
	}
	require.Equal(t, 985, l.used)
	started := 0
	for _, w := range l.started[942:] {
		if w.opening.kind == openingFresh {
			started++
		}
	}
	require.Equal(t, 43/(maxResumedInRow+1), started, "new work is not starved")
	require.True(t, l.arrive("B", false, 0))
}

// An invocation that wakes up gets one of the slots that are left for it while idle handlers hold
// those of new ones, also when it is the turn of a new one.
func TestWorkInProgressDoesNotWaitForNewWork(t *testing.T) {
	l := newQueueing(1000)
	for n := range uint64(1000) {
		l.arrive("A", false, n)
	}
	for n := range uint64(10 * maxResumedInRow) {
		l.later(openingTime)
		require.True(t, l.arrive("A", true, 10_000+n), "%d", n)
		for l.used > 950 { // those that have woken up end
			if w, passed := l.release(l.shares["A"]); passed {
				l.started = append(l.started, w)
			}
		}
	}
}

// For any load: no limit is exceeded, no invocation waits while it could start, new work is
// held back only while resumed invocations wait for a response, and all are served.
func TestOpeningsAreBounded(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		limit := rapid.SampledFrom([]int{0, 3, 50, 200}).Draw(r, "limit")
		l := newQueueing(limit)
		arrived := 0
		var open []waiter
		check := func() {
			open, l.started = append(open, l.started...), nil
			now := time.Now()
			require.True(r, limit == 0 || l.used <= limit)
			require.Equal(r, len(open), l.used)
			require.Equal(r, arrived, l.used+l.waiting)
			for name, s := range l.shares {
				next, ok := l.pickLocked(s, s.resumed.len, s.fresh.len, now)
				require.False(r, ok, "%s: a resumed one: %v", name, next)
				require.Equal(r, s.waiting, s.resumed.len+s.fresh.len)
				resumed, fresh := 0, 0
				for _, w := range open {
					if w.share == s && !w.opening.over && w.opening.kind == openingResumed {
						resumed++
					} else if w.share == s && !w.opening.over {
						fresh++
					}
				}
				require.GreaterOrEqual(r, s.openings.counts[openingResumed], resumed)
				require.GreaterOrEqual(r, s.openings.counts[openingFresh], fresh)
				require.False(r, l.heldBackLocked(s, now) && s.openings.counts[openingResumed] == 0)
				require.GreaterOrEqual(r, s.openings.counts[openingRoom], 0)
			}
		}
		take := func() waiter {
			i := rapid.IntRange(0, len(open)-1).Draw(r, "which")
			w := open[i]
			open = append(open[:i], open[i+1:]...)
			return w
		}
		for range rapid.IntRange(1, 400).Draw(r, "events") {
			service := fmt.Sprint(rapid.IntRange(0, 2).Draw(r, "service"))
			switch rapid.IntRange(0, 10).Draw(r, "event") {
			case 0, 1, 2, 3, 4:
				arrived++
				l.arrive(service, rapid.IntRange(0, 3).Draw(r, "resumed") == 0, 0)
			case 5, 6:
				if len(open) > 0 {
					w := take()
					open = append(open, w)
					l.mu.Lock()
					w.share.openings.end(w.opening)
					l.updateHeapLocked(w.share, time.Now())
					l.mu.Unlock()
				}
			case 7, 8:
				if len(open) > 0 {
					arrived--
					if w, ok := l.release(take().share); ok {
						l.started = append(l.started, w)
					}
				}
			case 9:
				if s := l.shares[service]; s != nil {
					room, ok := l.makeRoom(s, time.Now())
					require.Equal(r, ok, room != nil)
					require.LessOrEqual(r, s.openings.counts[openingRoom], maxRoomOpenings)
					if rapid.Bool().Draw(r, "ends") {
						l.roomMade(room)
					}
				}
			case 10:
				l.later(time.Duration(rapid.IntRange(1, 60).Draw(r, "ms")) * time.Millisecond)
			}
			l.startAll()
			check()
		}
		for l.used > 0 {
			arrived--
			if w, ok := l.release(take().share); ok {
				l.started = append(l.started, w)
			}
			l.later(openingTime)
			l.startAll()
			check()
		}
		require.Zero(r, l.waiting)
	})
}

// TestInvocationsThatEndedWhileTheyWaitedOpenNothing requires that they do not hold back others.
func TestInvocationsThatEndedWhileTheyWaitedOpenNothing(t *testing.T) {
	l := newQueueing(1000)
	require.True(t, l.arrive("A", true, 0))
	for n := range uint64(maxFreshOpenings) {
		require.True(t, l.arrive("A", false, 1+n))
	}
	require.False(t, l.arrive("A", false, 100), "the endpoint has not responded to the resumed one")
	w, passed := l.giveBack(l.started[1])
	require.True(t, passed)
	require.EqualValues(t, 100, w.number)
}
