package invoker

import (
	"time"

	"platform/internal/errcode"
	"platform/partition/machine"
)

// A defective SDK suspends in each attempt until something that its journal contains already. The handler runs again
// immediately, as often as the log accepts, and no attempt fails. After a few attempts the next ones are delayed.

const (
	// toleratedSpins is how many attempts in a row are not delayed. The machine also lets a handler run again
	// without need: if it could not evaluate the condition in the same log entry, or if a signal arrived.
	toleratedSpins = 4
	// maxSpinDelay bounds the delay before the next attempt, which doubles from minDelay.
	maxSpinDelay = 10 * time.Second
)

// follow counts the attempts in a row that suspended and were to run again although nothing had been added to the
// journal that they had read: t, whose journal has the given length, follows the previous task. t is not shared yet.
func (t *task) follow(previous *task, length uint32) {
	previous.mu.Lock()
	defer previous.mu.Unlock()
	p := previous
	if p.a != nil && p.state == finishing && p.a.lastStep == machine.StepSuspend && p.inv != nil && p.inv.Length == length {
		t.spins = p.spins + 1
		t.deployed, t.server = p.deployed, p.server
	}
}

// delaySpin delays the first attempt of a task that follows spinning ones.
func (t *task) delaySpin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state != waiting {
		return // replaced meanwhile
	}
	t.reportLocked(failureOf(errcode.New(errcode.RT0012, "the handler has suspended %d times in a row, and was to run again each time although nothing was added to its journal", t.spins)))
	t.retry.total++
	t.backOffLocked(retry, min(minDelay<<min(t.spins-toleratedSpins-1, 20), maxSpinDelay)) // it has no slot yet
}
