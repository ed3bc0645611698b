package machinetest

import (
	"fmt"
	"maps"
	"slices"

	"platform/internal/ids"
	"platform/partition/journal"
	"platform/partition/machine"
)

// Broken lists the invariants of a partition's tables that do not hold. It must be
// empty after every command.
func (s *State) Broken(n Names) []string {
	c := checker{State: s, n: n}
	for _, id := range sortedIDs(s.invocations) {
		c.record(s.invocations[id].given)
	}
	c.journals()
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
}

func (c *checker) want(ok bool, format string, args ...any) {
	if !ok {
		c.found = append(c.found, fmt.Sprintf(format, args...))
	}
}

func (c *checker) record(inv *machine.Invocation) {
	name := c.n.Of(inv.ID)
	want := func(ok bool, what string) { c.want(ok, "%s (%s): %s", name, inv.Status, what) }

	exclusive := inv.Target.Type.Exclusive()
	admitted := inv.Status == machine.Invoked || inv.Status == machine.Suspended || inv.Status == machine.Paused
	want(inv.HoldsLock == (exclusive && admitted), "an exclusive handler holds its key exactly while admitted")
	want(!inv.HoldsLock || c.State.locks[inv.Target.Object()].Holder == inv.ID, "the lock names its holder")
	want((inv.Status == machine.Inboxed) == (inv.InboxedAt != 0 && inv.RunningAt == 0 && inv.Status != machine.Completed), "inboxed is before running")
	want((inv.Await != nil) == (inv.Status == machine.Suspended), "an await belongs to a suspended one")
	if inv.Await != nil {
		for leaf := range inv.Await.Leaves() {
			want(inv.Signalled || leaf.Repeats() || c.notified[inv.ID][leaf] == journal.Pending, "it waits for "+notificationID(leaf)+" that is there")
		}
	}
	want((inv.Attempt != 0) == (inv.RunningAt != 0), "an attempt number comes with admission")
	want(inv.Attempt <= c.meta.Attempt, "no attempt number above the last")

	want(inv.Seen <= inv.Length, "nothing seen that is not there")
	want(inv.Target.Type != machine.StateUpdate || inv.Status != machine.Invoked, "an update of state is done at once")

	done := inv.Status == machine.Completed
	want(done == (inv.Result != nil) && done == (inv.ExpiresAt != 0) && done == (inv.CompletedAt != 0), "a result exactly when completed")
	want(!done || len(inv.Sinks) == 0, "nobody waits for a completed one")
	want(done == c.State.timers[machine.Timer{At: inv.ExpiresAt, Kind: machine.TimerPurge, ID: inv.ID}], "a purge timer exactly when completed")
	want((inv.Status == machine.Scheduled) == c.State.timers[machine.Timer{At: inv.StartAt, Kind: machine.TimerStart, ID: inv.ID}], "a start timer exactly while scheduled")

	entries := c.entries[inv.ID]
	want(int(inv.Length) == len(entries), "length is the number of entries")
	want(done || inv.Length > 0, "the journal begins with the input")
	commands, sleeps := uint32(0), uint32(0)
	for i, e := range entries {
		if e.Type.IsCommand() {
			commands++
		}
		want((e.Type == journal.Input) == (i == 0), "the input is entry 0 only")
	}
	want(inv.Commands == commands, "the number of commands is right")
	for t := range c.State.timers {
		if t.Kind == machine.TimerSleep && t.ID == inv.ID {
			sleeps++
		}
	}
	want(inv.Sleeps == sleeps, "the number of pending sleeps is right")
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
			c.want(before == journal.Pending || content.ID.Repeats(), "%s: %s came twice", c.n.Of(id), notificationID(content.ID))
			if before != journal.Pending && before != settled {
				settled = journal.Either
			}
			seen[content.ID] = settled
			c.want(!content.ID.Repeats() || c.invocations[id].given.Signalled, "%s has signals without saying so", c.n.Of(id))
		}
		c.want(maps.Equal(seen, c.notified[id]), "%s: notifications in the index and in the journal differ", c.n.Of(id))
		c.answered(id)
	}
	for _, id := range sortedIDs(c.notified) {
		c.want(len(c.entries[id]) > 0, "notifications of %s without a journal", c.n.Of(id))
	}
}

// answered checks that completions answer commands that came before them.
func (c *checker) answered(id ids.Invocation) {
	asked := map[uint32]bool{}
	for i, e := range c.entries[id] {
		for _, completion := range journal.CompletionsOf(e) {
			c.want(!asked[completion], "%s: two commands have the completion id %d", c.n.Of(id), completion)
			asked[completion] = true
		}
		if !e.Type.IsNotification() || e.Type == journal.Signal {
			continue
		}
		if content, err := journal.ParseNotification(e.Payload); err == nil {
			c.want(asked[content.ID.Index], "%s[%d]: nobody asked for %s", c.n.Of(id), i, notificationID(content.ID))
		}
	}
}

// promises checks that who waits for a promise has asked for it, has no answer yet,
// and comes once. It may have ended meanwhile.
func (c *checker) promises() {
	for o, all := range c.State.promises {
		for key, p := range all {
			name := object(o) + " " + key
			c.want((p.Result != nil) != (len(p.Waiting) > 0), "promise %s is completed and waited for, or neither", name)
			seen := map[machine.Sink]bool{}
			for _, sink := range p.Waiting {
				c.want(!seen[sink], "promise %s: %s waits twice", name, c.n.sink(sink))
				seen[sink] = true
				inv := c.invocations[sink.Caller].given
				if inv == nil || inv.Life != sink.Life || inv.Status == machine.Completed {
					continue
				}
				c.want(inv.Target.Object() == o, "promise %s: %s is of another workflow", name, c.n.sink(sink))
				c.want(c.notified[sink.Caller][journal.Completion(sink.Completion)] == journal.Pending, "promise %s: %s has its answer", name, c.n.sink(sink))
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
		c.want(l.Head <= p.Seq && p.Seq < l.Tail, "queue of %s: place %d outside %d to %d", object(p.Object), p.Seq, l.Head, l.Tail)
		c.want(inv != nil && inv.Status == machine.Inboxed && inv.QueueSeq == p.Seq, "queue of %s: %s does not wait at %d", object(p.Object), c.n.Of(id), p.Seq)
		queued[id] = true
	}
	for _, id := range sortedIDs(c.invocations) {
		c.want((c.invocations[id].given.Status == machine.Inboxed) == queued[id], "%s is inboxed but in no queue, or the other way round", c.n.Of(id))
	}
}

func (c *checker) timers() {
	for _, t := range c.Timers() {
		inv := c.invocations[t.ID].given
		if inv == nil {
			c.want(false, "timer for unknown invocation: %s", c.n.Timer(t))
			continue
		}
		done := inv.Status == machine.Completed
		c.want(done == (t.Kind == machine.TimerPurge || t.Kind == machine.TimerPurgeJournal), "%s while %s", c.n.Timer(t), inv.Status)
	}
}

func (c *checker) outbox() {
	for to, all := range c.outgoing {
		for seq := range all {
			c.want(seq <= c.sent[to] && (seq == c.sent[to] || all[seq+1] != nil), "message %d to partition %d: a gap follows", seq, to)
		}
	}
}
