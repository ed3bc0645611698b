package admin

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"platform/admin/query"
	"platform/admin/rest"
	"platform/internal/access"
	"platform/internal/errcode"
	"platform/internal/httpserver"
	"platform/internal/units"
)

// queryRequest is the body of a request with an SQL query.
type queryRequest struct {
	Query string `json:"query"`
	// U64AsText encodes u64 values, such as partition keys, as text: many clients handle numbers
	// exactly only up to 2^53.
	U64AsText bool `json:"u64_as_text"`
	// WithColumns writes the names and types of the columns before the rows.
	WithColumns bool `json:"with_columns"`
	// WithStats writes what the query has read after the rows.
	WithStats bool `json:"with_stats"`
	// Consistency is the read consistency: "bounded" (default) or "strong".
	Consistency string `json:"consistency"`
}

// Values of consistency.
const (
	boundedConsistency = "bounded"
	strongConsistency  = "strong"
)

// strong reports whether strong consistency is requested, by the body or else by the query
// parameter.
func (r *queryRequest) strong(c echo.Context) (bool, error) {
	wanted := cmp.Or(r.Consistency, c.QueryParam("consistency"), boundedConsistency)
	switch wanted {
	case boundedConsistency:
		return false, nil
	case strongConsistency:
		return true, nil
	}
	return false, rest.BadRequest("unknown consistency '%s'; it is %s (default) or %s", wanted, boundedConsistency, strongConsistency)
}

// queryRejection is the body of an error caused by a query. It has additional fields.
type queryRejection struct {
	Message    string        `json:"message"`
	Code       *errcode.Code `json:"platform_code"`
	Line       int           `json:"line,omitempty"`
	Column     int           `json:"column,omitempty"`
	Suggestion string        `json:"suggestion,omitempty"`
}

// arrowStream is the content type of the Apache Arrow IPC format.
const arrowStream = "application/vnd.apache.arrow.stream"

// arrowClient is the prefix of the user agent of a client that sends "accept: */*" but can only
// decode the Arrow format.
const arrowClient = "restate-cli/"

// wantsArrow reports whether to return a result in the Arrow format: if the request accepts it and
// not JSON, or if the client is known to require it.
func wantsArrow(r *http.Request) bool {
	accept := strings.ToLower(strings.Join(r.Header.Values("Accept"), ","))
	if strings.Contains(accept, "json") {
		return false
	}
	return strings.Contains(accept, arrowStream) || strings.HasPrefix(r.UserAgent(), arrowClient)
}

// runQuery streams the rows of a query, in JSON unless wantsArrow.
func (s *Server) runQuery(c echo.Context) error {
	if s.cfg.Query == nil {
		return query.ErrNoEngine
	}
	var req queryRequest
	if err := s.bodies.ReadJSON(c, &req); err != nil {
		return err
	}
	strong, err := req.strong(c)
	if err != nil {
		return err
	}
	if err := s.cfg.Query.Admit(c.Request().Context()); err != nil {
		return err
	}
	run, contentType := s.cfg.Query.WriteJSON, "application/json"
	if wantsArrow(c.Request()) {
		run, contentType = s.cfg.Query.WriteArrow, arrowStream
	}
	w := &queryWriter{c: c, contentType: contentType, control: http.NewResponseController(c.Response())}
	defer w.release()
	ctx := c.Request().Context()
	p := access.From(ctx)
	if p.Allows(access.Payloads) {
		if err := s.recordRead(c, "POST /query", req.Query); err != nil {
			return err
		}
	}
	written, err := run(ctx, req.Query, query.Options{
		BigNumbersAsText: req.U64AsText, Columns: req.WithColumns, Stats: req.WithStats, Strong: strong,
		HidePayloads: !p.Allows(access.Payloads), HideAudit: !p.Allows(access.Secure),
		Limits: query.Limits{Services: p.Services, Scopes: p.Scopes},
	}, w)
	switch {
	case err == nil:
		return nil
	case written.Bytes > 0:
		// The document contains the error. The connection is also aborted, so that clients that do
		// not check for it detect that the result is incomplete.
		s.log.Warn("query result truncated", "err", err, "rows", written.Rows)
		c.Response().Flush()
		panic(http.ErrAbortHandler)
	}
	return rejectQuery(c, err)
}

// rejectQuery responds to a query that failed before any part of the result was written.
func rejectQuery(c echo.Context, err error) error {
	if rejection, ok := errors.AsType[*query.Error](err); ok {
		status := http.StatusBadRequest
		if rejection.Forbidden {
			status = http.StatusForbidden
		}
		rest.WriteJSON(c.Response(), status, queryRejection{
			Message: rejection.Error(), Line: rejection.Position.Line, Column: rejection.Position.Column, Suggestion: rejection.Suggestion,
		})
		return nil
	}
	return err
}

// explainQuery returns the response to a query that failed for reasons other than its text, nil for
// other errors.
func explainQuery(err error) *rest.Error {
	if limited, ok := errors.AsType[*query.RateError](err); ok {
		return &rest.Error{
			Status: http.StatusTooManyRequests, Retry: true, After: limited.After,
			Message: fmt.Sprintf("%s; try again in %d s", err, httpserver.RetryAfter(limited.After)),
		}
	}
	switch {
	case errors.Is(err, query.ErrBusy):
		return &rest.Error{Status: http.StatusTooManyRequests, Retry: true, Message: err.Error()}
	case errors.Is(err, query.ErrUnavailable):
		return &rest.Error{Status: http.StatusServiceUnavailable, Retry: true, Message: err.Error() + "; retry later"}
	case errors.Is(err, query.ErrTimeout), errors.Is(err, query.ErrDisabled), errors.Is(err, query.ErrNoEngine):
		return &rest.Error{Status: http.StatusServiceUnavailable, Message: err.Error()}
	}
	return nil
}

// queryWriter writes the response header before the first byte, so that errors before it can have
// their own status. It flushes each write.
type queryWriter struct {
	c           echo.Context
	contentType string
	control     *http.ResponseController
	begun       bool
}

var _ query.DeadlineWriter = (*queryWriter)(nil)

// SetWriteDeadline implements query.DeadlineWriter. Connections without deadlines are accepted.
func (w *queryWriter) SetWriteDeadline(t time.Time) error {
	if err := w.control.SetWriteDeadline(t); !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// release removes the deadline, so that the connection can be reused.
func (w *queryWriter) release() { _ = w.SetWriteDeadline(time.Time{}) }

// Write implements io.Writer.
func (w *queryWriter) Write(b []byte) (int, error) {
	response := w.c.Response()
	if !w.begun {
		w.begun = true
		response.Header().Set("Content-Type", w.contentType)
		response.WriteHeader(http.StatusOK)
	}
	n, err := response.Write(b)
	response.Flush()
	return n, err
}

// tableList contains the system tables, and the limits of queries.
type tableList struct {
	Tables []*query.Table `json:"tables"`
	Limits queryLimits    `json:"limits"`
}

type queryLimits struct {
	Timeout    units.Duration `json:"timeout"`
	MaxRows    int            `json:"max_rows"`
	MaxBytes   int            `json:"max_bytes"`
	Concurrent int            `json:"concurrency"`
}

func (s *Server) listTables(c echo.Context) error {
	if s.cfg.Query == nil {
		return query.ErrNoEngine
	}
	l := s.cfg.Query.Bounds()
	return rest.Respond(c, http.StatusOK, tableList{s.cfg.Query.Tables(), queryLimits{units.Duration(l.Timeout), l.MaxRows, l.MaxBytes, l.Concurrent}})
}
