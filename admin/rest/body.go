package rest

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"platform/internal/budget"
	"platform/internal/errcode"
	"platform/internal/httpserver"
)

// BodyReader reads the bodies of requests.
type BodyReader struct {
	Limit   int64         // in bytes
	Timeout time.Duration // time that a client has for each 64 KiB
}

// ReadJSON decodes the request body into a value. Syntax errors have status 400; values of the
// wrong type and unknown fields have status 422. Messages contain the position or the field.
func (b BodyReader) ReadJSON(c echo.Context, into any) error {
	body, err := b.ReadRawJSON(c)
	if err != nil {
		return err
	}
	return DecodeJSON(body, into)
}

// ReadRawJSON reads a body with the content type application/json.
func (b BodyReader) ReadRawJSON(c echo.Context) ([]byte, error) {
	r := c.Request()
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return nil, &Error{
			Status:  http.StatusUnsupportedMediaType,
			Message: fmt.Sprintf("expected the header 'content-type: application/json', got %q", r.Header.Get("Content-Type")),
		}
	}
	if coding := r.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return nil, &Error{
			Status:  http.StatusUnsupportedMediaType,
			Message: fmt.Sprintf("request bodies must not be compressed, but this one has the header 'content-encoding: %s'", coding),
		}
	}
	body, release, err := b.ReadBytes(c)
	if err == nil {
		release()
	}
	return body, err
}

// ReadBytes reads a body of any content type. The caller must call release to return the memory to
// the budget.
func (b BodyReader) ReadBytes(c echo.Context) (_ []byte, release func(), _ error) {
	r := c.Request()
	account, size := budget.From(r.Context()), b.Limit
	if r.ContentLength >= 0 {
		size = min(size, r.ContentLength)
	}
	if !account.Reserve(size) {
		return nil, nil, &Error{
			Status: http.StatusServiceUnavailable, Code: errcode.RT0026, Retry: true, After: account.RetryAfter(),
			Message: "not enough memory for the request body besides those in progress (networking.body-memory-limit, networking.connection-body-memory-limit); nothing was changed, retry later",
		}
	}
	defer func() {
		if release == nil {
			account.Return(size)
		}
	}()
	in := httpserver.NewBody(c.Response(), r, b.Timeout)
	defer in.Close()
	body, err := io.ReadAll(http.MaxBytesReader(c.Response(), in, b.Limit))
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, nil, &Error{
			Status:  http.StatusRequestEntityTooLarge,
			Message: fmt.Sprintf("the request body is larger than %d bytes", tooLarge.Limit),
		}
	}
	if os.IsTimeout(err) {
		return nil, nil, &Error{Status: http.StatusRequestTimeout, Message: "the request body did not arrive in time"}
	}
	if err != nil {
		return nil, nil, BadRequest("the request body could not be read: %v", err)
	}
	return body, func() { account.Return(size) }, nil
}

// DecodeJSON decodes a body into a value, with the errors of ReadJSON.
func DecodeJSON(body []byte, into any) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return BadRequest("the request body is empty, expected %s", expected(into))
	}
	err := json.Unmarshal(body, into)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		line, column := position(body, syntax.Offset)
		return BadRequest("the request body is not valid JSON: %v at line %d, column %d", syntax, line, column)
	}
	if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		what := "the request body"
		if mismatch.Field != "" {
			what = "the field '" + mismatch.Field + "'"
			if hasElements(into, mismatch.Field, mismatch.Type) {
				what = "each value of " + what // the decoder does not report which one
			}
		}
		return &Error{
			Status:  http.StatusUnprocessableEntity,
			Message: fmt.Sprintf("%s must be %s, not %s", what, typeName(mismatch.Type), withArticle(mismatch.Value)),
		}
	}
	if f, ok := errors.AsType[*Error](err); ok { // of a type with its own decoder
		return f
	}
	if err != nil {
		if name := undecodable(body, into); name != "" {
			return Unprocessable("the field '%s' is invalid: %v", name, err)
		}
		return BadRequest("the request body is not valid: %v", err)
	}
	if name, repeated := httpserver.RepeatedKey(body, false); repeated {
		return BadRequest("the request body has the key '%s' twice; only one of the values would take effect", name)
	}
	return CheckFields(body, reflect.TypeOf(into), "")
}

// undecodable returns the JSON name of the first field of a struct whose value the field's own decoder
// rejects, whose errors do not contain the name; "" if there is none at the top level.
func undecodable(body []byte, into any) string {
	t := reflect.TypeOf(into).Elem()
	var values map[string]json.RawMessage
	if t.Kind() != reflect.Struct || json.Unmarshal(body, &values) != nil {
		return ""
	}
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		value, given := values[name]
		if given && json.Unmarshal(value, reflect.New(field.Type).Interface()) != nil {
			return name
		}
	}
	return ""
}

// expected describes the JSON value that decodes into a Go value.
func expected(into any) string {
	if reflect.TypeOf(into).Elem().Kind() == reflect.Slice {
		return "a JSON array"
	}
	return "a JSON object"
}

// hasElements reports whether the named JSON field of a struct is a map or an array of a type.
func hasElements(into any, name string, elem reflect.Type) bool {
	if reflect.TypeOf(into).Elem().Kind() != reflect.Struct {
		return false
	}
	for field := range reflect.TypeOf(into).Elem().Fields() {
		if field.Tag.Get("json") == name {
			kind := field.Type.Kind()
			return (kind == reflect.Map || kind == reflect.Slice) && field.Type.Elem() == elem
		}
	}
	return false
}

// position converts the offset of a JSON syntax error to a line and a column, both from 1. The
// offset counts the bytes read, including the invalid one.
func position(body []byte, offset int64) (line, column int) {
	before := body[:min(max(offset-1, 0), int64(len(body)))]
	line = 1 + bytes.Count(before, []byte{'\n'})
	return line, len(before) - bytes.LastIndexByte(before, '\n')
}

// textual are types that decode from a JSON string, such as units.Duration.
var textual = reflect.TypeFor[encoding.TextUnmarshaler]()

// typeName describes the JSON value that decodes into a Go type.
func typeName(t reflect.Type) string {
	if t.Implements(textual) || reflect.PointerTo(t).Implements(textual) {
		return "a string"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "a boolean"
	case reflect.String:
		return "a string"
	case reflect.Map, reflect.Struct:
		return "an object"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Float64:
		return "a number"
	default:
		return "an integer"
	}
}

// withArticle describes the JSON value that the decoder read, with an article.
func withArticle(value string) string {
	switch value {
	case "bool":
		return "a boolean"
	case "array", "object":
		return "an " + value
	}
	if digits, found := strings.CutPrefix(value, "number "); found && !strings.ContainsAny(digits, ".eE") {
		return digits + ", which is out of range"
	}
	return "a " + value
}
