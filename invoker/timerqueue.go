package invoker

import (
	"container/heap"
	"maps"
	"slices"
	"sync"
	"time"
)

// lingerTime is how long a command without effect waits for the next one.
const lingerTime = 10 * time.Millisecond

const (
	// scanGap is the minimum time between two checks of open attempts. While slots are short,
	// an attempt becomes overdue nearly every millisecond.
	scanGap = 10 * time.Millisecond
	// scanPause is the minimum time between two scans of all open attempts, for each of them. A
	// scan takes about a hundredth of that. Idle ones that were not asked to make room are
	// checked in between.
	scanPause = 100 * time.Microsecond
	// maxScanPause bounds the product.
	maxScanPause = time.Second
)

// timerQueue runs the deadlines of a session with a single timer: silent attempts,
// backoffs, lingering steps.
type timerQueue struct {
	s *Session

	mu        sync.Mutex // covers the fields below; taken after all others
	timer     *time.Timer
	armed     time.Time // when the timer fires; zero: not armed
	stopped   bool
	open      map[*attempt]struct{}
	scan      time.Time  // when an open attempt may be overdue
	scanned   time.Time  // time of the last scan
	idle      []*attempt // found then, but not asked to make room
	idleAt    time.Time  // when the first of them are checked again
	backoff   backoffs
	lingering []*attempt // in order of time
	flushAt   time.Time  // of the first of them
	running   sync.WaitGroup
}

func (c *timerQueue) init(s *Session) {
	c.s = s
	c.open = map[*attempt]struct{}{}
}

// opened starts watching an attempt's deadline. The caller holds the mutex of the task.
func (c *timerQueue) opened(a *attempt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[a] = struct{}{}
	c.scanByLocked(a.nextCheckLocked(a.deadlineLocked()))
}

// closed is the opposite of opened. It may be called repeatedly. The caller holds the mutex of the task.
func (c *timerQueue) closed(a *attempt) {
	a.endSilenceLocked()
	a.endProbeLocked(attemptEnded)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, a)
}

// wake ensures that attempts are checked by a time.
func (c *timerQueue) wake(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.scanByLocked(at)
}

func (c *timerQueue) scanByLocked(at time.Time) {
	pause := min(max(time.Duration(len(c.open))*scanPause, scanGap), maxScanPause)
	if earliest := c.scanned.Add(pause); at.Before(earliest) {
		at = earliest
	}
	if c.scan.IsZero() || at.Before(c.scan) {
		c.scan = at
	}
	c.armLocked(at)
}

// backOff resumes a task when it is due. The caller holds its mutex. The task may still be in the queue
// for an earlier backoff that was cut short.
func (c *timerQueue) backOff(t *task) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.place > 0 {
		c.backoff[t.place-1].at = t.due
		heap.Fix(&c.backoff, t.place-1)
	} else {
		heap.Push(&c.backoff, backoff{t.due, t})
	}
	c.armLocked(t.due)
}

// forget removes a task that has ended. The caller holds its mutex. Backoffs can last for months.
func (c *timerQueue) forget(t *task) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.place > 0 {
		heap.Remove(&c.backoff, t.place-1)
	}
}

// linger flushes an attempt's steps after lingerTime.
func (c *timerQueue) linger(a *attempt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lingering = append(c.lingering, a)
	if len(c.lingering) == 1 {
		c.flushAt = time.Now().Add(lingerTime)
		c.armLocked(c.flushAt)
	}
}

// armLocked makes the timer fire no later than a time.
func (c *timerQueue) armLocked(at time.Time) {
	if c.stopped || !c.armed.IsZero() && !at.Before(c.armed) {
		return
	}
	c.armed = at
	wait := max(time.Until(at), 0)
	if c.timer == nil {
		c.timer = time.AfterFunc(wait, c.fire)
		return
	}
	c.timer.Reset(wait)
}

// stop waits until nothing is running.
func (c *timerQueue) stop() {
	c.mu.Lock()
	c.stopped = true
	if c.timer != nil {
		c.timer.Stop()
	}
	c.mu.Unlock()
	c.running.Wait()
}

// fire runs what is due and arms the timer for the next deadline.
func (c *timerQueue) fire() {
	c.mu.Lock()
	if c.stopped {
		c.mu.Unlock()
		return
	}
	c.running.Add(1)
	defer c.running.Done()
	c.armed = time.Time{}
	now := time.Now()
	resumed, flushed, watched := c.dueLocked(now)
	c.mu.Unlock()
	for _, a := range flushed {
		a.flush(true)
	}
	for _, t := range resumed {
		t.resume()
	}
	var next time.Time
	var idle []*attempt
	for _, a := range watched {
		at, noRoom := a.watch(now)
		if noRoom {
			idle = append(idle, a)
		}
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	c.rearm(next, idle)
}

// dueLocked removes and returns everything that is due.
func (c *timerQueue) dueLocked(now time.Time) (resumed []*task, flushed, watched []*attempt) {
	for len(c.backoff) > 0 && !c.backoff[0].at.After(now) {
		resumed = append(resumed, heap.Pop(&c.backoff).(backoff).t)
	}
	if len(c.lingering) > 0 && !c.flushAt.After(now) {
		flushed, c.lingering = c.lingering, nil
	}
	if !c.scan.IsZero() && !c.scan.After(now) {
		c.scan, c.scanned, c.idle = time.Time{}, now, nil
		watched = slices.AppendSeq(make([]*attempt, 0, len(c.open)), maps.Keys(c.open))
	}
	if len(c.idle) > 0 && !c.idleAt.After(now) {
		n := min(len(c.idle), maxRoomOpenings)
		watched, c.idle = c.idle[:n:n], c.idle[n:]
	}
	return resumed, flushed, watched
}

// rearm arms the timer after attempts were checked, of which some are idle.
func (c *timerQueue) rearm(scan time.Time, idle []*attempt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.idle = append(c.idle, idle...); len(c.idle) > 0 {
		if now := time.Now(); !c.idleAt.After(now) {
			c.idleAt = now.Add(scanGap)
		}
		c.armLocked(c.idleAt)
	}
	if !scan.IsZero() {
		c.scanByLocked(scan)
	}
	if !c.scan.IsZero() {
		c.armLocked(c.scan)
	}
	if len(c.backoff) > 0 {
		c.armLocked(c.backoff[0].at)
	}
	if len(c.lingering) > 0 {
		c.armLocked(c.flushAt)
	}
}

// backoff is a task that waits for a time.
type backoff struct {
	at time.Time
	t  *task
}

type backoffs []backoff

func (b backoffs) Len() int           { return len(b) }
func (b backoffs) Less(i, j int) bool { return b[i].at.Before(b[j].at) }
func (b backoffs) Swap(i, j int) {
	b[i], b[j] = b[j], b[i]
	b[i].t.place, b[j].t.place = i+1, j+1
}
func (b *backoffs) Push(x any) {
	*b = append(*b, x.(backoff))
	(*b)[len(*b)-1].t.place = len(*b)
}
func (b *backoffs) Pop() any {
	last := len(*b) - 1
	x := (*b)[last]
	(*b)[last] = backoff{}
	*b = (*b)[:last]
	x.t.place = 0
	return x
}
