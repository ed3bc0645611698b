package invoker

import "platform/internal/errcode"

// openVolume bounds the bytes of an attempt in transit to the log.
const openVolume = 2 << 20

// attemptMemory is the part of the budget that the attempt holds.
type attemptMemory struct {
	account
	counted     int // received bytes that the budget has counted
	undelivered int // bytes of the response of a function that are held for the stream
}

// Sent implements endpoint.Sender.
func (a *attempt) Sent(n int) { a.memory.sent(n) }

// Hold implements endpoint.Memory: the response of a function waits for memory as a whole,
// since the part of a response that has arrived cannot be stored.
func (a *attempt) Hold(n int) error {
	if !a.enter() {
		return errEnded
	}
	defer a.leave()
	a.t.mu.Lock()
	if !a.openLocked() {
		a.t.mu.Unlock()
		return errEnded
	}
	grant, ok := a.memory.hold(n)
	if !ok {
		f := a.tooLarge()
		a.t.mu.Unlock()
		a.fail(f)
		return errEnded
	}
	defer a.t.mu.Unlock()
	if a.touchLocked(); grant != nil {
		a.activity.held = true
		a.t.mu.Unlock()
		<-grant // at the latest when the attempt ends
		a.t.mu.Lock()
		a.activity.held = false
		a.touchLocked()
	}
	a.memory.undelivered += n
	a.memory.counted += n
	if !a.openLocked() {
		return errEnded
	}
	return nil
}

// Release implements endpoint.Memory.
func (a *attempt) Release(n int) {
	a.t.mu.Lock()
	defer a.t.mu.Unlock()
	a.memory.undelivered -= n
	a.countLocked()
}

// countLocked updates the budget with the data that the attempt has received and that is not in
// the log. It returns false if that is too much.
func (a *attempt) countLocked() bool {
	holds := a.memory.undelivered + a.decoder.Size() + a.progress.bytes + a.t.volume
	if holds == a.memory.counted {
		return true
	}
	a.memory.counted = holds
	return a.memory.received(holds)
}

// tooLarge returns the failure of an attempt that holds more than the limit.
func (a *attempt) tooLarge() *failure {
	return failureOf(errcode.New(errcode.RT0001,
		"the attempt exceeds its memory limit of %d bytes (worker.invoker.per-invocation-memory-limit)", a.s.iv.cfg.InvocationMemoryLimit))
}

// throttle blocks the stream while too much data of this attempt, or of all attempts, is in
// transit to the log.
func (a *attempt) throttle() {
	t := a.t
	t.mu.Lock()
	defer t.mu.Unlock()
	for a.openLocked() && t.volume >= openVolume {
		a.activity.held = true
		t.moved.Wait()
	}
	if a.openLocked() {
		if grant := a.memory.read(); grant != nil {
			a.activity.held = true
			t.mu.Unlock()
			<-grant // at the latest when the attempt ends
			t.mu.Lock()
		}
	}
	if a.activity.held {
		a.activity.held = false
		a.touchLocked()
	}
}
