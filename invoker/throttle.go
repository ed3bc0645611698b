package invoker

import (
	"slices"
	"sync"
	"time"

	"platform/internal/tokenbucket"
)

// throttle is a token bucket for which something may wait. A mutex of its owner covers it.
type throttle struct {
	tokenbucket.Bucket
	onToken func()        // called, in a goroutine of its own, when there is a token again
	armed   bool          // onToken will be called
	since   time.Time     // from when something has been waiting for tokens; zero if nothing is
	total   time.Duration // how long something has waited so far, without the time from since on
}

// wait records that something waits for a token, and has onToken called when there is one.
func (b *throttle) wait(now time.Time) {
	if b.since.IsZero() {
		b.since = now
	}
	if !b.armed {
		b.armed = true
		time.AfterFunc(b.Next(now).Sub(now), b.onToken)
	}
}

// over records that nothing waits for a token.
func (b *throttle) over(now time.Time) {
	if !b.since.IsZero() {
		b.total += now.Sub(b.since)
		b.since = time.Time{}
	}
}

// waited returns how long something has waited for tokens so far.
func (b *throttle) waited(now time.Time) time.Duration {
	if b.since.IsZero() {
		return b.total
	}
	return b.total + now.Sub(b.since)
}

// startsDue starts waiting attempts, since there is a token for another start.
func (iv *Invoker) startsDue() {
	q := &iv.slots
	q.mu.Lock()
	q.starts.armed = false
	q.mu.Unlock()
	iv.startNext(false)
}

// mayStartLocked reports whether there is a token for the start of an attempt; otherwise next is called when
// there is one.
func (q *slots) mayStartLocked(now time.Time) bool {
	if q.starts.Has(now) {
		return true
	}
	q.starts.wait(now)
	return false
}

// startsThrottled returns since when attempts wait because too many others have started; zero if none does.
func (q *slots) startsThrottled() time.Time {
	if !q.starts.Limited() {
		return time.Time{}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.starts.since
}

// actions divides the tokens for journal commands among the attempts of a node. Services take turns;
// within a service, attempts are served in order.
type actions struct {
	mu       sync.Mutex // covers the fields below
	tokens   throttle
	waiting  int
	services map[string]*actionQueue
	turns    fifo[*actionQueue] // the same
}

// actionQueue is the attempts of a service that wait for a token.
type actionQueue struct {
	service string
	waiters []*actionWaiter
}

// actionWaiter is an attempt that waits for a token.
type actionWaiter struct {
	service string
	granted chan struct{} // closed when it has a token, or has left
}

// take takes a token. If there is none, it returns what to wait for.
func (q *actions) take(service string) *actionWaiter {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	if q.waiting == 0 && q.tokens.Has(now) {
		q.tokens.Take(now)
		return nil
	}
	w := &actionWaiter{service: service, granted: make(chan struct{})}
	s := q.services[service]
	if s == nil {
		if q.services == nil {
			q.services = map[string]*actionQueue{}
		}
		s = &actionQueue{service: service}
		q.services[service] = s
		q.turns.push(s)
	}
	s.waiters = append(s.waiters, w)
	q.waiting++
	q.tokens.wait(now)
	return w
}

// leave ends the wait of an attempt that has ended. It returns a token that it did not use.
func (q *actions) leave(w *actionWaiter) {
	if w == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case <-w.granted:
		q.tokens.Return()
		return
	default:
	}
	close(w.granted)
	s := q.services[w.service]
	s.waiters = slices.DeleteFunc(s.waiters, func(other *actionWaiter) bool { return other == w })
	if q.waiting--; q.waiting == 0 {
		q.tokens.over(time.Now())
	}
}

// due gives tokens to those that wait.
func (q *actions) due() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.tokens.armed = false
	now := time.Now()
	for q.turns.len() > 0 {
		s := q.turns.first()
		if len(s.waiters) > 0 && !q.tokens.Has(now) {
			q.tokens.wait(now)
			return
		}
		q.turns.pop()
		if len(s.waiters) > 0 {
			q.tokens.Take(now)
			close(s.waiters[0].granted)
			s.waiters = slices.Delete(s.waiters, 0, 1)
			q.waiting--
		}
		if len(s.waiters) > 0 {
			q.turns.push(s)
		} else {
			delete(q.services, s.service)
		}
	}
	q.tokens.over(now)
}

// actionTokenLocked takes a token for the next message, if that is a complete command. If there is none, it
// returns what to wait for before the message may be read.
func (a *attempt) actionTokenLocked() *actionWaiter {
	q := &a.s.iv.actions
	if !q.tokens.Limited() || !a.decoder.NextIsCommand() {
		return nil
	}
	if a.actionPaid {
		a.actionPaid = false
		return nil
	}
	a.action = q.take(a.t.slot.service)
	return a.action
}

// awaitAction blocks the stream until the attempt has a token for its next command.
func (a *attempt) awaitAction(w *actionWaiter) {
	t := a.t
	t.mu.Lock()
	if a.openLocked() {
		a.activity.held, a.activity.throttled = true, time.Now()
	}
	t.mu.Unlock()
	<-w.granted // at the latest when the attempt ends
	t.mu.Lock()
	defer t.mu.Unlock()
	if a.openLocked() {
		a.activity.held, a.activity.throttled = false, time.Time{}
		a.action, a.actionPaid = nil, true
		a.touchLocked()
	}
}
