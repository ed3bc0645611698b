package admin

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"platform/admin/rest"
)

// rejectUnknownQuery rejects query parameters that the OpenAPI description of a route does not
// contain, and several values of one that is not a list there: only one of them would take effect.
func rejectUnknownQuery(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if c.Request().URL.RawQuery == "" {
			return next(c)
		}
		method := c.Request().Method
		if method == http.MethodHead {
			method = http.MethodGet
		}
		path := c.Path()
		if strings.HasSuffix(path, "/") { // without emptyParameter, see newRouter
			path += emptyParameter
		}
		op, described := descriptions.Operations[method+" "+path]
		if !described || op.AnyQuery {
			return next(c)
		}
		// QueryParams skips what it cannot decode, and the list would not be filtered.
		if _, err := url.ParseQuery(c.Request().URL.RawQuery); err != nil {
			return rest.BadRequest("the query cannot be decoded: %v", err)
		}
		names := op.QueryNames()
		for _, given := range slices.Sorted(maps.Keys(c.QueryParams())) {
			if !slices.Contains(names, given) {
				return rest.BadRequest("unknown query parameter '%s'%s", given, rest.Alternatives(given, "parameters", names))
			}
			if values := c.QueryParams()[given]; len(values) > 1 && !op.Repeatable(given) {
				return rest.BadRequest("The query parameter '%s' is given %d times; it has one value", given, len(values))
			}
		}
		return next(c)
	}
}
