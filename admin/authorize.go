package admin

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"
	"golang.org/x/sync/errgroup"

	"platform/admin/rest"
	"platform/internal/access"
	"platform/internal/ids"
)

// authorized returns the handler of a route that requires its permission. Requests that change
// something are recorded in the audit log.
func (s *Server) authorized(r rest.Route) echo.HandlerFunc {
	if r.Permission != access.Public && !slices.Contains(access.Permissions, r.Permission) {
		panic(fmt.Sprintf("admin: the route %s %s requires no known permission", r.Method, r.Path))
	}
	handle := r.Handle
	if r.Changes() {
		handle = s.audited(r)
	} else if r.Permission == access.Payloads {
		handle = s.auditedRead(r)
	}
	return func(c echo.Context) error {
		if err := s.authorize(c, r); err != nil {
			if r.Changes() {
				s.record(c, r, err)
			}
			return err
		}
		return handle(c)
	}
}

// authorize returns an error if the principal of a request must not use a route.
func (s *Server) authorize(c echo.Context, r rest.Route) error {
	if r.Permission == access.Public {
		return nil
	}
	p := access.From(c.Request().Context())
	if len(p.Roles) == 0 {
		s.cfg.Authenticator.Rejected(c.Request())
		c.Response().Header().Set("WWW-Authenticate", `Bearer realm="platform"`)
		return &rest.Error{Status: http.StatusUnauthorized, Message: access.ErrUnauthenticated.Error() +
			"; send one in the header Authorization: Bearer plt_…, or use `platform login`. The token of the administrator is the one in security.admin-token-file or PLATFORM_ADMIN_TOKEN, or else in the file admin.token in the data directory of this node"}
	}
	if !p.Allows(r.Permission) {
		return &rest.Error{Status: http.StatusForbidden, Message: fmt.Sprintf("%s %s requires the role %s; the token %q has %s",
			r.Method, c.Request().URL.Path, access.RolesWith(r.Permission), p.Name, access.JoinRoles(p.Roles))}
	}
	if p.Limited() {
		return s.withinLimits(c, r, p)
	}
	return nil
}

const (
	queryPath = "/query"
	statePath = "/services/:service/state"
	batchPath = "/internal/invocations_batch_operations/:operation"
)

// listings are the routes whose query is narrowed to the limits of a principal.
var listings = []string{"/invocations", "/invocations/counts", "/failures", "/objects", "/awakeables"}

// unlimitedRoutes are open to limited principals because they return no data about invocations.
var unlimitedRoutes = []string{"/version", "/services", "/query/tables"}

// withinLimits returns an error if a principal that is limited to services or scopes must not use a
// route. It narrows the query of listings to the limits.
func (s *Server) withinLimits(c echo.Context, r rest.Route, p *access.Principal) error {
	rejection := outsideLimits(p)
	names := c.ParamNames()
	switch {
	case slices.Contains(unlimitedRoutes, r.Path):
		return nil
	case r.Path == queryPath:
		return nil // the tables contain only what is within the limits
	case slices.Contains(listings, r.Path):
		return narrow(c, p, rejection)
	case r.Path == batchPath:
		return nil // the handler checks each invocation
	case slices.Contains(names, "invocation_id"):
		id, err := ids.ParseInvocation(c.Param("invocation_id"))
		if err != nil {
			return nil //nolint:nilerr // the handler reports the malformed ID
		}
		return s.invocationWithin(c.Request().Context(), p, id)
	case slices.Contains(names, "service"):
		scope := c.QueryParam("scope") // only reads of state select a scope; other requests concern all scopes
		if len(p.Scopes) > 0 && (r.Permission == access.View || r.Path == statePath && r.Changes()) {
			scope = p.Scopes[0] // the handler checks the scope of the state to change
		}
		if p.AllowsTarget(c.Param("service"), scope) {
			return nil
		}
	}
	return rejection
}

func outsideLimits(p *access.Principal) *rest.Error {
	return &rest.Error{Status: http.StatusForbidden, Message: fmt.Sprintf("the token %q is limited to %s; this request requires a token without this limit", p.Name, limitsOf(p))}
}

func limitsOf(p *access.Principal) string {
	var parts []string
	if len(p.Services) > 0 {
		parts = append(parts, "the services "+strings.Join(p.Services, ", "))
	}
	if len(p.Scopes) > 0 {
		parts = append(parts, "the scopes "+strings.Join(p.Scopes, ", "))
	}
	return strings.Join(parts, " and ")
}

// narrow restricts the filters of a listing to the limits of a principal. It returns rejection if a
// requested value is outside them.
func narrow(c echo.Context, p *access.Principal, rejection error) error {
	r := c.Request()
	if _, err := url.ParseQuery(r.URL.RawQuery); err != nil {
		return rest.BadRequest("the query cannot be decoded: %v", err)
	}
	query := c.QueryParams() // the router caches the values, so the query is changed in both places
	for name, allowed := range map[string][]string{"service": p.Services, "scope": p.Scopes} {
		if len(allowed) == 0 {
			continue
		}
		if len(query[name]) == 0 {
			query[name] = allowed
		}
		for _, value := range query[name] {
			if !slices.Contains(allowed, value) {
				return rejection
			}
		}
	}
	u := *r.URL
	u.RawQuery = query.Encode()
	narrowed := r.WithContext(r.Context())
	narrowed.URL = &u
	c.SetRequest(narrowed)
	return nil
}

// invocationWithin returns an error if an invocation is outside the limits of a principal.
func (s *Server) invocationWithin(ctx context.Context, p *access.Principal, id ids.Invocation) error {
	inv, err := s.invocations.Get(ctx, id, false)
	if err != nil {
		return operationError(id, err)
	}
	if !p.AllowsTarget(inv.TargetServiceName, inv.Scope) {
		return outsideLimits(p)
	}
	return nil
}

// invocationsWithin returns an error if any of the invocations is outside the limits of the
// principal.
func (s *Server) invocationsWithin(ctx context.Context, invocations []ids.Invocation) error {
	p := access.From(ctx)
	if !p.Limited() {
		return nil
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(batchParallel)
	for _, id := range invocations {
		g.Go(func() error { return s.invocationWithin(ctx, p, id) })
	}
	return g.Wait()
}
