package admin

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"platform/internal/ids"
)

// pauseQueue stops a vqueue from starting invocations, or lets it go on. That nobody is
// in it any more is no error: then there is nothing to stop.
func (s *Server) pauseQueue(paused bool) echo.HandlerFunc {
	return func(c echo.Context) error {
		id, err := ids.ParseVQueue(c.Param("vqueue_id"))
		if err != nil {
			return invalidField("vqueue_id", err)
		}
		if !s.cfg.FlowControl {
			return badRequest("vqueues exist only with flow control, which is off (experimental-enable-vqueues and experimental-enable-protocol-v7, on a fresh cluster)")
		}
		if err := s.invocations.PauseQueue(c.Request().Context(), id, paused); err != nil && !errors.Is(err, ErrNotFound) {
			return fmt.Errorf("pause vqueue %s: %w", id, err)
		}
		return done(c, http.StatusAccepted)
	}
}

var queueOperations = map[string]operation{
	"POST /vqueues/:vqueue_id/pause":  queueOperation("pause_vqueue", "Let a vqueue start no more invocations; those that run, run on"),
	"POST /vqueues/:vqueue_id/resume": queueOperation("resume_vqueue", "Let a paused vqueue start invocations again"),
}

func queueOperation(id, summary string) operation {
	return operation{
		id: id, tag: "vqueue", summary: summary,
		answers: []reply{{http.StatusAccepted, "Done, unless nothing is known of the queue any more", nil}}, refusals: []int{400, 503},
	}
}
