package invoker

import (
	"platform/internal/ids"
	"platform/invoker/protocol"
	"platform/partition/journal"
	"platform/partition/machine"
)

// handlerStatus is what the server knows of the progress of a handler, from the journal and from
// what it has sent since.
type handlerStatus struct {
	completions   completions
	awaiting      *journal.Await // as reported (protocol 7); nil: not reported, or partly arrived
	outdated      bool           // a part of awaiting had been sent to the handler before the report arrived
	delivered     delivered      // notifications of this attempt (protocol 7)
	runs          int            // runs that have started and have no result
	commands      uint32         // in the journal or in transit to it
	output        bool           // it has sent its output
	reportsAwaits bool           // it has reported an await (protocol 7)
}

// replayed records an entry of the journal.
func (h *handlerStatus) replayed(e *journal.Entry) {
	switch {
	case e.Type == journal.RunCompletion:
		h.runs--
	case e.Type.IsCommand():
		h.sent(e.Type)
		h.use(e)
	}
}

// sent records a command.
func (h *handlerStatus) sent(t journal.Type) {
	h.commands++
	switch t {
	case journal.Run:
		h.runs++
	case journal.Output:
		h.output = true
	}
}

// use records the completion IDs of a command in the journal.
func (h *handlerStatus) use(e *journal.Entry) {
	if e.Type == journal.Input {
		return
	}
	c, err := protocol.ParseCommand(e.Type, e.Payload)
	if err != nil {
		return // stored by a server that could parse it
	}
	for _, id := range c.Completions {
		h.completions.add(id)
	}
}

// delivered is the set of results that an attempt has sent to a handler: completions and awakeables, each of
// which arrives once.
type delivered struct{ completions, awakeables completions }

func (d *delivered) add(id journal.NotificationID) {
	switch {
	case id.Name != "":
	case !id.Signal:
		d.completions.add(id.Index)
	case id.Index >= ids.FirstAwakeable:
		d.awakeables.add(id.Index)
	}
}

func (d *delivered) has(id journal.NotificationID) bool {
	if id.Signal {
		return id.Name == "" && d.awakeables.has(id.Index)
	}
	return d.completions.has(id.Index)
}

// notified records a notification that is sent to the handler. It clears the reported await if that is a part of it.
func (h *handlerStatus) notified(n *machine.Notify) {
	content, err := journal.ParseNotification(n.Entry.Payload)
	if err != nil {
		return
	}
	h.delivered.add(content.ID)
	if h.awaiting != nil && h.awaiting.On.Has(content.ID) {
		h.awaiting = nil
	}
}

// awaits records a reported await. A report of a result that has been sent is outdated: the
// notification and the report were sent at the same time, or the SDK sends reports with its next message only, as the
// Python SDK 1.3 does. What the handler waits for now is not known.
func (h *handlerStatus) awaits(await *journal.Await) {
	h.awaiting, h.reportsAwaits, h.outdated = await, true, false
	for id := range await.On.Leaves() {
		if h.delivered.has(id) {
			h.outdated = true
			return
		}
	}
}

// reported returns what the handler has reported to wait for; nil if that is not known.
func (h *handlerStatus) reported() *journal.Await {
	if h.outdated {
		return nil
	}
	return h.awaiting
}

// idle reports whether the handler seems to wait for an external event: it executes no run,
// and has reported an await or, if it does not report awaits, has sent a command.
func (h *handlerStatus) idle() bool {
	return h.runs <= 0 && (h.awaiting != nil || !h.reportsAwaits && h.commands > 1)
}
