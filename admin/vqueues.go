package admin

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"platform/admin/openapi"
	"platform/admin/rest"
	"platform/flowcontrol"
	"platform/internal/ids"
)

// onQueue returns a handler that applies an operation to the vqueue in the path. An empty vqueue
// without a record is not an error: there is nothing to pause or resume.
func (s *Server) onQueue(verb string, do func(echo.Context, ids.VQueue) error) echo.HandlerFunc {
	return func(c echo.Context) error {
		id, err := ids.ParseVQueue(c.Param("vqueue_id"))
		if err != nil {
			return rest.InvalidField("vqueue_id", err)
		}
		if !s.cfg.FlowControl {
			return rest.BadRequest("vqueues exist only with flow control, which is off (experimental-enable-vqueues and experimental-enable-protocol-v7, on a fresh cluster)")
		}
		if err := do(c, id); err != nil && !errors.Is(err, ErrNotFound) {
			return fmt.Errorf("%s vqueue %s: %w", verb, id, err)
		}
		return rest.Done(c, http.StatusAccepted)
	}
}

func (s *Server) pauseQueue(c echo.Context, id ids.VQueue) error {
	request, err := pauseRequest(c, c.QueryParam("reason"))
	if err != nil {
		return err
	}
	return s.invocations.PauseQueue(c.Request().Context(), id, request)
}

func (s *Server) resumeQueue(c echo.Context, id ids.VQueue) error {
	return s.invocations.ResumeQueue(c.Request().Context(), id)
}

// onScope returns a handler that applies an operation to the scope in the path.
func (s *Server) onScope(verb string, do func(echo.Context, string) error) echo.HandlerFunc {
	return func(c echo.Context) error {
		scope := c.Param("scope")
		if err := flowcontrol.CheckScope(scope); err != nil {
			return rest.InvalidField("scope", err)
		}
		if !s.cfg.FlowControl {
			return rest.BadRequest("scopes need flow control, which is off (experimental-enable-vqueues and experimental-enable-protocol-v7, on a fresh cluster)")
		}
		if err := do(c, scope); err != nil {
			return fmt.Errorf("%s scope %s: %w", verb, scope, err)
		}
		return rest.Done(c, http.StatusAccepted)
	}
}

func (s *Server) pauseScope(c echo.Context, scope string) error {
	request, err := pauseRequest(c, c.QueryParam("reason"))
	if err != nil {
		return err
	}
	return s.invocations.PauseScope(c.Request().Context(), scope, request)
}

func (s *Server) resumeScope(c echo.Context, scope string) error {
	return s.invocations.ResumeScope(c.Request().Context(), scope)
}

var queueOperations = map[string]operation{
	"POST /limits/scopes/:scope/pause": {
		ID: "pause_scope", Tag: "rule", Summary: "Stop all vqueues of a scope, also future ones, from starting invocations; running ones continue", Query: []object{reasonParameter},
		Responses: responses{openapi.Returns(http.StatusAccepted, "Accepted. A scope that is already paused keeps its pause", nil)}, Errors: []int{400, 503},
	},
	"POST /limits/scopes/:scope/resume": {
		ID: "resume_scope", Tag: "rule", Summary: "Resume a paused scope; vqueues that are paused themselves remain so",
		Responses: responses{openapi.Returns(http.StatusAccepted, "Accepted", nil)}, Errors: []int{400, 503},
	},
	"POST /vqueues/:vqueue_id/pause":  queueOperation("pause_vqueue", "Stop a vqueue from starting invocations; running ones continue", reasonParameter),
	"POST /vqueues/:vqueue_id/resume": queueOperation("resume_vqueue", "Resume a paused vqueue"),
}

func queueOperation(id, summary string, query ...object) operation {
	return operation{
		ID: id, Tag: "vqueue", Summary: summary, Query: query,
		Responses: responses{openapi.Returns(http.StatusAccepted, "Accepted. No effect if the queue has no entries", nil)}, Errors: []int{400, 503},
	}
}

var reasonParameter = openapi.QueryParameter("reason", "Why it is paused, for other operators: one line of up to 512 bytes. Stored with the address of the client.", object{"type": "string", "maxLength": rest.MaxReason})
