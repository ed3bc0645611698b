package invoker

import "time"

// An endpoint under load answers attempts in the order in which they come. If it is given
// all new invocations at once, those that wake up wait behind them. So few new ones are
// open for the first time while the endpoint works on others that have begun before.

const (
	// mostOpenings is how many new attempts of a service may wait for the endpoint's first
	// answer while attempts of invocations that have begun before wait for it as well.
	mostOpenings = 64
	// openingTime is how long an attempt counts as opening. Some endpoints answer only
	// after they have done something.
	openingTime = 100 * time.Millisecond
)

// opening is an attempt that the endpoint has not answered yet. It is guarded by the
// mutex of the slots.
type opening struct {
	share *share
	begun bool // the invocation has been attempted before
	over  bool // answered, or for too long
	since time.Time
}

// openings are the attempts of a service that its endpoint has not answered yet.
type openings struct {
	begun, fresh int            // those that are not over
	order        fifo[*opening] // in order of their time; some are over
	watched      bool           // the time of the first one is waited for
}

func (o *openings) add(s *share, begun bool, now time.Time) *opening {
	o.expire(now)
	a := &opening{share: s, begun: begun, since: now}
	o.order.push(a)
	if begun {
		o.begun++
	} else {
		o.fresh++
	}
	return a
}

// end counts an attempt no longer. It reports false if that has been done before.
func (o *openings) end(a *opening) bool {
	if a.over {
		return false
	}
	a.over = true
	if a.begun {
		o.begun--
	} else {
		o.fresh--
	}
	return true
}

// expire ends the attempts that have been opening for too long.
func (o *openings) expire(now time.Time) {
	for o.order.len() > 0 {
		first := o.order.all[o.order.head]
		if !first.over && now.Sub(first.since) < openingTime {
			return
		}
		o.end(first)
		o.order.pop()
	}
}

// heldBack reports whether new invocations of a service are not to begin now, and sees to
// it that they do later.
func (q *slots) heldBack(s *share, now time.Time) bool {
	o := &s.openings
	o.expire(now)
	if o.begun == 0 || o.fresh < mostOpenings {
		return false
	}
	if q.reopen != nil && !o.watched {
		o.watched = true
		time.AfterFunc(o.order.all[o.order.head].since.Add(openingTime).Sub(now), func() { q.reopen(s) })
	}
	return true
}

// answered notes that the endpoint has answered an attempt, and starts others that were
// held back because of it. No task's mutex may be held.
func (iv *Invoker) answered(a *opening) {
	q := &iv.slots
	q.mu.Lock()
	s := a.share
	if !s.openings.end(a) || s.fresh.len == 0 {
		q.mu.Unlock()
		return
	}
	short := q.settle(s, time.Now())
	q.mu.Unlock()
	iv.startNext(short)
}

// reopen starts new invocations that were held back for as long as they may be.
func (iv *Invoker) reopen(s *share) {
	q := &iv.slots
	q.mu.Lock()
	s.openings.watched = false
	short := q.settle(s, time.Now())
	q.mu.Unlock()
	iv.startNext(short)
}

// startNext starts what may have a slot. short says that others wait for one since now.
func (iv *Invoker) startNext(short bool) {
	for w, ok := iv.slots.next(); ok; w, ok = iv.slots.next() {
		if !w.start() {
			iv.giveBack(w.share)
		}
	}
	if short {
		iv.makeRoom()
	}
}
