package flow

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

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
		if !s.cfg.Enabled {
			return rest.BadRequest("vqueues exist only with flow control, which is off (experimental-enable-vqueues and experimental-enable-protocol-v7, on a fresh cluster)")
		}
		if err := do(c, id); err != nil && !errors.Is(err, rest.ErrNotFound) {
			return fmt.Errorf("%s vqueue %s: %w", verb, id, err)
		}
		return rest.Done(c, http.StatusAccepted)
	}
}

func (s *Server) pauseQueue(c echo.Context, id ids.VQueue) error {
	request, err := rest.PauseRequestOf(c, c.QueryParam("reason"))
	if err != nil {
		return err
	}
	return s.cfg.Operator.PauseQueue(c.Request().Context(), id, request)
}

func (s *Server) resumeQueue(c echo.Context, id ids.VQueue) error {
	return s.cfg.Operator.ResumeQueue(c.Request().Context(), id)
}

// onScope returns a handler that applies an operation to the scope in the path.
func (s *Server) onScope(verb string, do func(echo.Context, string) error) echo.HandlerFunc {
	return func(c echo.Context) error {
		scope := c.Param("scope")
		if err := flowcontrol.CheckScope(scope); err != nil {
			return rest.InvalidField("scope", err)
		}
		if !s.cfg.Enabled {
			return rest.BadRequest("scopes need flow control, which is off (experimental-enable-vqueues and experimental-enable-protocol-v7, on a fresh cluster)")
		}
		if err := do(c, scope); err != nil {
			return fmt.Errorf("%s scope %s: %w", verb, scope, err)
		}
		return rest.Done(c, http.StatusAccepted)
	}
}

func (s *Server) pauseScope(c echo.Context, scope string) error {
	request, err := rest.PauseRequestOf(c, c.QueryParam("reason"))
	if err != nil {
		return err
	}
	return s.cfg.Operator.PauseScope(c.Request().Context(), scope, request)
}

func (s *Server) resumeScope(c echo.Context, scope string) error {
	return s.cfg.Operator.ResumeScope(c.Request().Context(), scope)
}
