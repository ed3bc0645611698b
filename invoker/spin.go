package invoker

import (
	"time"

	"platform/internal/errcode"
	"platform/partition/machine"
)

// A handler that suspends until something that its journal contains already runs again immediately. A defective SDK does
// so in each attempt, as fast as the log accepts it, and no attempt fails. Such attempts back off like failed ones.

// maxSpinDelay bounds the delay before the next attempt, which doubles from minDelay.
const maxSpinDelay = 10 * time.Second

// follow counts the attempts in a row that have suspended although nothing had been added to the journal since they were
// admitted: t, whose journal has the given length, follows the previous task. t is not shared yet.
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
	t.report(failureOf(errcode.New(errcode.RT0012, "the handler suspended until something that its journal contained already, %d times in a row", t.spins)))
	t.retry.total++
	t.backOff(retry, min(minDelay<<min(t.spins-1, 20), maxSpinDelay)) // it has no slot yet
}
