package ingress

import (
	"bytes"
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"platform/internal/access"
	"platform/internal/cluster/routing"
	"platform/internal/ids"
	"platform/partition/journal"
	"platform/partition/machine"
)

// rejectionCode is the code of the failure that a rejected awakeable or signal ends with.
const rejectionCode = 500

// resolved is the success whose value is the body of a request.
func resolved(body []byte) *journal.Result { return &journal.Result{Value: body} }

// rejected is the failure whose reason is the body of a request.
func rejected(body []byte) *journal.Result {
	return &journal.Result{Failure: &journal.Failure{Code: rejectionCode, Message: string(bytes.ToValidUTF8(body, []byte("\uFFFD")))}}
}

// resolveAwakeable completes an awakeable with the body.
func (s *Server) resolveAwakeable(c echo.Context) error { return s.completeAwakeable(c, resolved) }

// rejectAwakeable completes an awakeable with a failure whose reason is the body.
func (s *Server) rejectAwakeable(c echo.Context) error { return s.completeAwakeable(c, rejected) }

// completeAwakeable passes the result to the invocation that created the awakeable. An unknown or
// completed awakeable is not an error: the first result is kept.
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
	unknown := s.authorizeAwakeable(c, segments[0], awakeable.Invocation)
	if unknown != nil && !errors.Is(unknown, routing.ErrNotFound) {
		return unknown
	}
	var body bytes.Buffer
	mem := newReservation(c.Request())
	defer mem.release()
	if err := s.readAll(c.Response(), c.Request(), &body, mem); err != nil {
		return err
	}
	if unknown != nil {
		c.Response().WriteHeader(http.StatusAccepted)
		return nil
	}
	ctx := c.Request().Context()
	err = s.invocations.Signal(ctx, &machine.Signal{
		Target: awakeable.Invocation, ID: journal.NumberedSignal(awakeable.Signal), Result: result(body.Bytes()),
	})
	if err != nil && !errors.Is(err, routing.ErrNotFound) && !errors.Is(err, routing.ErrEnded) {
		return invocationProblem(ctx, err, awakeable.Invocation, true)
	}
	c.Response().WriteHeader(http.StatusAccepted)
	return nil
}

// signal sends a named signal to an invocation. Unlike an awakeable, which has one result, a name
// may be signaled repeatedly, so requests are not retried automatically.
func (s *Server) signal(result func(body []byte) *journal.Result) echo.HandlerFunc {
	return func(c echo.Context) error {
		segments, err := decodeParams(c)
		if err != nil {
			return err
		}
		id, err := parseID(segments[0])
		if err != nil {
			return err
		}
		if segments[1] == "" {
			return badRequest("the name of the signal is empty")
		}
		ctx := c.Request().Context()
		if err := s.authorizeInvocation(c, id, access.Invoke); errors.Is(err, routing.ErrNotFound) {
			return invocationProblem(ctx, err, id, false)
		} else if err != nil {
			return err
		}
		var body bytes.Buffer
		mem := newReservation(c.Request())
		defer mem.release()
		if err := s.readAll(c.Response(), c.Request(), &body, mem); err != nil {
			return err
		}
		signal := &machine.Signal{Target: id, ID: journal.NamedSignal(segments[1]), Result: result(body.Bytes())}
		if err := s.invocations.Signal(ctx, signal); err != nil {
			return invocationProblem(ctx, err, id, false)
		}
		c.Response().WriteHeader(http.StatusAccepted)
		return nil
	}
}
