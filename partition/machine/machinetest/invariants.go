package machinetest

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"platform/flowcontrol"
	"platform/internal/ids"
	"platform/internal/target"
	"platform/partition/journal"
	"platform/partition/machine"
)

// Broken lists the violated invariants of a partition's tables. It must be empty after
// every command.
func (s *State) Broken(n Names) []string {
	c := checker{State: s, n: n, queuedForSlot: map[ids.Invocation]bool{}}
	c.slotQueues()
	for _, id := range sortedIDs(s.invocations) {
		c.record(s.invocations[id].given)
	}
	c.journals()
	c.histories()
	c.promises()
	c.locks()
	c.timers()
	c.outbox()
	return c.found
}

type checker struct {
	*State
	n     Names
	found []string
	// queuedForSlot are the invocations that are queued for a slot.
	queuedForSlot map[ids.Invocation]bool
}

var stages = [...]flowcontrol.Stage{
	machine.Scheduled: flowcontrol.Scheduled, machine.Inboxed: flowcontrol.Inbox, machine.Invoked: flowcontrol.Running,
	machine.Suspended: flowcontrol.Suspended, machine.Paused: flowcontrol.Paused, machine.Completed: flowcontrol.Finished,
}

// slotQueues checks the tables of flow control, and that they agree with the records.
func (c *checker) slotQueues() {
	c.found = append(c.found, c.Tables.Broken(c.meta.Clock, c.dueScopes())...)
	for p, e := range c.Entries() {
		inv := c.invocations[e.ID].given
		ok := inv != nil && inv.Status == machine.Inboxed && inv.Flow != nil && inv.VQueue() == p.Queue && inv.Priority == p.Priority && inv.QueueSeq == p.Seq
		c.want(ok && !c.queuedForSlot[e.ID], "%v: %s is not queued there", p, c.n.Of(e.ID))
		c.queuedForSlot[e.ID] = true
	}
	type count map[flowcontrol.QueueKey]map[flowcontrol.Stage]uint64
	counted := count{}
	for _, id := range sortedIDs(c.invocations) {
		if inv := c.invocations[id].given; inv.Flow != nil {
			if counted[inv.VQueue()] == nil {
				counted[inv.VQueue()] = map[flowcontrol.Stage]uint64{}
			}
			counted[inv.VQueue()][inv.Flow.Stage]++
		}
	}
	for k, q := range c.VQueues() {
		for stage, n := range q.Stages {
			c.want(n == counted[k][flowcontrol.Stage(stage)], "vqueue %v: %d invocations are %s, counter is %d", k, counted[k][flowcontrol.Stage(stage)], flowcontrol.Stage(stage), n)
		}
		delete(counted, k)
	}
	c.want(len(counted) == 0, "counted vqueues without a row: %v", counted)
}

// dueScopes are the scopes in which a due timer continues admissions: one command admits
// only a bounded number, and re-evaluates a bounded number of counters.
func (c *checker) dueScopes() map[string]bool {
	due := map[string]bool{}
	if c.meta.Reevaluation != machine.NotReevaluating {
		c.want(c.reevaluationPending(), "no timer continues the re-evaluation of the counters")
		for _, counter := range c.AllCounters() {
			due[counter.Key.Scope] = true
		}
	}
	for t := range c.State.timers {
		if t.Kind == machine.TimerQueue && t.At <= c.meta.Clock && !strings.Contains(t.Name, "/") {
			due[t.Name] = true
		}
	}
	return due
}

// reevaluationPending reports whether a due timer continues the re-evaluation of the counters.
func (c *checker) reevaluationPending() bool {
	for t := range c.State.timers {
		if t.Kind == machine.TimerRules && t.At <= c.meta.Clock {
			return true
		}
	}
	return false
}

// timerPending reports whether a due timer will deliver answers.
func (c *checker) timerPending(kind machine.TimerKind, id ids.Invocation, name string) bool {
	for t := range c.State.timers {
		if t.Kind == kind && t.ID == id && t.Name == name && t.At <= c.meta.Clock {
			return true
		}
	}
	return false
}

// delayed reports whether a state update holds its key and waits for a due timer.
func (c *checker) delayed(inv *machine.Invocation) bool {
	return inv.Target.Type == target.StateUpdate && inv.Status == machine.Inboxed && c.timerPending(machine.TimerUpdate, inv.ID, "")
}

func (c *checker) want(ok bool, format string, args ...any) {
	if !ok {
		c.found = append(c.found, fmt.Sprintf(format, args...))
	}
}

func (c *checker) record(inv *machine.Invocation) {
	name := c.n.Of(inv.ID)
	want := func(ok bool, what string) { c.want(ok, "%s (%s): %s", name, inv.Status, what) }

	done := inv.Status == machine.Completed
	exclusive := inv.Target.Type.Exclusive()
	admitted := !done && !inv.Waiting()
	queued := inv.Flow != nil && inv.Status == machine.Inboxed && c.queuedForSlot[inv.ID]
	want(inv.HoldsLock == (exclusive && (admitted || queued || c.delayed(inv))), "an exclusive handler holds its key exactly while admitted, queued for a slot or delayed")
	want(!inv.Pausing || inv.Status == machine.Invoked, "only an invoked invocation has a requested pause")
	want(!inv.HoldsLock || c.State.locks[inv.Target.Object()].Holder == inv.ID, "the lock names its holder")
	want(inv.Waiting() == (inv.RunningAt == 0 && !done), "an invocation that waits to start has not run")
	want(inv.Status != machine.Inboxed || inv.InboxedAt != 0, "an inboxed invocation has an inbox time")
	want(inv.Status != machine.Inboxed || inv.RunningAt == 0 || inv.Flow != nil, "an invocation that waits to continue waits for a slot")
	scoped := inv.Target.Type != target.StateUpdate && flowcontrol.CheckScope(inv.Target.Scope) == nil
	want(scoped == (inv.Flow != nil), "flow control data exists exactly with a scope")
	want(inv.Flow == nil || inv.Flow.Stage == stages[inv.Status], "its stage matches its status")
	want((inv.Await != nil) == (inv.Status == machine.Suspended), "an await exists exactly while suspended")
	if inv.Await != nil {
		for leaf := range inv.Await.Leaves() {
			want(inv.Signalled && !inv.AwaitReduced || leaf.Repeats() || c.notified[inv.ID][leaf] == journal.Pending, "it awaits "+notificationID(leaf)+", which has arrived")
		}
	}
	want((inv.Attempt != 0) == (inv.RunningAt != 0), "an attempt number is assigned at admission")
	want(inv.Attempt <= c.meta.Attempt, "no attempt number exceeds the last assigned one")

	want(inv.Seen <= inv.Length, "seen entries exist")
	want(inv.Target.Type != target.StateUpdate || inv.Status != machine.Invoked, "a state update completes within its command")

	want(done == (inv.Result != nil) && done == (inv.ExpiresAt != 0) && done == (inv.CompletedAt != 0), "a result exists exactly when completed")
	want(!done || len(inv.Sinks) == 0 || c.timerPending(machine.TimerAnswer, inv.ID, ""), "the waiters of a completed invocation have a due timer")
	want(done == c.State.timers[machine.Timer{At: inv.ExpiresAt, Kind: machine.TimerPurge, ID: inv.ID}], "a purge timer exists exactly when completed")
	want((inv.Status == machine.Scheduled) == c.State.timers[machine.Timer{At: inv.StartAt, Kind: machine.TimerStart, ID: inv.ID}], "a start timer exists exactly while scheduled")

	entries := c.entries[inv.ID]
	want(int(inv.Length) == len(entries), "length is the number of entries")
	want(done || inv.Length > 0, "the journal starts with the input")
	commands, sleeps, signals := uint32(0), uint32(0), uint64(0)
	for i, e := range entries {
		if e.Type == journal.Signal {
			signals += uint64(max(len(e.Payload), machine.MinSignalBytes))
		}
		if e.Type.IsCommand() {
			commands++
		}
		want((e.Type == journal.Input) == (i == 0), "the input is entry 0 only")
	}
	want(!inv.ResultInJournal || inv.Output > 0 && isOutput(entries, inv), "a result in the journal is that of the last output")
	want(inv.Commands == commands, "the count of commands matches the journal")
	want(inv.SignalBytes <= signals, "the size of the signals is at most that in the journal")
	for t := range c.State.timers {
		if t.Kind == machine.TimerSleep && t.ID == inv.ID {
			sleeps++
		}
	}
	want(inv.Sleeps == sleeps, "the count of pending sleeps matches the timers")
}

// isOutput reports whether the result of an invocation is that of its last Output.
func isOutput(entries []journal.Entry, inv *machine.Invocation) bool {
	if int(inv.Output) >= len(entries) || entries[inv.Output].Type != journal.Output || inv.Result == nil {
		return false
	}
	result, err := journal.ParseOutput(entries[inv.Output].Payload)
	return err == nil && result.Failure == nil && bytes.Equal(result.Value, inv.Result.Value)
}

// histories checks that a history has the events that the record counts, and its bounds.
func (c *checker) histories() {
	for _, id := range sortedIDs(c.State.events) {
		inv := c.invocations[id].given
		c.want(inv != nil && inv.Length > 0, "history of %s without a journal", c.n.Of(id))
	}
	for _, id := range sortedIDs(c.invocations) {
		name, h, bytes := c.n.Of(id), c.invocations[id].given.History, uint32(0)
		c.want(int(h.Next-h.First) == len(c.State.events[id]), "%s: history counts %d events, there are %d", name, h.Next-h.First, len(c.State.events[id]))
		for number, e := range c.State.events[id] {
			c.want(h.First <= number && number < h.Next, "%s: event %d is outside of its history", name, number)
			bytes += e.Size()
		}
		causes, known := c.invocations[id].given.Causes, map[uint64]bool{}
		for _, cause := range causes {
			c.want(cause.ID != 0 && !known[cause.ID], "%s: cause %d is unknown or occurs twice", name, cause.ID)
			known[cause.ID] = true
		}
		c.want(len(causes) <= machine.MaxCauses, "%s has %d causes", name, len(causes))
		c.want(bytes == h.Bytes, "%s: history counts %d bytes, there are %d", name, h.Bytes, bytes)
		c.want(bytes <= machine.MaxEventBytes && h.Next-h.First <= machine.MaxEvents, "%s: history exceeds its bounds", name)
	}
}

func (c *checker) journals() {
	for _, id := range sortedIDs(c.entries) {
		c.want(c.invocations[id].given != nil, "journal of unknown %s", c.n.Of(id))
		seen := map[journal.NotificationID]journal.Settled{}
		for _, e := range c.entries[id] {
			if !e.Type.IsNotification() {
				continue
			}
			content, err := journal.ParseNotification(e.Payload)
			c.want(err == nil, "notification of %s: %v", c.n.Of(id), err)
			c.want((e.Type == journal.Signal) == content.ID.Signal, "%s: %s is of type %s", c.n.Of(id), notificationID(content.ID), e.Type)
			before, settled := seen[content.ID], content.Settled()
			c.want(before == journal.Pending || content.ID.Repeats(), "%s: %s occurs twice", c.n.Of(id), notificationID(content.ID))
			if before != journal.Pending && before != settled {
				settled = journal.Either
			}
			seen[content.ID] = settled
			c.want(!content.ID.Repeats() || c.invocations[id].given.Signalled, "%s has repeatable signals but is not marked as signalled", c.n.Of(id))
		}
		c.want(maps.Equal(seen, c.notified[id]), "%s: notifications in the index and in the journal differ", c.n.Of(id))
		c.completionsOrdered(id)
	}
	for _, id := range sortedIDs(c.notified) {
		c.want(len(c.entries[id]) > 0, "notifications of %s without a journal", c.n.Of(id))
	}
}

// completionsOrdered checks that completions follow the commands that requested them.
func (c *checker) completionsOrdered(id ids.Invocation) {
	requested := map[uint32]bool{}
	for i, e := range c.entries[id] {
		for _, completion := range journal.CompletionsOf(e) {
			c.want(!requested[completion], "%s: two commands have the completion ID %d", c.n.Of(id), completion)
			requested[completion] = true
		}
		if !e.Type.IsNotification() || e.Type == journal.Signal {
			continue
		}
		if content, err := journal.ParseNotification(e.Payload); err == nil {
			c.want(requested[content.ID.Index], "%s[%d]: no command requested %s", c.n.Of(id), i, notificationID(content.ID))
		}
	}
}

// promises checks that each waiter of a promise has issued the command, has no result yet,
// and occurs once. It may have ended meanwhile.
func (c *checker) promises() {
	for o, all := range c.State.promises {
		for key, p := range all {
			name := object(o) + " " + key
			c.want(p.Result != nil || len(p.Waiting) > 0, "promise %s is neither completed nor has waiters", name)
			if p.Result != nil && len(p.Waiting) > 0 {
				timer := fmt.Sprintf("%d:%s%d:%s%d:%s%d:%s", len(o.Scope), o.Scope, len(o.Service), o.Service, len(o.Key), o.Key, len(key), key)
				c.want(c.timerPending(machine.TimerPromise, ids.Invocation{}, timer), "promise %s: the waiters of a completed promise have a due timer", name)
			}
			seen := map[machine.Sink]bool{}
			for _, sink := range p.Waiting {
				c.want(!seen[sink], "promise %s: %s waits twice", name, c.n.sink(sink))
				seen[sink] = true
				inv := c.invocations[sink.Caller].given
				if inv == nil || inv.Life != sink.Life || inv.Status == machine.Completed {
					continue
				}
				c.want(inv.Target.Object() == o, "promise %s: %s is of another workflow", name, c.n.sink(sink))
				c.want(c.notified[sink.Caller][journal.Completion(sink.Completion)] == journal.Pending, "promise %s: %s already has its result", name, c.n.sink(sink))
			}
		}
	}
}

func (c *checker) locks() {
	for _, o := range slices.SortedFunc(maps.Keys(c.State.locks), compareObjects) {
		l := c.State.locks[o]
		holder := c.invocations[l.Holder].given
		c.want(holder != nil && holder.HoldsLock && holder.Target.Object() == o, "lock of %s: %s does not hold it", object(o), c.n.Of(l.Holder))
		c.want(l.Head <= l.Tail, "lock of %s: queue from %d to %d", object(o), l.Head, l.Tail)
	}
	queued := map[ids.Invocation]bool{}
	for p, id := range c.waiting {
		l := c.State.locks[p.Object]
		inv := c.invocations[id].given
		c.want(l.Head <= p.Seq && p.Seq < l.Tail, "queue of %s: sequence number %d is outside %d to %d", object(p.Object), p.Seq, l.Head, l.Tail)
		c.want(inv != nil && inv.Status == machine.Inboxed && inv.QueueSeq == p.Seq, "queue of %s: %s does not wait at %d", object(p.Object), c.n.Of(id), p.Seq)
		queued[id] = true
	}
	for _, id := range sortedIDs(c.invocations) {
		inv := c.invocations[id].given
		c.want((inv.Status == machine.Inboxed) == (queued[id] || c.queuedForSlot[id] || c.delayed(inv)), "%s is inboxed but in no queue, or queued but not inboxed", c.n.Of(id))
		c.want(!queued[id] || !c.queuedForSlot[id], "%s is in two queues", c.n.Of(id))
	}
}

func (c *checker) timers() {
	for _, counter := range c.AllCounters() {
		due := machine.Timer{At: counter.WakeAt, Kind: machine.TimerQueue, Name: counter.Key.String()}
		c.want(counter.WakeAt == 0 || c.State.timers[due], "counter %s has no timer at %d", counter.Key, counter.WakeAt)
	}
	for _, t := range c.Timers() {
		if t.Kind == machine.TimerQueue {
			c.want(t.ID.IsZero() && t.Name != "", "timer without a counter: %s", c.n.timer(t))
			continue
		}
		if t.Kind == machine.TimerKill || t.Kind == machine.TimerDropSleeps { // may have ended or been purged meanwhile
			continue
		}
		if t.Kind == machine.TimerRules {
			c.want(t.ID.IsZero() && c.meta.Reevaluation != machine.NotReevaluating, "timer of a re-evaluation that has ended: %s", c.n.timer(t))
			continue
		}
		if t.Kind == machine.TimerPromise {
			c.want(t.ID.IsZero() && t.Name != "", "timer without a promise: %s", c.n.timer(t))
			continue
		}
		inv := c.invocations[t.ID].given
		if inv == nil {
			c.want(false, "timer for unknown invocation: %s", c.n.timer(t))
			continue
		}
		done := inv.Status == machine.Completed
		if t.Kind == machine.TimerSleep && done { // another timer is about to delete it
			c.want(c.timerPending(machine.TimerDropSleeps, inv.ID, ""), "%s while %s", c.n.timer(t), inv.Status)
			continue
		}
		c.want(done == (t.Kind == machine.TimerPurge || t.Kind == machine.TimerPurgeJournal || t.Kind == machine.TimerAnswer || t.Kind == machine.TimerDropSleeps), "%s while %s", c.n.timer(t), inv.Status)
	}
}

func (c *checker) outbox() {
	for to, all := range c.outgoing {
		for seq := range all {
			c.want(seq <= c.sent[to] && (seq == c.sent[to] || all[seq+1] != nil || c.skipped[skip{to, seq}]), "message %d to partition %d is followed by a gap", seq, to)
		}
	}
}
