package rest

import (
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"platform/internal/access"
)

// Route is one entry of the route table.
type Route struct {
	Method, Path string
	Permission   access.Permission // required permission
	Handle       echo.HandlerFunc
}

// Changes reports whether requests to a route can change something.
func (r *Route) Changes() bool {
	return r.Method != http.MethodGet && slices.Contains([]access.Permission{access.Operate, access.Deploy, access.Secure, access.Administer}, r.Permission)
}

// Get returns the entry of a route with the method GET.
func Get(path string, permission access.Permission, handle echo.HandlerFunc) Route {
	return Route{http.MethodGet, path, permission, handle}
}

// Post returns the entry of a route with the method POST.
func Post(path string, permission access.Permission, handle echo.HandlerFunc) Route {
	return Route{http.MethodPost, path, permission, handle}
}

// Put returns the entry of a route with the method PUT.
func Put(path string, permission access.Permission, handle echo.HandlerFunc) Route {
	return Route{http.MethodPut, path, permission, handle}
}

// Patch returns the entry of a route with the method PATCH.
func Patch(path string, permission access.Permission, handle echo.HandlerFunc) Route {
	return Route{http.MethodPatch, path, permission, handle}
}

// Delete returns the entry of a route with the method DELETE.
func Delete(path string, permission access.Permission, handle echo.HandlerFunc) Route {
	return Route{http.MethodDelete, path, permission, handle}
}
