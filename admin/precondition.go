package admin

import (
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"platform/admin/rest"
)

// rejectPreconditions rejects changes that are to be made only if a resource has an entity tag or was
// not modified since. The entity tags of responses are weak: they tell whether a response has changed,
// and never match for a change (RFC 9110). Ignoring the condition would overwrite what another request
// has changed.
func rejectPreconditions(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			return next(c)
		}
		for _, name := range []string{"If-Match", "If-Unmodified-Since"} {
			if given := strings.TrimSpace(r.Header.Get(name)); given != "" && given != "*" {
				return &rest.Error{Status: http.StatusPreconditionFailed, Message: "nothing was changed: the header " + strings.ToLower(name) +
					" cannot be met, since entity tags of this API identify responses only; use the precondition of a rule or the version of a state, or leave the header out"}
			}
		}
		return next(c)
	}
}
