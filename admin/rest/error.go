package rest

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"platform/internal/errcode"
	"platform/internal/httpserver"
)

// Error is an error with the contents of its response.
type Error struct {
	Status  int
	Code    errcode.Code // may be empty
	Message string
	Field   string        // invalid part of the request; may be empty
	Retry   bool          // send a Retry-After header
	After   time.Duration // with retry; 0 means 1 s
}

func (f *Error) Error() string { return f.Message }

// ErrNotFound means that the invocation, vqueue or update of state that a request names does not exist. The
// handler names it in the response.
var ErrNotFound = errors.New("not found")

// ErrorBody is the body of all error responses.
type ErrorBody struct {
	Message string        `json:"message"`
	Code    *errcode.Code `json:"platform_code"`
	Field   string        `json:"field,omitempty"` // invalid part of the request, or property
}

// BadRequest returns an error for a request that cannot be understood.
func BadRequest(format string, args ...any) *Error {
	return &Error{Status: http.StatusBadRequest, Message: fmt.Sprintf(format, args...)}
}

// Unprocessable returns an error for a body with valid syntax but invalid values.
func Unprocessable(format string, args ...any) *Error {
	return &Error{Status: http.StatusUnprocessableEntity, Message: fmt.Sprintf(format, args...)}
}

// InvalidField returns an error for an invalid parameter of the path or query, or field of the
// body.
func InvalidField(name string, reason error) *Error {
	return BadRequest("The request field '%s' is invalid. Reason: %v", name, reason)
}

// Shorten quotes a text of a request for a message, and cuts it off after 40 bytes.
func Shorten(s string) string {
	if len(s) > 40 {
		return strconv.Quote(s[:40]) + "…"
	}
	return strconv.Quote(s)
}

// WriteError responds with an error.
func WriteError(w http.ResponseWriter, r *http.Request, f *Error) {
	body := ErrorBody{Message: httpserver.Abridge(r, f.Message), Field: f.Field}
	if f.Code != "" {
		body.Code = &f.Code
	}
	if f.Status == http.StatusRequestEntityTooLarge && r.ProtoMajor == 1 {
		w.Header().Set("Connection", "close") // do not read the rest of the body
	}
	if f.Retry {
		w.Header().Set("Retry-After", strconv.Itoa(httpserver.RetryAfter(f.After)))
	}
	WriteJSON(w, f.Status, body)
}
