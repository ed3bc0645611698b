package codec

import (
	"platform/internal/feature"
	"platform/internal/ids"
	"platform/partition/journal"
	"platform/partition/machine"
)

// signal is both a command and a message, like kill.
func (w *writer) signal(field uint64, c *machine.Signal) {
	n := w.open(field, signalSize(c))
	w.id(1, &c.Target)
	w.uint(2, uint64(c.ID.Index))
	w.string(3, c.ID.Name)
	if c.Result != nil {
		w.result(4, c.Result)
	}
	w.uint(5, c.Request)
	w.close(n)
}

func signalSize(c *machine.Signal) int {
	size := 48 + len(c.ID.Name)
	if c.Result != nil {
		size += resultSize(c.Result)
	}
	return size
}

func readSignal(b []byte, c *machine.Signal) error {
	c.ID.Signal = true
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case 1:
			r.id(&c.Target)
		case 2:
			c.ID.Index = r.u32()
		case 3:
			c.ID.Name = r.string()
		case 4:
			c.Result = one(&r, readResult)
		case 5:
			c.Request = r.u64()
		default:
			r.unknown("signal")
		}
	}
	return r.err
}

// only writes a message that names an invocation and nothing else.
func (w *writer) only(field uint64, id *ids.Invocation) {
	n := w.open(field, partSize)
	w.id(1, id)
	w.close(n)
}

func readKill(b []byte, c *machine.Kill) error { return readOnly(b, &c.Target, "kill") }

func (w *writer) pause(field uint64, c *machine.Pause) {
	n := w.open(field, partSize)
	w.id(1, &c.Target)
	if c.Failure != nil {
		w.attemptFailure(2, c.Failure)
	}
	w.close(n)
}

func readPause(b []byte, c *machine.Pause) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case 1:
			r.id(&c.Target)
		case 2:
			c.Failure = one(&r, readAttemptFailure)
		default:
			r.unknown("pause")
		}
	}
	return r.err
}

func readOnly(b []byte, id *ids.Invocation, what string) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case 1:
			r.id(id)
		default:
			r.unknown(what)
		}
	}
	return r.err
}

func (w *writer) attach(field uint64, c *machine.Attach) {
	n := w.open(field, partSize)
	w.id(1, &c.Target)
	w.sink(2, &c.Sink)
	if !c.Legacy.IsZero() {
		w.require(feature.Level2, "an attach to a key with a comma")
		w.id(3, &c.Legacy)
		w.target(4, &machine.Target{Scope: c.Named.Scope, Service: c.Named.Service, Key: c.Named.Key, Handler: c.Named.Handler})
	}
	w.close(n)
}

func readAttach(b []byte, c *machine.Attach) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case 1:
			r.id(&c.Target)
		case 2:
			into(&r, &c.Sink, readSink)
		case 3:
			r.id(&c.Legacy)
		case 4:
			var t machine.Target
			into(&r, &t, readTarget)
			c.Named = journal.Named{Scope: t.Scope, Service: t.Service, Key: t.Key, Handler: t.Handler}
		default:
			r.unknown("attach")
		}
	}
	return r.err
}

func (w *writer) resume(field uint64, c *machine.Resume) {
	n := w.open(field, partSize)
	w.id(1, &c.Target)
	w.repin(2, c.Repin)
	w.close(n)
}

func readResume(b []byte, c *machine.Resume) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case 1:
			r.id(&c.Target)
		case 2:
			c.Repin = one(&r, readRepin)
		default:
			r.unknown("resume")
		}
	}
	return r.err
}

// repin leaves the field out for nil.
func (w *writer) repin(field uint64, p *machine.Repin) {
	if p == nil {
		return
	}
	n := w.open(field, partSize)
	w.string(1, string(p.Deployment))
	w.uint(2, uint64(p.Min))
	w.uint(3, uint64(p.Max))
	w.close(n)
}

func readRepin(b []byte, p *machine.Repin) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case 1:
			p.Deployment = ids.Deployment(r.string())
		case 2:
			p.Min = r.u8()
		case 3:
			p.Max = r.u8()
		default:
			r.unknown("repin")
		}
	}
	return r.err
}

func (w *writer) purge(field uint64, c *machine.Purge) {
	n := w.open(field, partSize)
	w.id(1, &c.Target)
	w.bool(2, c.Journal)
	w.close(n)
}

func readPurge(b []byte, c *machine.Purge) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case 1:
			r.id(&c.Target)
		case 2:
			c.Journal = r.bool()
		default:
			r.unknown("purge")
		}
	}
	return r.err
}

func (w *writer) restart(field uint64, c *machine.Restart) {
	n := w.open(field, 2*partSize)
	w.id(1, &c.Target)
	w.id(2, &c.New)
	w.uint(3, uint64(c.From))
	w.bool(4, c.Keep)
	w.repin(5, c.Repin)
	w.string(6, c.ServerVersion)
	w.close(n)
}

func readRestart(b []byte, c *machine.Restart) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case 1:
			r.id(&c.Target)
		case 2:
			r.id(&c.New)
		case 3:
			c.From = r.u32()
		case 4:
			c.Keep = r.bool()
		case 5:
			c.Repin = one(&r, readRepin)
		case 6:
			c.ServerVersion = r.string()
		default:
			r.unknown("restart")
		}
	}
	return r.err
}
