package partition

import (
	"time"

	"platform/internal/stats"
	"platform/internal/target"
	"platform/internal/tracing"
	"platform/partition/attempts"
	"platform/partition/machine"
)

// observer counts invocations and records them as spans while the replica leads. Both are
// optional.
type observer struct {
	stats  *stats.Counters
	tracer *tracing.Tracer
}

// started observes that an attempt of an invocation is to be started.
func (o *observer) started(inv *machine.Invocation) {
	if inv.Length == 1 {
		o.stats.Started(inv.Target.Service)
	}
	o.traceStart(inv)
}

// ended observes the end of an invocation.
func (o *observer) ended(e *machine.Finish) {
	if e.Target.Type == target.StateUpdate {
		return
	}
	took := max(e.EndedAt-e.DueAt, -1) // a handler may delay a call by more than a duration can have
	o.stats.Ended(e.Target.Service, e.Target.Handler, endOf(e), time.Duration(took)*time.Millisecond)
	o.traceEnd(e)
}

func endOf(e *machine.Finish) stats.End {
	switch {
	case e.Stopped:
		return stats.EndCancelled
	case e.Result.Failure != nil:
		return stats.EndFailure
	}
	return stats.EndSuccess
}

// traceStart records that an invocation begins, unless it has run before.
func (o *observer) traceStart(inv *machine.Invocation) {
	if o.tracer == nil || inv.Length != 1 {
		return
	}
	about := attempts.Traced(inv.ID, &inv.Target, &inv.Source, &inv.Trace)
	about.Linked = inv.Source.Kind == machine.FromService && len(inv.Sinks) == 0
	o.tracer.Started(&about)
}

// traceEnd records the end of an invocation.
func (o *observer) traceEnd(e *machine.Finish) {
	if o.tracer == nil {
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
	o.tracer.Ended(&about, time.UnixMilli(e.DueAt), time.UnixMilli(e.EndedAt), code, failure)
}
