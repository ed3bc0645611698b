package codec

import (
	"fmt"

	"platform/partition/machine"
)

func (w *writer) message(m machine.Message) error {
	switch m := m.(type) {
	case *machine.Invoke:
		w.invoke(fieldMessageInvoke, m)
	case *machine.Complete:
		n := w.open(fieldMessageComplete, MessageSize(m))
		w.sink(fieldCompleteSink, &m.Sink)
		w.result(fieldCompleteResult, &m.Result)
		w.bool(fieldCompleteVoid, m.Void)
		w.close(n)
	case *machine.Signal:
		w.signal(fieldMessageSignal, m)
	case *machine.Kill:
		w.kill(fieldMessageKill, m)
	case *machine.Attach:
		w.attach(fieldMessageAttach, m)
	default:
		return fmt.Errorf("encode message %T: %w", m, ErrUnknownCommand)
	}
	return nil
}

func readMessage(b []byte, into *machine.Message) error {
	r := reader{b: b}
	if !r.next() {
		return fmt.Errorf("%w: message has no kind", ErrMalformed)
	}
	switch r.field {
	case fieldMessageInvoke:
		*into = decodeNew(&r, readInvoke)
	case fieldMessageComplete:
		*into = decodeNew(&r, readComplete)
	case fieldMessageSignal:
		*into = decodeNew(&r, readSignal)
	case fieldMessageKill:
		*into = decodeNew(&r, readKill)
	case fieldMessageAttach:
		*into = decodeNew(&r, readAttach)
	default:
		r.unknown("message")
	}
	if r.err == nil && !r.atEnd() {
		r.err = fmt.Errorf("%w: message has more than one kind", ErrMalformed)
	}
	return r.err
}

func readComplete(b []byte, c *machine.Complete) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldCompleteSink:
			decodeInto(&r, &c.Sink, readSink)
		case fieldCompleteResult:
			decodeInto(&r, &c.Result, readResult)
		case fieldCompleteVoid:
			c.Void = r.bool()
		default:
			r.unknown("complete")
		}
	}
	return r.err
}
