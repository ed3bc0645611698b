package invoker

import (
	"platform/invoker/protocol"
	"platform/partition/journal"
	"platform/partition/machine"
)

// handlerStatus is what the server knows of the progress of a handler, from the journal and from
// what it has sent since.
type handlerStatus struct {
	completions   completions
	awaiting      *journal.Await // as reported (protocol 7); nil: not reported, or partly arrived
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

// notified clears the reported await once a part of it has arrived.
func (h *handlerStatus) notified(n *machine.Notify) {
	if h.awaiting == nil {
		return
	}
	if content, err := journal.ParseNotification(n.Entry.Payload); err == nil && h.awaiting.On.Has(content.ID) {
		h.awaiting = nil
	}
}

// idle reports whether the handler seems to wait for an external event: it executes no run,
// and has reported an await or, if it does not report awaits, has sent a command.
func (h *handlerStatus) idle() bool {
	return h.runs <= 0 && (h.awaiting != nil || !h.reportsAwaits && h.commands > 1)
}
