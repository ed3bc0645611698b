package attempts

import (
	"platform/internal/ids"
	"platform/internal/tracing"
	"platform/partition/machine"
)

// Traced returns what spans say about an invocation.
func Traced(id ids.Invocation, t *machine.Target, s *machine.Source, trace *machine.Trace) tracing.Invocation {
	about := tracing.Invocation{ID: id, Service: t.Service, Handler: t.Handler, Keyed: t.Type.Keyed(), Key: t.Key, Traceparent: trace.Parent}
	if s.Kind == machine.FromService {
		about.Caller = s.Caller
	}
	return about
}
