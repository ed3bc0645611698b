package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"platform/admin/explain"
	"platform/admin/query"
	"platform/admin/rest"
	"platform/internal/access"
	"platform/internal/ids"
	"platform/metadata"
)

func (s *Server) explainInvocation(c echo.Context, id ids.Invocation) error {
	if s.cfg.Query == nil {
		return query.ErrNoEngine
	}
	ctx, now := c.Request().Context(), time.Now()
	tables := tableReader{s.cfg.Query, s.registry.Schemas(), access.From(ctx)}
	explanation, err := explain.Invocation(ctx, tables, id.String(), now)
	if err == nil && !access.From(ctx).Limited() { // limited principals must not see other invocations
		err = explain.Follow(ctx, tables, explanation, now)
	}
	if errors.Is(err, explain.ErrNotFound) {
		return noInvocation(id)
	}
	if err != nil {
		return rejectQuery(c, fmt.Errorf("explain invocation %s: %w", id, err))
	}
	return rest.Respond(c, http.StatusOK, explanation)
}

func noInvocation(id ids.Invocation) *rest.Error {
	return &rest.Error{Status: http.StatusNotFound, Message: fmt.Sprintf("The requested invocation '%s' does not exist", id)}
}

// tableReader implements explain.Reader with the SQL engine.
type tableReader struct {
	engine  *query.Engine
	schemas *metadata.Schemas
	reader  *access.Principal
}

var _ explain.Reader = tableReader{}

// Query implements explain.Reader.
func (r tableReader) Query(ctx context.Context, sql string) ([]explain.Row, error) {
	return query.Select[explain.Row](ctx, r.engine, sql, query.Options{})
}

// Latest implements explain.Reader.
func (r tableReader) Latest(service string) string {
	if s := r.schemas.Services[service]; s != nil {
		return string(s.Deployment)
	}
	return ""
}

// Visible implements explain.Reader.
func (r tableReader) Visible(service, scope string) bool {
	return r.reader.AllowsTarget(service, scope)
}

// Address implements explain.Reader. Limited principals must not see deployments.
func (r tableReader) Address(deployment string) string {
	if d := r.schemas.Deployments[ids.Deployment(deployment)]; d != nil && !r.reader.Limited() {
		return d.Address()
	}
	return ""
}
