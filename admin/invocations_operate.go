package admin

import (
	"context"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"platform/admin/flow"
	"platform/admin/rest"
	"platform/internal/ids"
)

// Operator operates on invocations and vqueues of any partition. Its errors are rest.ErrNotFound or a
// *Rejection, or wrap ErrUnavailable.
type Operator interface {
	flow.Operator
	// Cancel cancels an invocation. started reports that it had started, so that its handler
	// decides how it ends.
	Cancel(ctx context.Context, id ids.Invocation) (started bool, err error)
	// Kill ends an invocation and the invocations that it called.
	Kill(ctx context.Context, id ids.Invocation) error
	// Pause pauses an invocation until Resume; already reports that it was paused before.
	Pause(ctx context.Context, id ids.Invocation, r rest.PauseRequest) (already bool, err error)
	// Resume resumes an invocation, on another deployment if one is chosen.
	Resume(ctx context.Context, id ids.Invocation, on DeploymentChoice) error
	// Purge deletes a completed invocation.
	Purge(ctx context.Context, id ids.Invocation) error
	// PurgeJournal deletes the journal of a completed invocation.
	PurgeJournal(ctx context.Context, id ids.Invocation) error
	// Restart creates an invocation from a completed one, with the journal up to and including the
	// entry from.
	Restart(ctx context.Context, id ids.Invocation, from uint32, on DeploymentChoice) (ids.Invocation, error)

	// Copy creates an invocation with the target and headers of another one, in any status, and
	// with the given input, or the same input if it is nil.
	Copy(ctx context.Context, id ids.Invocation, input *[]byte) (ids.Invocation, error)

	// State returns the state of an object or workflow.
	State(context.Context, Object) (State, error)
	// UpdateState replaces the state of an object or workflow once its key is free. Unless wait is
	// true it returns after a short time even if the update is still queued.
	UpdateState(ctx context.Context, update StateUpdate, wait bool) (StateChange, error)
	// StateChange returns the status of an update.
	StateChange(context.Context, ids.Invocation) (StateChange, error)
}

// Rejection is the reason why an operation is not possible in the state of its target.
type Rejection struct {
	Status  int // HTTP status of the response
	Message string
	// Later reports that the invocation is in a status that can follow the operation: it has
	// completed or, after it was resumed, is running.
	Later bool
}

// Error implements error.
func (r *Rejection) Error() string { return r.Message }

// DeploymentChoice is an operator's choice of a deployment for an invocation.
type DeploymentChoice struct {
	// Which is empty if nothing was chosen; the operation then uses its default, Keep or Latest.
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

// invocationHandler handles a request concerning the invocation in its path.
type invocationHandler func(c echo.Context, id ids.Invocation) error

// onInvocation returns the handler of a route with an invocation ID in its path.
func (s *Server) onInvocation(do invocationHandler) echo.HandlerFunc {
	return func(c echo.Context) error {
		id, err := ids.ParseInvocation(c.Param("invocation_id"))
		if err != nil {
			return rest.InvalidField("invocation_id", err)
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
		return rest.Done(c, http.StatusAccepted)
	}
	return rest.Done(c, http.StatusOK)
}

func (s *Server) kill(c echo.Context, id ids.Invocation) error {
	if err := s.invocations.Kill(c.Request().Context(), id); err != nil {
		return operationError(id, err)
	}
	return rest.Done(c, http.StatusOK)
}

func (s *Server) pause(c echo.Context, id ids.Invocation) error {
	request, err := rest.PauseRequestOf(c, c.QueryParam("reason"))
	if err != nil {
		return err
	}
	already, err := s.invocations.Pause(c.Request().Context(), id, request)
	if err != nil {
		return operationError(id, err)
	}
	if already {
		return rest.Done(c, http.StatusOK)
	}
	return rest.Done(c, http.StatusAccepted)
}

func (s *Server) resume(c echo.Context, id ids.Invocation) error {
	on, err := chosenDeployment(c)
	if err != nil {
		return err
	}
	if err := s.invocations.Resume(c.Request().Context(), id, on); err != nil {
		return operationError(id, err)
	}
	return rest.Done(c, http.StatusOK)
}

func (s *Server) purge(c echo.Context, id ids.Invocation) error {
	if err := s.invocations.Purge(c.Request().Context(), id); err != nil {
		return operationError(id, err)
	}
	return rest.Done(c, http.StatusOK)
}

func (s *Server) purgeJournal(c echo.Context, id ids.Invocation) error {
	if err := s.invocations.PurgeJournal(c.Request().Context(), id); err != nil {
		return operationError(id, err)
	}
	return rest.Done(c, http.StatusOK)
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
	return rest.Respond(c, http.StatusOK, restarted{New: made.String()})
}

type restarted struct {
	New string `json:"new_invocation_id"`
}

// terminate handles the legacy route for cancel, kill and purge, which has a query parameter mode.
func (s *Server) terminate(c echo.Context, id ids.Invocation) (err error) {
	ctx := c.Request().Context()
	switch mode := c.QueryParam("mode"); mode {
	case "", "Cancel", "cancel":
		_, err = s.invocations.Cancel(ctx, id)
	case "Kill", "kill":
		err = s.invocations.Kill(ctx, id)
	case "Purge", "purge":
		err = s.invocations.Purge(ctx, id)
	default:
		return rest.BadRequest("The query parameter 'mode' is invalid: %q is none of Cancel, Kill, Purge", mode)
	}
	if err != nil {
		return operationError(id, err)
	}
	return rest.Done(c, http.StatusAccepted)
}

// operationError converts an error of Operator to a failure with a message for the client.
func operationError(id ids.Invocation, err error) error {
	f := rejectedOperation(id, err)
	if f == nil {
		return fmt.Errorf("invocation %s: %w", id, err)
	}
	return f
}
