package invoker

import "time"

// An endpoint under load responds to attempts in order of arrival. If it is sent all new
// invocations together, resumed ones wait behind them. So only few new ones are started
// while the endpoint has not responded to resumed ones.

const (
	// maxFreshOpenings is how many new attempts of a service may wait for the endpoint's
	// first response while attempts of resumed invocations wait for theirs.
	maxFreshOpenings = 64
	// maxRoomOpenings is how many attempts of a service may wait for the endpoint's response
	// while its idle attempts are asked to make room for others of the service, including those
	// that were asked and have not ended.
	maxRoomOpenings = 32
	// openingTime is how long an attempt counts as opening. Some endpoints respond only
	// after they have done some work.
	openingTime = 100 * time.Millisecond
)

// opening is an attempt to which the endpoint has not responded yet, or an idle one that it has
// not ended yet. It is covered by the mutex of the slots.
type opening struct {
	share *share
	kind  openingKind
	over  bool // responded, ended, or timed out
	since time.Time
}

// openingKind is what the endpoint has to respond to.
type openingKind uint8

const (
	openingFresh   openingKind = iota // the first attempt of an invocation
	openingResumed                    // a further one
	openingRoom                       // asked to suspend, to make room
	openingKinds
)

// openings are the attempts of a service to which its endpoint has not responded yet.
type openings struct {
	counts  [openingKinds]int // those that are not over
	order   fifo[*opening]    // in order of start; some are over
	watched bool              // a timer for the first one is set
}

func (o *openings) add(s *share, kind openingKind, now time.Time) *opening {
	o.expire(now)
	a := &opening{share: s, kind: kind, since: now}
	o.order.push(a)
	o.counts[kind]++
	return a
}

// end stops counting an attempt. It returns false if that was done before.
func (o *openings) end(a *opening) bool {
	if a.over {
		return false
	}
	a.over = true
	o.counts[a.kind]--
	return true
}

// total returns how many are not over.
func (o *openings) total() (n int) {
	for _, count := range o.counts {
		n += count
	}
	return n
}

// expire ends the attempts that have been opening for too long.
func (o *openings) expire(now time.Time) {
	for o.order.len() > 0 {
		first := o.order.first()
		if !first.over && now.Sub(first.since) < openingTime {
			return
		}
		o.end(first)
		o.order.pop()
	}
}

// heldBackLocked reports whether new invocations of a service must wait, and sets a timer for
// them.
func (q *slots) heldBackLocked(s *share, now time.Time) bool {
	o := &s.openings
	o.expire(now)
	if o.counts[openingResumed] == 0 || o.counts[openingFresh] < maxFreshOpenings {
		return false
	}
	if q.reopen != nil && !o.watched {
		o.watched = true
		time.AfterFunc(o.order.first().since.Add(openingTime).Sub(now), func() { q.reopen(s) })
	}
	return true
}

// makeRoom reports whether an idle attempt of a service may be asked to suspend for others of that
// service. It may not while the endpoint does not keep up with what it has been sent: nothing would
// start earlier, but the idle one would need another attempt when it wakes up.
func (q *slots) makeRoom(s *share, now time.Time) (*opening, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	o := &s.openings
	o.expire(now)
	if o.total() >= maxRoomOpenings {
		return nil, false
	}
	return o.add(s, openingRoom, now), true
}

// roomMade records that an attempt that was asked to suspend has ended.
func (q *slots) roomMade(a *opening) {
	if a == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	a.share.openings.end(a)
}

// responded records that the endpoint has responded to an attempt, and starts attempts that
// were held back because of it. The caller must not hold the mutex of a task.
func (iv *Invoker) responded(a *opening) {
	q := &iv.slots
	q.mu.Lock()
	s := a.share
	if !s.openings.end(a) || s.fresh.len == 0 {
		q.mu.Unlock()
		return
	}
	short := q.updateHeapLocked(s, time.Now())
	q.mu.Unlock()
	iv.startNext(short)
}

// reopen starts new invocations that were held back for openingTime.
func (iv *Invoker) reopen(s *share) {
	q := &iv.slots
	q.mu.Lock()
	s.openings.watched = false
	short := q.updateHeapLocked(s, time.Now())
	q.mu.Unlock()
	iv.startNext(short)
}

// startNext starts waiting attempts that may have a slot. short means that slots have just
// become short.
func (iv *Invoker) startNext(short bool) {
	for w, ok := iv.slots.next(); ok; w, ok = iv.slots.next() {
		if !w.start() {
			iv.returnSlot(w)
		}
	}
	if short {
		iv.makeRoom()
	}
}
