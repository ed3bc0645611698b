package admin

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"platform/internal/access"
	"platform/internal/ids"
)

// Operator acts on invocations, wherever they are. Its errors are ErrNotFound, a
// *Refusal, or wrap ErrUnavailable.
type Operator interface {
	// Cancel asks an invocation to end; started says that its handler decides how.
	Cancel(ctx context.Context, id ids.Invocation) (started bool, err error)
	// Kill ends an invocation and what it called.
	Kill(ctx context.Context, id ids.Invocation) error
	// Pause stops an invocation until Resume; already reports that it was paused before.
	Pause(ctx context.Context, id ids.Invocation, r PauseRequest) (already bool, err error)
	// Resume lets an invocation go on, on another deployment if one is chosen.
	Resume(ctx context.Context, id ids.Invocation, on DeploymentChoice) error
	// Purge forgets a completed invocation.
	Purge(ctx context.Context, id ids.Invocation) error
	// PurgeJournal forgets the journal of a completed invocation.
	PurgeJournal(ctx context.Context, id ids.Invocation) error
	// Restart makes a new invocation from a completed one, with its journal up to and
	// including the entry from.
	Restart(ctx context.Context, id ids.Invocation, from uint32, on DeploymentChoice) (ids.Invocation, error)

	// Copy makes a new invocation with the target and headers of another one, in any status, and
	// with its input or another one.
	Copy(ctx context.Context, id ids.Invocation, input *[]byte) (ids.Invocation, error)

	// PauseQueue stops a vqueue from starting invocations, until ResumeQueue.
	PauseQueue(ctx context.Context, id ids.VQueue, r PauseRequest) error
	// ResumeQueue lets a vqueue start invocations again.
	ResumeQueue(ctx context.Context, id ids.VQueue) error

	// State reads the state of an object or workflow.
	State(context.Context, Object) (State, error)
	// UpdateState replaces the state of an object or workflow, once its key is free. If
	// wait is false it only waits for a moment.
	UpdateState(ctx context.Context, update StateUpdate, wait bool) (StateChange, error)
	// StateChange tells what became of an update.
	StateChange(context.Context, ids.Invocation) (StateChange, error)
}

// PauseRequest says who requested a pause, and why.
type PauseRequest struct {
	By     string // network address of the client: the API does not authenticate
	Reason string // as the operator gave it; may be empty
}

// Refusal says why an operation does not fit the invocation.
type Refusal struct {
	Status  int // of the answer
	Message string
}

// Error is the message.
func (r *Refusal) Error() string { return r.Message }

// DeploymentChoice is an operator's choice of deployment for an invocation.
type DeploymentChoice struct {
	// Which is empty if nothing was chosen; then Keep or Latest, whichever is usual
	// for the operation.
	Which Which
	ID    ids.Deployment // for ThisOne
}

// Which names a way to choose a deployment.
type Which string

// The ways to choose a deployment.
const (
	Keep    Which = "Keep"
	Latest  Which = "Latest"
	ThisOne Which = "Id"
)

// act is the operation of a route on the invocation in its path.
type act func(c echo.Context, id ids.Invocation) error

// onInvocation reads the id of the path, and words the errors of the operation.
func (s *Server) onInvocation(do act) echo.HandlerFunc {
	return func(c echo.Context) error {
		id, err := ids.ParseInvocation(c.Param("invocation_id"))
		if err != nil {
			return invalidField("invocation_id", err)
		}
		return do(c, id)
	}
}

func (s *Server) cancel(c echo.Context, id ids.Invocation) error {
	started, err := s.invocations.Cancel(c.Request().Context(), id)
	if err != nil {
		return operationError(id, err)
	}
	if started {
		return done(c, http.StatusAccepted)
	}
	return done(c, http.StatusOK)
}

func (s *Server) kill(c echo.Context, id ids.Invocation) error {
	if err := s.invocations.Kill(c.Request().Context(), id); err != nil {
		return operationError(id, err)
	}
	return done(c, http.StatusOK)
}

func (s *Server) pause(c echo.Context, id ids.Invocation) error {
	request, err := pauseRequest(c, c.QueryParam("reason"))
	if err != nil {
		return err
	}
	already, err := s.invocations.Pause(c.Request().Context(), id, request)
	if err != nil {
		return operationError(id, err)
	}
	if already {
		return done(c, http.StatusOK)
	}
	return done(c, http.StatusAccepted)
}

// maxReason bounds the reason of a pause, in bytes: it is stored with the invocation or queue.
const maxReason = 512

// pauseRequest is a pause requested by the client of a request.
func pauseRequest(c echo.Context, reason string) (PauseRequest, error) {
	switch {
	case len(reason) > maxReason:
		return PauseRequest{}, badRequest("the reason has %d bytes; at most %d are allowed", len(reason), maxReason)
	case !utf8.ValidString(reason) || strings.ContainsFunc(reason, unicode.IsControl):
		return PauseRequest{}, badRequest("the reason must be one line of UTF-8 text without control characters")
	}
	return PauseRequest{By: clientOf(c), Reason: reason}, nil
}

// clientOf is the name and address of the client, as records name who asked for something.
func clientOf(c echo.Context) string {
	address := remoteAddress(c.Request())
	if name := access.From(c.Request().Context()).Name; name != "" {
		return name + " at " + address
	}
	return address
}

func remoteAddress(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return ""
	}
	return host
}

func (s *Server) resume(c echo.Context, id ids.Invocation) error {
	on, err := chosenDeployment(c)
	if err != nil {
		return err
	}
	if err := s.invocations.Resume(c.Request().Context(), id, on); err != nil {
		return operationError(id, err)
	}
	return done(c, http.StatusOK)
}

func (s *Server) purge(c echo.Context, id ids.Invocation) error {
	if err := s.invocations.Purge(c.Request().Context(), id); err != nil {
		return operationError(id, err)
	}
	return done(c, http.StatusOK)
}

func (s *Server) purgeJournal(c echo.Context, id ids.Invocation) error {
	if err := s.invocations.PurgeJournal(c.Request().Context(), id); err != nil {
		return operationError(id, err)
	}
	return done(c, http.StatusOK)
}

func (s *Server) restart(c echo.Context, id ids.Invocation) error {
	on, err := chosenDeployment(c)
	if err != nil {
		return err
	}
	from, err := queryIndex(c, "from")
	if err != nil {
		return err
	}
	made, err := s.invocations.Restart(c.Request().Context(), id, from, on)
	if err != nil {
		return operationError(id, err)
	}
	return answer(c, http.StatusOK, restarted{New: made.String()})
}

type restarted struct {
	New string `json:"new_invocation_id"`
}

// end is the old form of cancel, kill and purge, told apart by the mode.
func (s *Server) end(c echo.Context, id ids.Invocation) (err error) {
	ctx := c.Request().Context()
	switch mode := c.QueryParam("mode"); mode {
	case "", "Cancel", "cancel":
		_, err = s.invocations.Cancel(ctx, id)
	case "Kill", "kill":
		err = s.invocations.Kill(ctx, id)
	case "Purge", "purge":
		err = s.invocations.Purge(ctx, id)
	default:
		return badRequest("The query parameter 'mode' is invalid: %q is none of Cancel, Kill, Purge", mode)
	}
	if err != nil {
		return operationError(id, err)
	}
	return done(c, http.StatusAccepted)
}

// operationError words the errors of Operator.
func operationError(id ids.Invocation, err error) error {
	f := refusedOperation(id, err)
	if f == nil {
		return fmt.Errorf("invocation %s: %w", id, err)
	}
	return f
}

// done answers without a body.
func done(c echo.Context, status int) error {
	c.Response().WriteHeader(status)
	return nil
}
