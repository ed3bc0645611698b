package codec

import (
	"fmt"

	"platform/partition/machine"
)

// Field numbers of Message.
const (
	messageInvoke   = 1
	messageComplete = 2
	messageSignal   = 3
	messageKill     = 4
	messageAttach   = 5
)

func (w *writer) message(m machine.Message) error {
	switch m := m.(type) {
	case *machine.Invoke:
		w.invoke(messageInvoke, m)
	case *machine.Complete:
		n := w.open(messageComplete, MessageSize(m))
		w.sink(1, &m.Sink)
		w.result(2, &m.Result)
		w.bool(3, m.Void)
		w.close(n)
	case *machine.Signal:
		w.signal(messageSignal, m)
	case *machine.Kill:
		w.only(messageKill, &m.Target)
	case *machine.Attach:
		w.attach(messageAttach, m)
	default:
		return fmt.Errorf("encode message %T: %w", m, ErrUnknownCommand)
	}
	return nil
}

func readMessage(b []byte, into *machine.Message) error {
	r := reader{b: b}
	if !r.next() {
		return fmt.Errorf("%w: message without a kind", ErrMalformed)
	}
	switch r.field {
	case messageInvoke:
		*into = one(&r, readInvoke)
	case messageComplete:
		*into = one(&r, readComplete)
	case messageSignal:
		*into = one(&r, readSignal)
	case messageKill:
		*into = one(&r, readKill)
	case messageAttach:
		*into = one(&r, readAttach)
	default:
		r.unknown("message")
	}
	if r.err == nil && !r.ended() {
		r.err = fmt.Errorf("%w: message of two kinds", ErrMalformed)
	}
	return r.err
}

func readComplete(b []byte, c *machine.Complete) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case 1:
			into(&r, &c.Sink, readSink)
		case 2:
			into(&r, &c.Result, readResult)
		case 3:
			c.Void = r.bool()
		default:
			r.unknown("complete")
		}
	}
	return r.err
}
