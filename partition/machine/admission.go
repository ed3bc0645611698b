package machine

import (
	"fmt"

	"platform/internal/failpoint"
	"platform/internal/feature"
	"platform/internal/target"
)

// admit is the only path to running, for every invocation. In this order it requires: the
// start time has come, the invocation holds its key if it needs one, and it holds a slot of
// its scope if it has one. It is called when the invocation is created, when one of these
// conditions changes, and when a suspended or paused invocation continues. Limits on
// running invocations are checked here, inside apply, so that they hold at every log index;
// the command that releases a key or a slot admits the next invocation.
//
// The key is taken before the slot: an invocation that waits for a slot while holding its
// key delays only invocations of the same key, and the holder of a slot never waits for a
// key, so there is no deadlock. Both queues are FIFO, so there is no starvation.
//
// input is the payload of the Input entry if the caller has it. inv is stored and must not
// be modified afterwards.
func (m *Machine) admit(inv *Invocation, input []byte) error {
	if inv.StartAt > m.now {
		return m.schedule(inv)
	}
	if inv.Target.Type.Exclusive() && !inv.HoldsLock {
		if got, err := m.acquire(inv); err != nil || !got {
			return err
		}
	}
	if inv.Target.Type == target.StateUpdate && m.level >= feature.Level4 && (m.updates > 0 || m.used.updateBytes >= m.bounds.updateBytes) {
		return m.delayUpdate(inv)
	}
	if inv.Flow != nil {
		if got, err := m.acquireSlot(inv); err != nil || !got {
			return err
		}
	}
	return m.start(inv, input)
}

// schedule makes a delayed invocation wait for its start time.
func (m *Machine) schedule(inv *Invocation) error {
	if err := inv.move(Scheduled, m.now); err != nil {
		return err
	}
	inv.ScheduledAt = m.now
	m.setTimer(Timer{At: inv.StartAt, Kind: TimerStart, ID: inv.ID})
	return m.put(inv)
}

// start assigns the next attempt number, which makes all earlier attempts stale, and emits
// the effect that runs the attempt.
func (m *Machine) start(inv *Invocation, input []byte) error {
	if err := inv.move(Invoked, m.now); err != nil {
		return err
	}
	m.meta.Attempt++
	inv.Attempt = m.meta.Attempt
	inv.Await, inv.AwaitReduced, inv.Failure, inv.Seen = nil, false, nil, inv.Length
	inv.Failed = FailedAttempts{}
	if inv.RunningAt == 0 {
		inv.RunningAt = m.now
	}
	if inv.Target.Type == target.StateUpdate {
		m.st.PutInvocation(inv)
		m.local = append(m.local, &update{inv.ID})
		m.updates++
		return nil
	}
	run := RunOf(inv)
	if inv.Length == 1 {
		if input == nil && m.used.inputBytes < m.bounds.answerBytes {
			entry, err := m.st.Entry(inv.ID, 0)
			if err != nil {
				return fmt.Errorf("read input of %s: %w", inv.ID, err)
			}
			input = entry.Payload
			m.used.inputBytes += len(input)
		}
		run.Input = input
	}
	m.st.PutInvocation(inv)
	m.emit(run)
	return nil
}

// RunOf returns the effect that runs an attempt of an invoked invocation, without the
// input.
func RunOf(inv *Invocation) *Run {
	record := *inv
	return &Run{Invocation: &record}
}

// acquire takes the lock of the object or queues for it; in the latter case inv is stored.
func (m *Machine) acquire(inv *Invocation) (got bool, err error) {
	o := inv.Target.Object()
	lock, err := m.st.Lock(o)
	if err != nil {
		return false, fmt.Errorf("read lock of %v: %w", o, err)
	}
	if lock.Holder.IsZero() || failpoint.Active(failpoint.IgnoreLocks) && m.meta.Attempt%7 == 0 {
		lock.Holder, inv.HoldsLock = inv.ID, true
		m.st.PutLock(o, lock)
		return true, nil
	}
	if err := inv.move(Inboxed, m.now); err != nil {
		return false, err
	}
	inv.InboxedAt, inv.QueueSeq = m.now, lock.Tail
	m.st.PutWaiting(o, lock.Tail, inv.ID)
	lock.Tail++
	m.st.PutLock(o, lock)
	return false, m.put(inv)
}

// release passes the lock of an object to the longest-waiting invocation and admits it.
func (m *Machine) release(o Object) error {
	lock, err := m.st.Lock(o)
	if err != nil {
		return fmt.Errorf("read lock of %v: %w", o, err)
	}
	next, err := m.nextWaiting(o, &lock)
	if err != nil {
		return err
	}
	if next == nil {
		m.st.PutLock(o, Lock{})
		return nil
	}
	lock.Holder = next.ID
	m.st.PutLock(o, lock)
	next.HoldsLock, next.QueueSeq = true, 0
	if next.Flow != nil {
		next.recordKeyWait(m.now)
	}
	return m.admit(next, nil)
}

// nextWaiting removes and returns the head of the queue, skipping gaps left by removed
// invocations; nil if the queue is empty.
func (m *Machine) nextWaiting(o Object, lock *Lock) (*Invocation, error) {
	for lock.Head < lock.Tail {
		seq, id, err := m.st.FirstWaiting(o, lock.Head, lock.Tail)
		if err != nil {
			return nil, fmt.Errorf("read queue of %v: %w", o, err)
		}
		if id.IsZero() {
			return nil, nil
		}
		lock.Head = seq + 1
		m.st.DeleteWaiting(o, seq)
		if next, err := m.invocation(id); err != nil || next != nil {
			return next, err
		}
	}
	return nil, nil
}
