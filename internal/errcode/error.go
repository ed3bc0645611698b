package errcode

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Error is an error with a code of the catalogue.
type Error struct {
	Code    Code
	Message string // what happened, without the code
	Status  int    // HTTP status; 0 stands for that of the catalogue
	Field   string // of the request that is invalid; empty if not a single one is
	Err     error  // cause, may be nil
}

// New returns an error with the code and a formatted message. A %w in the format
// makes its argument the cause, as with fmt.Errorf.
func New(code Code, format string, args ...any) *Error {
	formatted := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: formatted.Error(), Err: errors.Unwrap(formatted)}
}

// WithStatus returns a copy of e with another HTTP status than that of the catalogue.
func (e *Error) WithStatus(status int) *Error {
	changed := *e
	changed.Status = status
	return &changed
}

// In returns a copy of e that names a field of the request.
func (e *Error) In(field string) *Error {
	changed := *e
	changed.Field = field
	return &changed
}

// InField returns err with the name of a field of the request, unless it already has one or has no
// code.
func InField(err error, field string) error {
	if e, ok := errors.AsType[*Error](err); ok && e.Field == "" {
		return e.In(field)
	}
	return err
}

// Field returns the field of the request that an error names, if any.
func Field(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Field
	}
	return ""
}

// Error returns "[CODE] message". The code is not repeated if the message or a wrapped error
// contains it.
func (e *Error) Error() string { return prefixed(e.Code, e.Message) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// httpStatus returns the HTTP status of the response.
func (e *Error) httpStatus() int {
	if e.Status != 0 {
		return e.Status
	}
	if entry, ok := Lookup(e.Code); ok {
		return entry.HTTPStatus
	}
	return http.StatusInternalServerError
}

// Of returns the code that err or one of its causes carries.
func Of(err error) (Code, bool) {
	if coded, ok := errors.AsType[*Error](err); ok {
		return coded.Code, true
	}
	return "", false
}

// Status returns the HTTP status of the coded error in err's chain, or fallback
// when there is none.
func Status(err error, fallback int) int {
	if coded, ok := errors.AsType[*Error](err); ok {
		return coded.httpStatus()
	}
	return fallback
}

// Text returns the text of err. If the chain contains a code, the text starts with it, even if the
// coded error was wrapped.
func Text(err error) string {
	code, ok := Of(err)
	if !ok {
		return err.Error()
	}
	return prefixed(code, err.Error())
}

// Detail returns the message of err without its code.
func Detail(err error) string {
	if coded, ok := errors.AsType[*Error](err); ok {
		return coded.Message
	}
	return err.Error()
}

func prefixed(code Code, message string) string {
	mark := "[" + string(code) + "]"
	message = strings.ReplaceAll(message, mark+" ", "")
	message = strings.ReplaceAll(message, mark, "")
	return mark + " " + message
}
