package machine

import (
	"math"
	"slices"

	"platform/flowcontrol"
	"platform/internal/feature"
	"platform/internal/target"
)

// Flow is the flow control data of an invocation that has a scope. Invocations without a
// scope and state updates have none. Times are partition time in milliseconds, 0 if it has
// not happened.
type Flow struct {
	Stage      flowcontrol.Stage // the stage in which its vqueue counts it
	StageAt    int64             // when it entered the stage
	RunnableAt int64             // when it could first have run, had there been a slot
	StartedAt  int64             // when it last got a slot
	WaitsSince int64             // start of the current wait for its key or for a slot, while Inboxed

	Starts, Suspensions, Pauses uint32
	Errors                      uint32 // failed attempts, reported with the progress after them

	Lock       Wait // for its key
	Rules      Wait // for a slot, because of a concurrency limit
	Throttling Wait // for a slot, because of a rate
}

// Wait is how long an invocation waited for something, in milliseconds: before it last got
// a slot, and in total.
type Wait struct{ Latest, Total int64 }

func (w *Wait) add(millis int64) { w.Latest, w.Total = w.Latest+millis, w.Total+millis }

// VQueue returns the vqueue of an invocation that has a scope.
func (inv *Invocation) VQueue() flowcontrol.QueueKey {
	q := flowcontrol.QueueKey{Scope: inv.Target.Scope, Service: inv.Target.Service}
	if inv.LimitKey != "" {
		// An invalid limit key was rejected by the ingress or the caller.
		q.LimitKey, _ = flowcontrol.ParseLimitKey(inv.LimitKey)
	}
	return q
}

// initFlow puts a new invocation under flow control if it has a scope. An invalid scope was
// rejected by the ingress or the caller; here it is treated as no scope, since timer names
// must be able to encode its counters.
func (inv *Invocation) initFlow() {
	if inv.Target.Scope != "" && inv.Target.Type != target.StateUpdate && flowcontrol.CheckScope(inv.Target.Scope) == nil {
		inv.Flow = &Flow{}
	}
}

// stageOf maps a status to the stage in which it is counted.
var stageOf = [...]flowcontrol.Stage{
	Scheduled: flowcontrol.Scheduled,
	Inboxed:   flowcontrol.Inbox,
	Invoked:   flowcontrol.Running,
	Suspended: flowcontrol.Suspended,
	Paused:    flowcontrol.Paused,
	Completed: flowcontrol.Finished,
}

// Stage is the stage in which an invocation is counted, or would be if it had a scope.
func (inv *Invocation) Stage() flowcontrol.Stage { return stageOf[inv.Status] }

// put stores an invocation whose status has changed, and updates the counters. A released
// slot is assigned at the end of the command.
func (m *Machine) put(inv *Invocation) error {
	if inv.Flow == nil || inv.Flow.Stage == stageOf[inv.Status] {
		m.st.PutInvocation(inv)
		return nil
	}
	f, to := *inv.Flow, stageOf[inv.Status]
	c := f.transition(m.now)
	c.To = to
	m.enter(&f, to)
	inv.Flow = &f
	m.st.PutInvocation(inv)
	if err := m.scheduler(); err != nil {
		return err
	}
	if c.From == flowcontrol.Running {
		m.markFreed(inv.Target.Scope)
	}
	return m.flow.Move(inv.VQueue(), c)
}

// enter records a new stage.
func (m *Machine) enter(f *Flow, to flowcontrol.Stage) {
	switch to {
	case flowcontrol.Inbox:
		f.WaitsSince = m.now
		if f.RunnableAt == 0 {
			f.RunnableAt = m.now
		}
	case flowcontrol.Suspended:
		f.Suspensions++
	case flowcontrol.Paused:
		f.Pauses++
	case flowcontrol.Running:
		f.Starts++
		f.StartedAt = m.now
		if f.RunnableAt == 0 {
			f.RunnableAt = m.now
		}
	}
	if f.Stage == flowcontrol.Running && (to != flowcontrol.Finished || m.level < feature.Level4) {
		f.Lock.Latest, f.Rules.Latest, f.Throttling.Latest = 0, 0, 0
	}
	f.Stage, f.StageAt = to, m.now
}

// transition returns the transition out of the current stage. An invocation that leaves no
// stage, or one that counts as runnable, is runnable from now on at the latest.
func (f *Flow) transition(now int64) flowcontrol.Transition {
	c := flowcontrol.Transition{From: f.Stage, Since: f.StageAt, RunnableAt: f.RunnableAt, First: f.Starts == 0}
	if c.RunnableAt == 0 && f.Stage != flowcontrol.Scheduled {
		c.RunnableAt = now
	}
	return c
}

// recordKeyWait records how long the invocation waited for its key.
func (inv *Invocation) recordKeyWait(now int64) {
	f := *inv.Flow
	f.Lock.add(now - f.WaitsSince)
	f.WaitsSince = now
	inv.Flow = &f
}

// acquireSlot takes a slot of the invocation's scope or queues for one; in the latter case
// inv is stored.
func (m *Machine) acquireSlot(inv *Invocation) (got bool, err error) {
	if err := m.scheduler(); err != nil {
		return false, err
	}
	f := *inv.Flow
	c := f.transition(m.now)
	if c.RunnableAt == 0 {
		c.RunnableAt = m.now
	}
	if f.Stage == flowcontrol.Inbox && f.WaitsSince == m.now {
		c.LockWait = f.Lock.Latest
	}
	got, place, err := m.flow.Admit(inv.VQueue(), inv.ID, inv.Priority, c)
	if err != nil {
		return false, err
	}
	if got {
		m.enter(&f, flowcontrol.Running)
		inv.Flow = &f
		return true, nil
	}
	m.markFreed(inv.Target.Scope) // this command may have released slots already
	if f.Stage != flowcontrol.Inbox {
		m.enter(&f, flowcontrol.Inbox)
	}
	inv.Flow, inv.QueueSeq, inv.Await, inv.AwaitReduced = &f, place, nil, false
	if inv.Status == Inboxed {
		m.st.PutInvocation(inv)
		return false, nil
	}
	if err := inv.move(Inboxed, m.now); err != nil {
		return false, err
	}
	inv.InboxedAt = m.now
	m.st.PutInvocation(inv)
	return false, nil
}

// dequeue removes an invocation from the queue for its key or for a slot.
func (m *Machine) dequeue(inv *Invocation) error {
	place := inv.QueueSeq
	inv.QueueSeq = 0
	if inv.Target.Type.Exclusive() && !inv.HoldsLock {
		m.st.DeleteWaiting(inv.Target.Object(), place)
		return nil
	}
	if inv.Target.Type == target.StateUpdate { // delayed, see delayUpdate
		return m.dropTimer(Timer{At: inv.InboxedAt, Kind: TimerUpdate, ID: inv.ID})
	}
	if err := m.scheduler(); err != nil {
		return err
	}
	return m.flow.Remove(inv.VQueue(), inv.Priority, place)
}

// uncount removes a completed invocation from the counters.
func (m *Machine) uncount(inv *Invocation) error {
	if err := m.scheduler(); err != nil {
		return err
	}
	return m.flow.Move(inv.VQueue(), flowcontrol.Transition{From: inv.Flow.Stage, Since: m.now})
}

// markFreed records that an invocation of the scope may have become admissible.
func (m *Machine) markFreed(scope string) {
	if m.isFreed(scope) {
		return
	}
	m.freedScopes = append(m.freedScopes, scope)
	if m.freed != nil {
		m.freed[scope] = struct{}{}
	}
}

// fewFreed is the number of scopes up to which they are searched one by one.
const fewFreed = 16

func (m *Machine) isFreed(scope string) (known bool) {
	if len(m.freedScopes) <= fewFreed {
		return slices.Contains(m.freedScopes, scope)
	}
	if m.freed == nil {
		m.freed = make(map[string]struct{}, 2*len(m.freedScopes))
		for _, s := range m.freedScopes {
			m.freed[s] = struct{}{}
		}
	}
	_, known = m.freed[scope]
	return known
}

// scheduler prepares the scheduler for the command being applied.
func (m *Machine) scheduler() error {
	if m.flow.Tables != nil {
		return nil
	}
	if m.book == nil || m.book.Version != m.meta.Rules {
		book, err := m.st.Rules()
		if err != nil {
			return err
		}
		m.book, m.flow.Rules = book, flowcontrol.NewMatcher(book)
	}
	m.flow.Tables, m.flow.Now = m.st, m.now
	if m.level < feature.Level4 {
		m.flow.RingRemovals = math.MaxInt
	}
	return nil
}
