package ingress

import (
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"platform/internal/access"
	"platform/internal/cluster/routing"
	"platform/internal/ids"
	"platform/metadata"
)

// resultHandler responds to a request about a known invocation.
type resultHandler func(c echo.Context, id ids.Invocation) error

// attach waits for the result of an invocation.
func (s *Server) attach(c echo.Context, id ids.Invocation) error {
	if err := s.checkVisible(c, id); err != nil {
		return err
	}
	response, err := s.invocations.Attach(c.Request().Context(), id)
	return s.result(c, id, &response, err)
}

// output responds with the result of an invocation if there is one.
func (s *Server) output(c echo.Context, id ids.Invocation) error {
	if err := s.checkVisible(c, id); err != nil {
		return err
	}
	response, err := s.invocations.Output(c.Request().Context(), id)
	return s.result(c, id, &response, err)
}

// checkVisible responds as if an invocation did not exist to senders that may not read its result:
// ids of workflows and of requests with idempotency keys can be guessed, and neither the status nor
// the time of a response may reveal which ones exist.
func (s *Server) checkVisible(c echo.Context, id ids.Invocation) error {
	err := s.authorizeResult(c, id)
	if p, ok := errors.AsType[*problem](err); ok && (p.status == http.StatusUnauthorized || p.status == http.StatusForbidden) {
		err = routing.ErrNotFound
	}
	if errors.Is(err, routing.ErrNotFound) {
		return invocationProblem(c.Request().Context(), err, id, true)
	}
	return err
}

func (s *Server) result(c echo.Context, id ids.Invocation, response *routing.Response, err error) error {
	if err != nil {
		return invocationProblem(c.Request().Context(), err, id, true)
	}
	response.ID = id
	if !s.mayRead(c, response.Target) {
		return invocationProblem(c.Request().Context(), routing.ErrNotFound, id, true) // as if it did not exist
	}
	rules := &metadata.OutputRules{} // of a handler that no longer exists
	if _, h, err := s.registry.Schemas().Resolve(response.Target.Service, response.Target.Handler); err == nil {
		rules = &h.Output
	}
	mem := newReservation(c.Request())
	defer mem.release()
	if err := mem.reserveResponse(len(response.Result.Value)); err != nil {
		return err
	}
	return writeResponse(c.Response(), response, rules)
}

// byID reads the invocation id from the path.
func byID(handle resultHandler) echo.HandlerFunc {
	return func(c echo.Context) error {
		segments, err := decodeParams(c)
		if err != nil {
			return err
		}
		id, err := parseID(segments[0])
		if err != nil {
			return err
		}
		return handle(c, id)
	}
}

// byIdempotencyKey reads service, key if there is one, handler and idempotency key from the path.
func (s *Server) byIdempotencyKey(handle resultHandler) echo.HandlerFunc {
	return func(c echo.Context) error {
		segments, err := decodeParams(c)
		if err != nil {
			return err
		}
		var key *string
		if len(segments) == 4 {
			key = &segments[1]
		}
		last := len(segments) - 1
		id, err := s.idempotentID(c.Request().Context(), "", segments[0], key, segments[last-1], segments[last])
		if err != nil {
			return err
		}
		return s.explainMissing(c, handle(c, id), named{service: segments[0], handler: segments[last-1], keyed: key != nil})
	}
}

// byWorkflow reads the workflow and its key from the path.
func (s *Server) byWorkflow(handle resultHandler) echo.HandlerFunc {
	return func(c echo.Context) error {
		segments, err := decodeParams(c)
		if err != nil {
			return err
		}
		id, err := s.workflowID(c.Request().Context(), "", segments[0], segments[1])
		if err != nil {
			return err
		}
		return s.explainMissing(c, handle(c, id), named{service: segments[0], keyed: true})
	}
}

// named is a handler as a request names it. Without a handler it is the run of a workflow, without a
// service it is none.
type named struct {
	service, handler string
	keyed            bool // the request has a key
}

// explainMissing adds to the error of an unknown invocation that the handler which the request names does not exist,
// or has no key or needs one, unless the sender is limited to other services.
func (s *Server) explainMissing(c echo.Context, err error, n named) error {
	p, ok := errors.AsType[*problem](err)
	if !ok || p.status != http.StatusNotFound || n.service == "" || !access.From(c.Request().Context()).AllowsService(n.service) {
		return err
	}
	schemas, why := s.registry.Schemas(), ""
	switch svc := schemas.Services[n.service]; {
	case svc == nil:
		why = "service '" + n.service + "' is not registered" + nearService(schemas, n.service)
	case n.handler == "" && svc.Type != metadata.Workflow:
		why = "'" + n.service + "' is not a workflow"
	case n.handler != "" && svc.Handler(n.handler) == nil:
		why = "service '" + n.service + "' has no handler '" + n.handler + "'" + nearHandler(svc, n.handler)
	case n.keyed != (svc.Type != metadata.PlainService):
		why = shapeOf(svc)
	default:
		return err
	}
	return &problem{status: p.status, message: p.message + ": " + why}
}

// decodeParams returns the variable segments of the path, in order.
func decodeParams(c echo.Context) ([]string, error) {
	names := c.ParamNames()
	segments := make([]string, len(names))
	for i, raw := range c.ParamValues()[:len(names)] {
		segment, err := unescape(raw, c.Request().URL)
		if err != nil {
			return nil, err
		}
		if segment == "" {
			return nil, badRequest("bad path: the segment {%s} is empty", names[i])
		}
		segments[i] = segment
	}
	return segments, nil
}
