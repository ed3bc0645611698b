package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"platform/admin/rest"
	"platform/internal/diskspace"
	"platform/internal/errcode"
	"platform/internal/feature"
	"platform/internal/suggest"
	"platform/invoker/discovery"
	"platform/metadata"
)

// internalError is the message for unexpected errors, whose details are logged only.
const internalError = "internal error; see the log of the server for details"

// statusClientClosed is the status of requests whose client has disconnected.
const statusClientClosed = 499

// fail responds with an error unless the response has started.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	if response, ok := w.(*echo.Response); ok && response.Committed {
		s.log.Warn("response truncated", "method", r.Method, "path", r.URL.Path, "err", err)
		return
	}
	f := s.explain(r, err)
	if f.Status == http.StatusMethodNotAllowed {
		f.Message += allowed(w.Header().Get("Allow"))
	}
	rest.WriteError(w, r, f)
}

// explain converts an error to a failure. Unexpected errors are logged and become an internal
// error.
func (s *Server) explain(r *http.Request, err error) *rest.Error {
	if f := explainQuery(err); f != nil {
		return f
	}
	if f, ok := errors.AsType[*rest.Error](err); ok {
		return f
	}
	if rejection, ok := errors.AsType[*Rejection](err); ok {
		return &rest.Error{Status: rejection.Status, Message: rejection.Message}
	}
	if early, ok := errors.AsType[*feature.Error](err); ok {
		return &rest.Error{Status: http.StatusConflict, Message: early.Error()}
	}
	if code, ok := errcode.Of(err); ok {
		return &rest.Error{Status: errcode.Status(err, http.StatusInternalServerError), Code: code, Message: errcode.Text(err), Field: errcode.Field(err)}
	}
	if invalid, ok := errors.AsType[*discovery.InvalidError](err); ok {
		return &rest.Error{Status: invalid.HTTPStatus(), Message: invalid.Error()}
	}
	if invalid, ok := errors.AsType[*metadata.InvalidError](err); ok {
		return &rest.Error{Status: http.StatusBadRequest, Message: invalid.Error()}
	}
	if missing, ok := errors.AsType[*metadata.NotFoundError](err); ok {
		return &rest.Error{Status: http.StatusNotFound, Message: missing.Error()}
	}
	if routed, ok := errors.AsType[*echo.HTTPError](err); ok {
		return s.explainRouting(r, routed)
	}
	switch {
	case errors.Is(err, metadata.ErrRulePrecondition):
		return &rest.Error{Status: http.StatusConflict, Message: err.Error()}
	case errors.Is(err, metadata.ErrTooManyRules):
		return rest.Unprocessable("%v", err)
	case errors.Is(err, metadata.ErrUnavailable):
		return &rest.Error{Status: http.StatusServiceUnavailable, Message: "the metadata has no leader at the moment" + s.fullDisks(r.Context()) + "; nothing was changed, retry later"}
	case errors.Is(err, metadata.ErrUnknownOutcome):
		return &rest.Error{Status: http.StatusServiceUnavailable, Message: "the outcome of the change is unknown" + s.fullDisks(r.Context()) + "; check before you repeat it"}
	case errors.Is(err, ErrUnavailable):
		return &rest.Error{Status: http.StatusServiceUnavailable, Message: err.Error()}
	case errors.Is(err, context.Canceled) && r.Context().Err() != nil:
		return &rest.Error{Status: statusClientClosed, Message: "the client closed the connection"}
	}
	s.log.Error("request failed", "method", r.Method, "path", r.URL.Path, "err", err)
	return &rest.Error{Status: http.StatusInternalServerError, Message: internalError}
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
func (s *Server) explainRouting(r *http.Request, err *echo.HTTPError) *rest.Error {
	f := &rest.Error{Status: err.Code, Message: fmt.Sprint(err.Message)}
	switch err.Code {
	case http.StatusNotFound:
		f.Message = fmt.Sprintf("there is no route %s %s; %s", r.Method, r.URL.Path, s.routeHint(r))
	case http.StatusMethodNotAllowed:
		f.Message = fmt.Sprintf("the method %s is not allowed for %s", r.Method, r.URL.Path)
	}
	return f
}

// routeHint says what an unknown path was probably meant to be.
func (s *Server) routeHint(r *http.Request) string {
	first, _, deeper := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	var names []string
	for _, known := range s.routes() {
		name, _, _ := strings.Cut(strings.TrimPrefix(known.Path, "/"), "/")
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
