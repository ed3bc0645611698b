package admin

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"platform/internal/ids"
)

// onQueue returns a handler that applies an operation to the vqueue in the path. An empty vqueue
// without a record is not an error: there is nothing to pause or resume.
func (s *Server) onQueue(verb string, do func(echo.Context, ids.VQueue) error) echo.HandlerFunc {
	return func(c echo.Context) error {
		id, err := ids.ParseVQueue(c.Param("vqueue_id"))
		if err != nil {
			return invalidField("vqueue_id", err)
		}
		if !s.cfg.FlowControl {
			return badRequest("vqueues exist only with flow control, which is off (experimental-enable-vqueues and experimental-enable-protocol-v7, on a fresh cluster)")
		}
		if err := do(c, id); err != nil && !errors.Is(err, ErrNotFound) {
			return fmt.Errorf("%s vqueue %s: %w", verb, id, err)
		}
		return done(c, http.StatusAccepted)
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

var queueOperations = map[string]operation{
	"POST /vqueues/:vqueue_id/pause":  queueOperation("pause_vqueue", "Stop a vqueue from starting invocations; running ones continue", reasonParameter),
	"POST /vqueues/:vqueue_id/resume": queueOperation("resume_vqueue", "Resume a paused vqueue"),
}

func queueOperation(id, summary string, query ...object) operation {
	return operation{
		id: id, tag: "vqueue", summary: summary, query: query,
		answers: []reply{{http.StatusAccepted, "Accepted. No effect if the queue has no entries", nil}}, refusals: []int{400, 503},
	}
}

var reasonParameter = queryParameter("reason", "Why it is paused, for other operators: one line of up to 512 bytes. Stored with the address of the client.", object{"type": "string", "maxLength": maxReason})
