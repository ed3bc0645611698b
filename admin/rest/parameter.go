package rest

import (
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"
)

// QueryBool parses a boolean query parameter. A parameter without a value is true.
func QueryBool(c echo.Context, name string) (bool, error) { return ParseBool(c.QueryParams(), name) }

// ParseBool is QueryBool for parsed parameters.
func ParseBool(parameters url.Values, name string) (bool, error) {
	values, given := parameters[name]
	if !given {
		return false, nil
	}
	switch strings.ToLower(values[len(values)-1]) {
	case "", "true", "1":
		return true, nil
	case "false", "0":
		return false, nil
	}
	return false, BadRequest("The query parameter '%s' is invalid: %s is neither true nor false", name, Shorten(values[len(values)-1]))
}
