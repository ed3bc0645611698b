package ingress

import (
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"platform/internal/tracing"
	"platform/partition/machine"
)

// trace begins the span of a request, which becomes the parent of the invocation, and
// returns the function that ends it.
func (s *Server) trace(c echo.Context, inv *machine.Invoke) (end func(*error)) {
	span := s.cfg.Tracer.StartRequest(inv.Trace.Parent, c.Request().RemoteAddr)
	if span == nil {
		return func(*error) {}
	}
	inv.Trace.Parent = span.Traceparent()
	if e, counted := c.Response().Writer.(*exchange); counted {
		e.trace = inv.Trace.Parent
	}
	return func(err *error) {
		t := &inv.Target
		about := tracing.Invocation{ID: inv.ID, Service: t.Service, Handler: t.Handler, Keyed: t.Type.Keyed(), Key: t.Key}
		status, failure := outcome(c.Response(), *err)
		requestID, _ := first(c.Response().Header()[headerRequestID])
		span.End(&about, requestID, status, failure)
	}
}

// outcome returns the status of a response, and why the request failed through no fault of
// the client; empty if it did not.
func outcome(r *echo.Response, err error) (status int, failure string) {
	if err == nil {
		if source := r.Header()[headerSource]; len(source) > 0 && source[0] == fromInvocation {
			return r.Status, "the invocation failed"
		}
		return r.Status, ""
	}
	status = http.StatusInternalServerError
	if p, ok := errors.AsType[*problem](err); ok {
		status = p.status
	}
	if status < http.StatusInternalServerError {
		return status, ""
	}
	return status, err.Error()
}
