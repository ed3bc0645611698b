package ingress

import (
	"github.com/labstack/echo/v4"

	"platform/internal/ids"
	"platform/internal/routing"
	"platform/metadata"
)

// answerer responds to a request about a known invocation.
type answerer func(c echo.Context, id ids.Invocation) error

// attach waits for the result of an invocation.
func (s *Server) attach(c echo.Context, id ids.Invocation) error {
	answer, err := s.invocations.Attach(c.Request().Context(), id)
	return s.result(c, id, &answer, err)
}

// output responds with the result of an invocation if there is one.
func (s *Server) output(c echo.Context, id ids.Invocation) error {
	answer, err := s.invocations.Output(c.Request().Context(), id)
	return s.result(c, id, &answer, err)
}

func (s *Server) result(c echo.Context, id ids.Invocation, answer *routing.Answer, err error) error {
	if err != nil {
		return s.explain(c.Request().Context(), err, id, true)
	}
	answer.ID = id
	rules := &metadata.OutputRules{} // of a handler that is not there any more
	if _, h, err := s.registry.Schemas().Resolve(answer.Target.Service, answer.Target.Handler); err == nil {
		rules = &h.Output
	}
	mem := hold(c.Request())
	defer mem.release()
	if err := mem.answer(len(answer.Result.Value)); err != nil {
		return err
	}
	return writeAnswer(c.Response(), answer, rules)
}

// byID takes the invocation id from the path.
func byID(answer answerer) echo.HandlerFunc {
	return func(c echo.Context) error {
		segments, err := decodeParams(c)
		if err != nil {
			return err
		}
		id, err := parseID(segments[0])
		if err != nil {
			return err
		}
		return answer(c, id)
	}
}

// byIdempotencyKey takes service, key if there is one, handler and idempotency key
// from the path.
func (s *Server) byIdempotencyKey(answer answerer) echo.HandlerFunc {
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
		return answer(c, id)
	}
}

// byWorkflow takes the workflow and its key from the path.
func (s *Server) byWorkflow(answer answerer) echo.HandlerFunc {
	return func(c echo.Context) error {
		segments, err := decodeParams(c)
		if err != nil {
			return err
		}
		id, err := s.workflowID(c.Request().Context(), "", segments[0], segments[1])
		if err != nil {
			return err
		}
		return answer(c, id)
	}
}

// decodeParams are the variable segments of the path, in its order.
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
