package rest

import (
	"encoding/base64"
	"encoding/json"
	"strconv"

	"github.com/labstack/echo/v4"
)

// Numbers of elements in a page.
const (
	DefaultLimit = 100
	MaxLimit     = 1000
)

// Limit parses the query parameter limit, the maximum number of elements in a page.
func Limit(c echo.Context) (int, error) {
	text := c.QueryParam("limit")
	if text == "" {
		return DefaultLimit, nil
	}
	return ParseLimit(text)
}

// ParseLimit is Limit for a value of the parameter.
func ParseLimit(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > MaxLimit {
		return 0, BadRequest("The query parameter 'limit' is invalid: %q is not a number from 1 to %d", text, MaxLimit)
	}
	return n, nil
}

// ErrCursor is the error for a cursor that the listing has not returned.
var ErrCursor = BadRequest("The query parameter 'cursor' is invalid: the cursor does not belong to this listing")

// EncodeCursor encodes the sort key of the last element of a page.
func EncodeCursor(key any) string {
	b, err := json.Marshal(key)
	if err != nil {
		panic(err) // numbers and texts
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// DecodeCursor decodes what EncodeCursor returned.
func DecodeCursor(text string, key any) error {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(b, key)
	}
	if err != nil {
		return ErrCursor
	}
	return nil
}
