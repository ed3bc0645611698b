package codec

import (
	"google.golang.org/protobuf/encoding/protowire"

	"platform/internal/feature"
	"platform/internal/ids"
	"platform/partition/journal"
	"platform/partition/machine"
)

// signal writes a Signal, which is both a log command and a message; so is kill.
func (w *writer) signal(field protowire.Number, c *machine.Signal) {
	n := w.open(field, signalSize(c))
	w.id(fieldSignalTarget, &c.Target)
	w.uint(fieldSignalIndex, uint64(c.ID.Index))
	w.string(fieldSignalName, c.ID.Name)
	if c.Result != nil {
		w.result(fieldSignalResult, c.Result)
	}
	w.uint(fieldSignalRequest, c.Request)
	w.close(n)
}

func signalSize(c *machine.Signal) int {
	size := 80 + len(c.ID.Name)
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
		case fieldSignalTarget:
			r.id(&c.Target)
		case fieldSignalIndex:
			c.ID.Index = r.u32()
		case fieldSignalName:
			c.ID.Name = r.string()
		case fieldSignalResult:
			c.Result = decodeNew(&r, readResult)
		case fieldSignalRequest:
			c.Request = r.u64()
		default:
			r.unknown("signal")
		}
	}
	return r.err
}

func (w *writer) kill(field protowire.Number, c *machine.Kill) {
	n := w.open(field, sizeHint)
	w.id(fieldKillTarget, &c.Target)
	if c.Sink != nil {
		w.require(feature.Level4, "a kill of the call of another invocation")
		w.sink(fieldKillSink, c.Sink)
	}
	w.close(n)
}

func readKill(b []byte, c *machine.Kill) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldKillTarget:
			r.id(&c.Target)
		case fieldKillSink:
			c.Sink = decodeNew(&r, readSink)
		default:
			r.unknown("kill")
		}
	}
	return r.err
}

func (w *writer) pause(field protowire.Number, c *machine.Pause) {
	n := w.open(field, sizeHint)
	w.id(fieldPauseTarget, &c.Target)
	if c.Failure != nil {
		w.attemptFailure(fieldPauseFailure, c.Failure)
	}
	if c.By != "" {
		w.require(feature.Level3, "a pause with the client that requested it")
		w.string(fieldPauseBy, c.By)
	}
	if c.Reason != "" {
		w.require(feature.Level4, "a pause with a reason")
		w.string(fieldPauseReason, c.Reason)
	}
	if c.Repin != "" {
		w.require(feature.Level4, "a pause before an invocation continues on another deployment")
		w.string(fieldPauseRepin, string(c.Repin))
	}
	w.close(n)
}

func readPause(b []byte, c *machine.Pause) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldPauseTarget:
			r.id(&c.Target)
		case fieldPauseFailure:
			c.Failure = decodeNew(&r, readAttemptFailure)
		case fieldPauseBy:
			c.By = r.string()
		case fieldPauseReason:
			c.Reason = r.string()
		case fieldPauseRepin:
			c.Repin = ids.Deployment(r.string())
		default:
			r.unknown("pause")
		}
	}
	return r.err
}

func (w *writer) attach(field protowire.Number, c *machine.Attach) {
	n := w.open(field, sizeHint)
	w.id(fieldAttachTarget, &c.Target)
	w.sink(fieldAttachSink, &c.Sink)
	if !c.Legacy.IsZero() {
		w.require(feature.Level2, "an attach to a key with a comma")
		w.id(fieldAttachLegacy, &c.Legacy)
		w.target(fieldAttachNamed, &machine.Target{Scope: c.Named.Scope, Service: c.Named.Service, Key: c.Named.Key, Handler: c.Named.Handler})
	}
	w.close(n)
}

func readAttach(b []byte, c *machine.Attach) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldAttachTarget:
			r.id(&c.Target)
		case fieldAttachSink:
			decodeInto(&r, &c.Sink, readSink)
		case fieldAttachLegacy:
			r.id(&c.Legacy)
		case fieldAttachNamed:
			var t machine.Target
			decodeInto(&r, &t, readTarget)
			c.Named = journal.Named{Scope: t.Scope, Service: t.Service, Key: t.Key, Handler: t.Handler}
		default:
			r.unknown("attach")
		}
	}
	return r.err
}

func (w *writer) resume(field protowire.Number, c *machine.Resume) {
	n := w.open(field, sizeHint)
	w.id(fieldResumeTarget, &c.Target)
	w.repin(fieldResumeRepin, c.Repin)
	w.close(n)
}

func readResume(b []byte, c *machine.Resume) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldResumeTarget:
			r.id(&c.Target)
		case fieldResumeRepin:
			c.Repin = decodeNew(&r, readRepin)
		default:
			r.unknown("resume")
		}
	}
	return r.err
}

// repin omits the field if p is nil.
func (w *writer) repin(field protowire.Number, p *machine.Repin) {
	if p == nil {
		return
	}
	n := w.open(field, sizeHint)
	w.string(fieldRepinDeployment, string(p.Deployment))
	w.uint(fieldRepinMin, uint64(p.Min))
	w.uint(fieldRepinMax, uint64(p.Max))
	w.close(n)
}

func readRepin(b []byte, p *machine.Repin) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldRepinDeployment:
			p.Deployment = ids.Deployment(r.string())
		case fieldRepinMin:
			p.Min = r.u8()
		case fieldRepinMax:
			p.Max = r.u8()
		default:
			r.unknown("repin")
		}
	}
	return r.err
}

func (w *writer) purge(field protowire.Number, c *machine.Purge) {
	n := w.open(field, sizeHint)
	w.id(fieldPurgeTarget, &c.Target)
	w.bool(fieldPurgeJournal, c.Journal)
	w.close(n)
}

func readPurge(b []byte, c *machine.Purge) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldPurgeTarget:
			r.id(&c.Target)
		case fieldPurgeJournal:
			c.Journal = r.bool()
		default:
			r.unknown("purge")
		}
	}
	return r.err
}

func (w *writer) restart(field protowire.Number, c *machine.Restart) {
	n := w.open(field, 2*sizeHint)
	w.id(fieldRestartTarget, &c.Target)
	w.id(fieldRestartNew, &c.New)
	w.uint(fieldRestartFrom, uint64(c.From))
	w.bool(fieldRestartKeep, c.Keep)
	w.repin(fieldRestartRepin, c.Repin)
	w.string(fieldRestartServerVersion, c.ServerVersion)
	w.close(n)
}

func readRestart(b []byte, c *machine.Restart) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldRestartTarget:
			r.id(&c.Target)
		case fieldRestartNew:
			r.id(&c.New)
		case fieldRestartFrom:
			c.From = r.u32()
		case fieldRestartKeep:
			c.Keep = r.bool()
		case fieldRestartRepin:
			c.Repin = decodeNew(&r, readRepin)
		case fieldRestartServerVersion:
			c.ServerVersion = r.string()
		default:
			r.unknown("restart")
		}
	}
	return r.err
}
