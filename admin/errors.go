package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"platform/internal/diskspace"
	"platform/internal/errcode"
	"platform/internal/feature"
	"platform/internal/httpserver"
	"platform/internal/suggest"
	"platform/invoker/discovery"
	"platform/metadata"
)

// internalError is the message for unexpected errors, whose details are logged only.
const internalError = "internal error; see the log of the server for details"

// statusClientClosed is the status of requests whose client has disconnected.
const statusClientClosed = 499

// apiError is an error with the contents of its response.
type apiError struct {
	status  int
	code    errcode.Code // may be empty
	message string
	field   string        // invalid part of the request; may be empty
	retry   bool          // send a Retry-After header
	after   time.Duration // with retry; 0 means 1 s
}

func (f *apiError) Error() string { return f.message }

// errorBody is the body of all error responses.
type errorBody struct {
	Message string        `json:"message"`
	Code    *errcode.Code `json:"platform_code"`
	Field   string        `json:"field,omitempty"` // invalid part of the request, or property
}

func badRequest(format string, args ...any) *apiError {
	return &apiError{status: http.StatusBadRequest, message: fmt.Sprintf(format, args...)}
}

// unprocessable returns a failure for a body with valid syntax but invalid values.
func unprocessable(format string, args ...any) *apiError {
	return &apiError{status: http.StatusUnprocessableEntity, message: fmt.Sprintf(format, args...)}
}

// invalidField returns a failure for an invalid parameter of the path or query, or field of the
// body.
func invalidField(name string, reason error) *apiError {
	return badRequest("The request field '%s' is invalid. Reason: %v", name, reason)
}

// fail responds with an error unless the response has started.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	if response, ok := w.(*echo.Response); ok && response.Committed {
		s.log.Warn("response truncated", "method", r.Method, "path", r.URL.Path, "err", err)
		return
	}
	f := s.explain(r, err)
	if f.status == http.StatusMethodNotAllowed {
		f.message += allowed(w.Header().Get("Allow"))
	}
	body := errorBody{Message: f.message, Field: f.field}
	if f.code != "" {
		body.Code = &f.code
	}
	if f.status == http.StatusRequestEntityTooLarge && r.ProtoMajor == 1 {
		w.Header().Set("Connection", "close") // do not read the rest of the body
	}
	if f.retry {
		w.Header().Set("Retry-After", strconv.Itoa(httpserver.RetryAfter(f.after)))
	}
	writeJSON(w, f.status, body)
}

// explain converts an error to a failure. Unexpected errors are logged and become an internal
// error.
func (s *Server) explain(r *http.Request, err error) *apiError {
	if f, ok := errors.AsType[*apiError](err); ok {
		return f
	}
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		return &apiError{status: refusal.Status, message: refusal.Message}
	}
	if early, ok := errors.AsType[*feature.Error](err); ok {
		return &apiError{status: http.StatusConflict, message: early.Error()}
	}
	if code, ok := errcode.Of(err); ok {
		return &apiError{status: errcode.Status(err, http.StatusInternalServerError), code: code, message: errcode.Text(err), field: errcode.Field(err)}
	}
	if invalid, ok := errors.AsType[*discovery.InvalidError](err); ok {
		return &apiError{status: invalid.HTTPStatus(), message: invalid.Error()}
	}
	if invalid, ok := errors.AsType[*metadata.InvalidError](err); ok {
		return &apiError{status: http.StatusBadRequest, message: invalid.Error()}
	}
	if missing, ok := errors.AsType[*metadata.NotFoundError](err); ok {
		return &apiError{status: http.StatusNotFound, message: missing.Error()}
	}
	if routed, ok := errors.AsType[*echo.HTTPError](err); ok {
		return s.explainRouting(r, routed)
	}
	switch {
	case errors.Is(err, metadata.ErrRulePrecondition):
		return &apiError{status: http.StatusConflict, message: err.Error()}
	case errors.Is(err, metadata.ErrTooManyRules):
		return unprocessable("%v", err)
	case errors.Is(err, metadata.ErrUnavailable):
		return &apiError{status: http.StatusServiceUnavailable, message: "the metadata has no leader at the moment" + s.fullDisks(r.Context()) + "; nothing was changed, retry later"}
	case errors.Is(err, metadata.ErrUnknownOutcome):
		return &apiError{status: http.StatusServiceUnavailable, message: "the outcome of the change is unknown" + s.fullDisks(r.Context()) + "; check before you repeat it"}
	case errors.Is(err, ErrUnavailable):
		return &apiError{status: http.StatusServiceUnavailable, message: err.Error()}
	case errors.Is(err, context.Canceled) && r.Context().Err() != nil:
		return &apiError{status: statusClientClosed, message: "the client closed the connection"}
	}
	s.log.Error("request failed", "method", r.Method, "path", r.URL.Path, "err", err)
	return &apiError{status: http.StatusInternalServerError, message: internalError}
}

// fullDisks names the nodes whose disk is full, which can be the reason why changes of the metadata
// fail; "" if there are none.
func (s *Server) fullDisks(ctx context.Context) string {
	state, err := s.clusterState(ctx)
	if err != nil {
		return ""
	}
	var full []string
	for _, n := range state.Nodes {
		if n.Answers && diskspace.MeansFull(n.Disk) {
			full = append(full, n.Name)
		}
	}
	switch len(full) {
	case 0:
		return ""
	case 1:
		return ": the disk of node " + full[0] + " is full; free space on it"
	}
	return ": the disks of nodes " + strings.Join(full, ", ") + " are full; free space on them"
}

// explainRouting converts an error of the router to a failure.
func (s *Server) explainRouting(r *http.Request, err *echo.HTTPError) *apiError {
	f := &apiError{status: err.Code, message: fmt.Sprint(err.Message)}
	switch err.Code {
	case http.StatusNotFound:
		f.message = fmt.Sprintf("there is no route %s %s; %s", r.Method, r.URL.Path, s.routeHint(r))
	case http.StatusMethodNotAllowed:
		f.message = fmt.Sprintf("the method %s is not allowed for %s", r.Method, r.URL.Path)
	}
	return f
}

// routeHint says what an unknown path was probably meant to be.
func (s *Server) routeHint(r *http.Request) string {
	first, _, deeper := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	var names []string
	for _, known := range s.routes() {
		name, _, _ := strings.Cut(strings.TrimPrefix(known.path, "/"), "/")
		names = append(names, name)
	}
	slices.Sort(names)
	if near := suggest.Nearest(first, slices.Compact(names)); near != "" && near != first {
		return "did you mean /" + near + "? GET /openapi describes the routes"
	}
	if deeper && !slices.Contains(names, first) { // of the form Service/handler
		return "GET /openapi describes the routes. Handlers are called at the ingress, on another port (8080 by default)"
	}
	return "GET /openapi describes the routes"
}

// allowed describes the Allow header that the router has set.
func allowed(header string) string {
	methods := slices.DeleteFunc(strings.Split(header, ", "), func(method string) bool {
		return method == "" || method == http.MethodOptions
	})
	if len(methods) == 0 {
		return ""
	}
	return "; use " + strings.Join(methods, ", ")
}

// encode returns a body as JSON.
func encode(body any) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(body); err != nil {
		panic(fmt.Sprintf("encode %T: %v", body, err)) // cannot fail: only types of this package are encoded
	}
	return buf.Bytes()
}

// writeJSON responds with a JSON body.
func writeJSON(w http.ResponseWriter, status int, body any) {
	data := encode(body)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(data) // fails only if the client has closed the connection
}

// respond responds to a request with a JSON body.
func respond(c echo.Context, status int, body any) error {
	if method := c.Request().Method; status == http.StatusOK && (method == http.MethodGet || method == http.MethodHead) {
		writeVersioned(c.Response(), c.Request(), encode(body))
	} else {
		writeJSON(c.Response(), status, body)
	}
	return nil
}

// queryBool parses a boolean query parameter. A parameter without a value is true.
func queryBool(c echo.Context, name string) (bool, error) { return boolOf(c.QueryParams(), name) }

func boolOf(parameters url.Values, name string) (bool, error) {
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
	return false, badRequest("The query parameter '%s' is invalid: %s is neither true nor false", name, shorten(values[len(values)-1]))
}
