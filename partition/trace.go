package partition

import (
	"time"

	"platform/internal/target"
	"platform/partition/attempts"
	"platform/partition/machine"
)

// traceStart records that an invocation begins, unless it has run before.
func (p *Partition) traceStart(inv *machine.Invocation) {
	if p.tracer == nil || inv.Length != 1 {
		return
	}
	about := attempts.Traced(inv.ID, &inv.Target, &inv.Source, &inv.Trace)
	about.Linked = inv.Source.Kind == machine.FromService && len(inv.Sinks) == 0
	p.tracer.Started(&about)
}

// traceEnd records the end of an invocation.
func (p *Partition) traceEnd(e *machine.Finish) {
	if p.tracer == nil || e.Target.Type == target.StateUpdate {
		return
	}
	code, failure := uint32(0), ""
	if f := e.Result.Failure; f != nil {
		code, failure = f.Code, f.Message
		if failure == "" {
			failure = "the handler failed without a message"
		}
	}
	about := attempts.Traced(e.ID, &e.Target, &e.Source, &e.Trace)
	p.tracer.Ended(&about, time.UnixMilli(e.DueAt), time.UnixMilli(e.EndedAt), code, failure)
}
