package rest

import (
	"context"

	"github.com/labstack/echo/v4"
)

type versionKey struct{}

// WithVersion returns a context of a request that selects a version of the API.
func WithVersion(ctx context.Context, version int) context.Context {
	return context.WithValue(ctx, versionKey{}, version)
}

// VersionOf returns the API version that a request selects.
func VersionOf(c echo.Context) int {
	version, _ := c.Request().Context().Value(versionKey{}).(int)
	return version
}
