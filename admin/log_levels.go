package admin

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"platform/admin/rest"
	"platform/internal/ids"
	"platform/internal/telemetry"
	"platform/internal/units"
	"platform/metadata"
)

// LogLevelsChange is a change of the log levels of nodes.
type LogLevelsChange struct {
	Filter string        // empty for the configured one
	For    time.Duration // 0: until the node restarts
}

// NodeLogLevels are the log levels of one node.
type NodeLogLevels struct {
	ID     ids.Node
	Name   string
	State  telemetry.LevelState
	Reason string // why they are unknown or unchanged; empty if they are known
}

// logLevelsRequest sets the log levels of nodes.
type logLevelsRequest struct {
	Filter *string         `json:"log_filter"`
	For    *units.Duration `json:"for"`
	Nodes  []string        `json:"nodes"`
}

type logLevelsView struct {
	Nodes []nodeLogLevelsView `json:"nodes"`
}

type nodeLogLevelsView struct {
	ID         ids.Node        `json:"id"`
	Name       string          `json:"name"`
	Filter     string          `json:"log_filter,omitempty"`
	Configured string          `json:"configured_log_filter,omitempty"`
	Until      *rest.Timestamp `json:"until,omitempty"`
	Targets    []string        `json:"targets,omitempty"`
	Reason     string          `json:"reason,omitempty"`
}

func (s *Server) getLogLevels(c echo.Context) error {
	return s.respondLogLevels(c, c.QueryParams()["node"], nil)
}

func (s *Server) resetLogLevels(c echo.Context) error {
	return s.respondLogLevels(c, c.QueryParams()["node"], new(LogLevelsChange))
}

func (s *Server) setLogLevels(c echo.Context) error {
	var r logLevelsRequest
	if err := s.bodies.ReadJSON(c, &r); err != nil {
		return err
	}
	if r.Filter == nil || *r.Filter == "" {
		return rest.Unprocessable("the field 'log_filter' is required, such as \"info,fabric=debug\"; DELETE %s restores the configured one", logLevelsPath)
	}
	if _, err := telemetry.ParseFilter(*r.Filter); err != nil {
		return rest.Unprocessable("the field 'log_filter' is invalid: %v", err)
	}
	change := &LogLevelsChange{Filter: *r.Filter}
	if r.For != nil {
		change.For = r.For.Std()
		if change.For < time.Second || change.For > telemetry.MaxLevelOverride {
			return rest.Unprocessable("the field 'for' must be from 1 second to %s, not %s", units.FormatDuration(telemetry.MaxLevelOverride), r.For)
		}
	}
	return s.respondLogLevels(c, r.Nodes, change)
}

// respondLogLevels responds with the log levels of the named nodes, or of all if names is empty.
func (s *Server) respondLogLevels(c echo.Context, names []string, change *LogLevelsChange) error {
	nodes := s.registry.Nodes()
	if len(names) > 0 {
		nodes = make([]metadata.Node, len(names))
		for i, name := range names {
			var err error
			if nodes[i], err = s.member(name); err != nil {
				return err
			}
		}
	}
	view := logLevelsView{Nodes: []nodeLogLevelsView{}}
	for _, n := range s.cluster.LogLevels(c.Request().Context(), nodes, change) {
		one := nodeLogLevelsView{ID: n.ID, Name: n.Name, Filter: n.State.Filter, Configured: n.State.Configured, Targets: n.State.Components, Reason: n.Reason}
		if !n.State.Until.IsZero() {
			until := rest.TimestampOf(n.State.Until)
			one.Until = &until
		}
		view.Nodes = append(view.Nodes, one)
	}
	return rest.Respond(c, http.StatusOK, view)
}
