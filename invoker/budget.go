package invoker

import (
	"sync"
	"time"
)

// budget is the memory that the attempts of a node may hold: data to replay that has not
// been sent, and data from endpoints that is not in the log yet. It counts payloads, and some bytes
// for each entry (limits.JournalEntry), not allocation overhead.
//
// When it is used up, attempts wait: starting ones, those that would read more, and those
// whose function has responded. If all memory were held by waiting attempts, they would deadlock. Therefore one attempt at a
// time may overdraw the budget, until everything that it has received is in the log.
//
// Attempts with little data do not wait behind those with much: see reservedLocked.
type budget struct {
	limit   int // bytes; 0: none
	ceiling int // bytes of one attempt; 0: none

	mu             sync.Mutex // covers the fields below and all accounts
	used           int
	reserved       int            // attempts that use the reserve
	reserveUsed    int            // bytes of used that count against the reserve instead of the limit
	readWaiters    fifo[*account] // waiting to continue reading
	holdWaiters    fifo[*account] // waiting to receive the response of a function
	startWaiters   fifo[*account] // waiting to start, with more than smallTransit
	smallStarts    fifo[*account] // waiting to start, with less
	overtaken      int            // how many small ones have started since the first large one is the first
	overdrawn      *account       // reads although the budget is used up
	progress       time.Time      // of the overdrawn account
	overdraftTimer *time.Timer
}

// overdraftTime is how long the attempt that may overdraw the budget may make no progress
// before another one may as well.
const overdraftTime = time.Second

// Memory returns the bytes of payloads that attempts hold, and their limit; 0: none.
func (iv *Invoker) Memory() (used, limit int) {
	iv.memory.mu.Lock()
	defer iv.memory.mu.Unlock()
	return iv.memory.used, iv.memory.limit
}

const (
	// smallTransit is how many bytes an attempt that uses the reserve may hold in each
	// direction.
	smallTransit = 64 << 10
	// reserveShare bounds the reserve to one part in reserveShare of the limit, in addition
	// to it.
	reserveShare = 4
)

// overtakesLocked counts a small attempt that starts before the large ones that wait. It returns false if as many
// have overtaken the first of these as fit into the reserve: those that follow wait behind it, so that it starts as soon
// as they have ended.
func (b *budget) overtakesLocked() bool {
	if b.overtaken >= b.limit/reserveShare/smallTransit {
		return false
	}
	b.overtaken++
	return true
}

// fitsLocked reports whether n more bytes are within the limit. A request above the limit fits
// when nothing else is in use.
func (b *budget) fitsLocked(n int) bool {
	used := b.countedLocked()
	return b.limit == 0 || used == 0 || used < b.limit && used+n <= b.limit
}

// countedLocked is what counts against the limit: attempts in the reserve must not keep a large one
// waiting.
func (b *budget) countedLocked() int { return b.used - b.reserveUsed }

// admitLocked resumes waiting attempts that fit: first those that read, so that the memory they
// hold is released, then those whose function has ended. Each queue is FIFO.
func (b *budget) admitLocked() {
	for b.readWaiters.len() > 0 {
		c := b.readWaiters.first()
		if !b.mayReceiveLocked(c, 0) {
			return
		}
		b.readWaiters.pop()
		c.wakeLocked()
	}
	for b.holdWaiters.len() > 0 {
		c := b.holdWaiters.first()
		if !b.mayReceiveLocked(c, c.need) {
			return
		}
		b.holdWaiters.pop()
		c.addLocked(&c.out, c.need)
		c.wakeLocked()
	}
	for b.admitStartLocked() {
	}
}

// admitStartLocked resumes the next attempt that waits to start: the first small one, unless too many of them have
// overtaken the first large one.
func (b *budget) admitStartLocked() bool {
	queue := &b.startWaiters
	if b.smallStarts.len() > 0 {
		c := b.smallStarts.first()
		if c.closed || b.fitsLocked(c.need) && (b.startWaiters.len() == 0 || b.overtakesLocked()) {
			queue = &b.smallStarts
		}
	}
	if queue.len() == 0 {
		return false
	}
	c := queue.first()
	if !c.closed && !b.fitsLocked(c.need) {
		return false
	}
	if queue.pop(); queue == &b.startWaiters {
		b.overtaken = 0
	}
	c.addLocked(&c.in, c.need)
	c.wakeLocked()
	return true
}

// mayReceiveLocked reports whether the first of the waiting attempts may receive n more bytes: because they
// fit, or because it is the one that may overdraw.
func (b *budget) mayReceiveLocked(c *account, n int) bool {
	if c.closed || b.fitsLocked(n) {
		return true
	}
	if b.overdrawn != nil {
		b.watchOverdraftLocked()
		return false
	}
	b.overdrawn, b.progress = c, time.Now()
	return true
}

// watchOverdraftLocked checks periodically whether the overdraft makes progress, while others
// wait for it.
func (b *budget) watchOverdraftLocked() {
	if b.overdraftTimer == nil {
		b.overdraftTimer = time.AfterFunc(overdraftTime, b.endOverdraft)
	}
}

// endOverdraft ends an overdraft without progress.
func (b *budget) endOverdraft() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.overdraftTimer = nil
	if b.overdrawn != nil && time.Since(b.progress) >= overdraftTime {
		b.overdrawn = nil
	}
	b.admitLocked()
}
