package ingress

import (
	"bytes"
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"platform/internal/ids"
	"platform/partition/journal"
	"platform/partition/machine"
)

// rejectionCode is the code of the failure that a rejected awakeable ends with.
const rejectionCode = 500

// resolveAwakeable completes an awakeable with the body.
func (s *Server) resolveAwakeable(c echo.Context) error {
	return s.completeAwakeable(c, func(body []byte) *journal.Result { return &journal.Result{Value: body} })
}

// rejectAwakeable completes an awakeable with a failure whose reason is the body.
func (s *Server) rejectAwakeable(c echo.Context) error {
	return s.completeAwakeable(c, func(body []byte) *journal.Result {
		return &journal.Result{Failure: &journal.Failure{Code: rejectionCode, Message: string(bytes.ToValidUTF8(body, []byte("\uFFFD")))}}
	})
}

// completeAwakeable hands the result to the invocation that made the awakeable. That
// it is unknown or has its result already is no error: the first one counts.
func (s *Server) completeAwakeable(c echo.Context, result func(body []byte) *journal.Result) error {
	segments, err := decodeParams(c)
	if err != nil {
		return err
	}
	awakeable, err := ids.ParseAwakeable(segments[0])
	if err != nil {
		return badRequest("bad awakeable id '%s': %v", segments[0], err)
	}
	if awakeable.Signal < ids.FirstAwakeable {
		return badRequest("bad awakeable id '%s': its signal %d is reserved", segments[0], awakeable.Signal)
	}
	var body bytes.Buffer
	if err := s.readAll(c.Response(), c.Request(), &body); err != nil {
		return err
	}
	ctx := c.Request().Context()
	err = s.invocations.Signal(ctx, &machine.Signal{
		Target: awakeable.Invocation, ID: journal.NumberedSignal(awakeable.Signal), Result: result(body.Bytes()),
	})
	if err != nil && !errors.Is(err, ErrNotFound) {
		return s.explain(ctx, err, awakeable.Invocation, true)
	}
	c.Response().WriteHeader(http.StatusAccepted)
	return nil
}
