package machine

import (
	"fmt"

	"platform/internal/feature"
	"platform/internal/ids"
	"platform/partition/journal"
)

// A kill reads the journal of the invocation to find its pending calls. To bound what one log
// entry reads, a kill continues with a timer that is due immediately and contains the index
// of the next entry. The invocation is paused until then, so that its handler makes no more
// calls. Below feature level 4 the whole journal is read in the same entry.

const (
	// maxJournalReads bounds the bytes of the journals of ending and suspending invocations that one log entry reads.
	maxJournalReads = 16 << 20
	// entryOverhead is the cost of reading an entry apart from its payload.
	entryOverhead = 256
)

// killFrom kills the pending callees of inv that are in its journal from an entry on, and
// then inv itself.
func (m *Machine) killFrom(inv *Invocation, from uint32) (Outcome, error) {
	callees, next, err := m.killSome(inv, from)
	if err != nil {
		return Outcome{}, err
	}
	for i := range callees {
		sink := callSink(inv, callees[i].completion)
		if err := m.killCallee(callees[i].id, &sink); err != nil {
			return Outcome{}, err
		}
	}
	if next < inv.Length {
		m.setTimer(Timer{At: m.now, Kind: TimerKill, ID: inv.ID, Completion: next})
		if err := m.halt(inv); err != nil {
			return Outcome{}, err
		}
		return describe(OK, inv), nil
	}
	if inv.Status == Invoked {
		m.emit(&Abort{inv.ID, inv.Attempt})
	}
	return m.endEarly(inv, &killed)
}

// halt pauses an invocation that is being killed.
func (m *Machine) halt(inv *Invocation) error {
	switch inv.Status {
	case Paused:
		m.st.PutInvocation(inv)
		return nil
	case Invoked:
		m.emit(&Abort{inv.ID, inv.Attempt})
	case Inboxed:
		if err := m.dequeue(inv); err != nil {
			return err
		}
	}
	m.recordPause(inv, PausedByOperator, "", "being killed")
	return m.pause(inv, nil)
}

// pendingCallee is the callee of a call that has no result yet.
type pendingCallee struct {
	id         ids.Invocation
	completion uint32
}

// killSome reads entries from an index on until the log entry has read enough, and returns
// the pending callees in the order of the calls, and the index of the next entry. If that is
// not the end of the journal, it deletes the timers of the sleeps that it has read.
func (m *Machine) killSome(inv *Invocation, from uint32) (callees []pendingCallee, next uint32, err error) {
	if inv.Commands <= 1 { // the input
		return nil, inv.Length, nil
	}
	var read killedEntries
	for next = from; next < inv.Length && (read.incomplete() || m.mayRead()); next++ {
		e, err := m.st.Entry(inv.ID, next)
		if err == nil {
			m.used.journalReads += entryOverhead + len(e.Payload)
			err = read.add(e)
		}
		if err != nil {
			return nil, 0, fmt.Errorf("read entry %d of %s: %w", next, inv.ID, err)
		}
	}
	if next < inv.Length {
		if err := m.deleteSleeps(inv, read.sleeps...); err != nil {
			return nil, 0, err
		}
	}
	for _, c := range read.calls {
		id := read.callees[c.IDCompletion]
		if id.IsZero() {
			continue
		}
		how, err := m.st.Notified(inv.ID, journal.Completion(c.Completion))
		if err != nil {
			return nil, 0, fmt.Errorf("look up completion %d of %s: %w", c.Completion, inv.ID, err)
		}
		if how == journal.Pending {
			callees = append(callees, pendingCallee{id, c.Completion})
		}
	}
	return callees, next, nil
}

// killedEntries is what a kill needs of the entries of a journal.
type killedEntries struct {
	calls   []calledBy
	callees map[uint32]ids.Invocation // by completion ID
	sleeps  []journal.SleepCommand
	last    journal.Type
}

// calledBy has the completion IDs of a call.
type calledBy struct{ IDCompletion, Completion uint32 }

// incomplete reports whether the ID of the last callee is in the next entry.
func (k *killedEntries) incomplete() bool { return k.last == journal.Call }

func (k *killedEntries) add(e journal.Entry) error {
	k.last = e.Type
	switch e.Type {
	case journal.Call:
		c, err := journal.ParseCall(e.Payload)
		if err != nil {
			return err
		}
		k.calls = append(k.calls, calledBy{c.IDCompletion, c.Completion})
	case journal.CallInvocationIDCompletion:
		n, err := journal.ParseNotification(e.Payload)
		if err != nil {
			return err
		}
		if k.callees == nil {
			k.callees = map[uint32]ids.Invocation{}
		}
		k.callees[n.ID.Index], err = ids.ParseInvocation(n.InvocationID)
		return err
	case journal.Sleep:
		c, err := journal.ParseSleep(e.Payload)
		if err != nil {
			return err
		}
		k.sleeps = append(k.sleeps, c)
	}
	return nil
}

// mayRead reports whether the log entry may read one more journal entry of an ending or suspending invocation.
func (m *Machine) mayRead() bool {
	return m.level < feature.Level4 || m.used.journalReads < m.bounds.journalReads
}
