package ingress

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"platform/internal/access"
	"platform/internal/budget"
	"platform/internal/cluster/routing"
	"platform/internal/errcode"
	"platform/internal/httpserver"
	"platform/internal/ids"
)

// Statuses that the standard library has no names for.
const (
	statusNotReady     = 470 // the result of the invocation is not available yet
	statusClientClosed = 499 // the client has disconnected
)

// Values of the error source header: the origin of the error. Clients do not retry a request that
// failed with the error of an invocation.
const (
	fromIngress    = "ingress"
	fromInvocation = "invocation"
)

// errStopping is the cause of the cancellation of requests at the end of the drain.
var errStopping = errors.New("the server is shutting down")

// problem is an error of the ingress itself, ready to be sent.
type problem struct {
	status  int
	message string
	allow   string         // allow header, with 405
	retry   bool           // send a Retry-After header
	after   time.Duration  // with retry; 0 means 1 s
	code    errcode.Code   // may be empty
	id      ids.Invocation // may be zero
	cause   error          // of a server error; logged only
}

func (p *problem) Error() string { return p.message }

func badRequest(format string, args ...any) error {
	return &problem{status: http.StatusBadRequest, message: fmt.Sprintf(format, args...)}
}

// coded is badRequest for an error that has a code, which also begins the message.
func coded(code errcode.Code, format string, args ...any) *problem {
	return &problem{status: http.StatusBadRequest, code: code, message: fmt.Sprintf("[%s] %s", code, fmt.Sprintf(format, args...))}
}

func methodNotAllowed(method string, allowed []string) error {
	list := strings.Join(allowed, ", ")
	return &problem{
		status:  http.StatusMethodNotAllowed,
		message: fmt.Sprintf("method %s is not allowed here, use %s", method, list),
		allow:   list,
	}
}

func tooManyRequests(limit int64) error {
	return &problem{
		status:  http.StatusTooManyRequests,
		message: fmt.Sprintf("more than %d requests are in progress (ingress.concurrent-api-requests-limit); the request had no effect and can be retried safely", limit),
		retry:   true,
	}
}

// tooManyOfClient is the response to a client that has its share of the requests in progress.
func tooManyOfClient(share, limit int64) error {
	return &problem{
		status: http.StatusTooManyRequests,
		message: fmt.Sprintf("the client has %d requests in progress, and the rest of %d (ingress.concurrent-api-requests-limit) is for other clients; the request had no effect and can be retried safely",
			share, limit),
		retry: true,
	}
}

// quotaKeys are the settings of quotas.
var quotaKeys = map[access.Quota]string{access.QuotaRequests: "principal-requests-per-second", access.QuotaBytes: "principal-bytes-per-second"}

func quotaExceeded(q access.Quota, after time.Duration) error {
	return &problem{
		status:  http.StatusTooManyRequests,
		message: fmt.Sprintf("the client has sent more %s than its quota permits (ingress.%s); the request had no effect and can be retried safely", q, quotaKeys[q]),
		retry:   true,
		after:   after,
	}
}

func bodyTooLarge(limit int64) error {
	return &problem{
		status:  http.StatusRequestEntityTooLarge,
		message: fmt.Sprintf("the request body is larger than %d bytes (ingress.request-size-limit)", limit),
	}
}

func outOfMemory(account *budget.Account) error {
	return &problem{
		status: http.StatusServiceUnavailable, retry: true, after: account.RetryAfter(), code: errcode.RT0026,
		message: "not enough memory for the body of the request or its response besides those in progress (networking.body-memory-limit, networking.connection-body-memory-limit); the request had no effect and can be retried safely",
	}
}

// noRoomForResult is the response to a call if there was no memory for its result.
func noRoomForResult(id ids.Invocation, account *budget.Account, repeatable bool) error {
	return &problem{
		status: http.StatusServiceUnavailable, id: id, retry: repeatable, after: account.RetryAfter(), code: errcode.RT0026,
		message: "the invocation has ended, but there was not enough memory for its result besides those in progress (networking.body-memory-limit, networking.connection-body-memory-limit); read it with /platform/attach/" + id.String(),
	}
}

// invocationProblem converts an error of Invocations to the response to a request about an invocation.
// Repeatable means that repeating the request finds the same invocation.
func invocationProblem(ctx context.Context, err error, id ids.Invocation, repeatable bool) error {
	switch {
	case errors.Is(err, routing.ErrNotFound):
		return &problem{status: http.StatusNotFound, message: routing.ErrNotFound.Error()}
	case errors.Is(err, routing.ErrNotReady):
		return &problem{status: statusNotReady, message: routing.ErrNotReady.Error(), id: id}
	case errors.Is(err, routing.ErrTooLarge):
		return &problem{status: http.StatusRequestEntityTooLarge, message: routing.ErrTooLarge.Error() + " (networking.message-size-limit); it had no effect, send less"}
	case errors.Is(err, routing.ErrEnded):
		return &problem{status: http.StatusConflict, message: routing.ErrEnded.Error(), id: id}
	case errors.Is(err, routing.ErrSignalsFull):
		return &problem{status: http.StatusConflict, message: routing.ErrSignalsFull.Error(), id: id}
	case errors.Is(context.Cause(ctx), errStopping):
		return unavailable("the server is shutting down", id, repeatable)
	case ctx.Err() != nil:
		return &problem{status: statusClientClosed, message: "the client disconnected; the invocation continues", id: id}
	}
	if full, ok := errors.AsType[*routing.QueueFullError](err); ok {
		return &problem{
			status: http.StatusTooManyRequests, retry: true,
			message: full.Error() + "; the request had no effect and can be retried safely",
		}
	}
	if down, ok := errors.AsType[*routing.UnavailableError](err); ok {
		return unavailable("the partition of the invocation is "+down.Error(), id, repeatable || down.SafeToRetry)
	}
	return &problem{status: http.StatusInternalServerError, message: "internal error; whether the request took effect is unknown", id: id, cause: err}
}

func unavailable(why string, id ids.Invocation, safe bool) error {
	p := &problem{status: http.StatusServiceUnavailable, retry: safe, id: id}
	if safe {
		p.message = why + "; the request can be retried safely"
	} else {
		p.message = why + "; whether the request took effect is unknown, so a retry may have a second effect: get the result from /platform/attach/" + id.String() + ", or send requests with an idempotency key"
	}
	return p
}

// fail responds to a request with an error.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	p, ok := errors.AsType[*problem](err)
	if !ok {
		p = problemOf(r, err)
	}
	if p.cause != nil {
		s.requestLog(w, r, p.id).Error("request failed", "err", p.cause)
	}
	h := w.Header()
	if !p.id.IsZero() {
		setID(h, p.id)
	}
	setSource(h, fromIngress)
	if p.status == http.StatusUnauthorized {
		h["Www-Authenticate"] = []string{`Bearer realm="platform"`}
	}
	if p.allow != "" {
		h["Allow"] = []string{p.allow}
	}
	if p.retry {
		h["Retry-After"] = []string{strconv.Itoa(httpserver.RetryAfter(p.after))}
	}
	switch {
	case r.ContentLength == 0:
	case r.ProtoMajor == 1:
		s.abandonBody(w, p)
	case p.status != http.StatusRequestTimeout && p.code != errcode.RT0026: // reading the rest would need more memory
		s.skipStream(w, r)
	}
	_ = writeJSON(w, p.status, errorBody{Code: p.status, Message: httpserver.Abridge(r, p.message), Source: fromIngress, Platform: p.code})
}

// problemOf converts an error of the router or an unexpected error to a problem.
func problemOf(r *http.Request, err error) *problem {
	if routed, ok := errors.AsType[*echo.HTTPError](err); ok && routed.Code == http.StatusNotFound {
		return noRoute(r)
	}
	return &problem{status: http.StatusInternalServerError, message: "internal error", cause: err}
}

// errorBody is the format of all errors, of the ingress and of invocations.
type errorBody struct {
	Code     int               `json:"code"`
	Message  string            `json:"message"`
	Source   string            `json:"source"`
	Platform errcode.Code      `json:"platform_code,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"`
}

// unhandledProblem formats an error that the HTTP server finds before the router.
func unhandledProblem(status int, code, message string) (http.Header, []byte) {
	header := http.Header{}
	setSource(header, fromIngress)
	text, _ := json.Marshal(errorBody{Code: status, Message: message, Source: fromIngress, Platform: errcode.Code(code)}) // strings and a number only
	return header, text
}
