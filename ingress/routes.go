package ingress

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"platform/internal/ids"
)

// Methods of routes; joined they are the value of the allow header.
var (
	get     = []string{http.MethodGet}
	post    = []string{http.MethodPost}
	getPost = []string{http.MethodGet, http.MethodPost}
)

// knownMethods are passed to the router, so that a wrong path is distinguished from a wrong
// method; all others are wrong methods.
var knownMethods = []string{
	http.MethodGet, http.MethodPost, http.MethodHead, http.MethodPut, http.MethodPatch, http.MethodDelete,
}

const healthPath = "/health"

// reserved are the prefixes of the routes that are not named after services: the second one is
// known to older clients.
var reserved = []string{"/platform", "/restate"}

// healthPaths are the paths of the health route. Handlers may be called health as well.
var healthPaths = []string{reserved[0] + healthPath, reserved[1] + healthPath}

// routes lists the routes of the ingress. Everything under the reserved prefix exists twice: older
// clients use the legacy name.
func (s *Server) routes() *echo.Echo {
	e := echo.New()
	e.HTTPErrorHandler = func(err error, c echo.Context) { s.fail(c.Response(), c.Request(), err) }
	for _, prefix := range reserved {
		// Calls check the method themselves: an unknown service comes first.
		s.add(e, kindCall, nil, prefix+"/call/*", s.platformCall)
		s.add(e, kindSend, nil, prefix+"/send/*", s.platformSend)
		s.add(e, kindCall, nil, prefix+"/scope/:scope/call/*", s.scoped(false))
		s.add(e, kindSend, nil, prefix+"/scope/:scope/send/*", s.scoped(true))

		s.add(e, kindUncounted, get, prefix+healthPath, s.health)
		s.add(e, kindOther, post, prefix+"/lookup", s.lookup)
		s.add(e, kindAttach, nil, prefix+"/attach", s.byBodyOrID(s.attach))
		s.add(e, kindOutput, nil, prefix+"/output", s.byBodyOrID(s.output))
		for _, form := range []string{"/awakeables/", "/a/"} {
			s.add(e, kindAwakeable, post, prefix+form+":id/resolve", s.resolveAwakeable)
			s.add(e, kindAwakeable, post, prefix+form+":id/reject", s.rejectAwakeable)
		}
		s.add(e, kindSignal, post, prefix+"/invocation/:id/signal/:name/resolve", s.signal(resolved))
		s.add(e, kindSignal, post, prefix+"/invocation/:id/signal/:name/reject", s.signal(rejected))
		for verb, handle := range map[string]resultHandler{"attach": s.attach, "output": s.output} {
			as := kindAttach
			if verb == "output" {
				as = kindOutput
			}
			s.add(e, as, get, prefix+"/"+verb+"/:id", byID(handle))
			s.add(e, as, get, prefix+"/invocation/:id/"+verb, byID(handle))
			s.add(e, as, get, prefix+"/invocation/:service/:handler/:idempotency/"+verb, s.byIdempotencyKey(handle))
			s.add(e, as, get, prefix+"/invocation/:service/:key/:handler/:idempotency/"+verb, s.byIdempotencyKey(handle))
			s.add(e, as, get, prefix+"/workflow/:service/:key/"+verb, s.byWorkflow(handle))
		}
		s.add(e, kindOther, nil, prefix+"/*", notFound)
	}
	s.add(e, kindOther, nil, "/openapi/*", notFound)
	s.add(e, kindCall, nil, "/*", s.unprefixedCall)
	return e
}

// add registers a handler for a path, whose requests count as a kind. Methods other than the given
// ones are rejected, unless methods is nil: then the handler gets all of them. Limits and credentials
// apply to all but the health route, which must respond even under overload.
func (s *Server) add(e *echo.Echo, as kind, methods []string, path string, handler echo.HandlerFunc) {
	serve := s.checked(as, methods, handler)
	if !strings.HasSuffix(path, healthPath) {
		serve = s.guarded(as, serve)
	}
	e.Match(knownMethods, path, func(c echo.Context) (err error) {
		countAs(c.Response().Writer, as)
		defer func() {
			if v := recover(); v != nil {
				err = s.recovered(c, v)
			}
			s.countRejected(c, err)
		}()
		return serve(c)
	})
}

// guarded rejects requests beyond the limits and requests without permission.
func (s *Server) guarded(as kind, serve echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if limit := s.cfg.ConcurrentRequests; limit > 0 {
			defer s.active.Add(-1)
			if s.active.Add(1) > limit {
				return tooManyRequests(limit)
			}
		}
		s.identify(c)
		client, taken := s.shares.Take(c.Request())
		if !taken {
			return tooManyOfClient(s.shares.Size(), s.cfg.ConcurrentRequests)
		}
		defer s.shares.Give(client)
		if exceeded, after := s.cfg.Quotas.Admit(c.Request()); exceeded != "" {
			return quotaExceeded(exceeded, after)
		}
		if err := s.authorizeRoute(c, as); err != nil {
			return err
		}
		return serve(c)
	}
}

// checked rejects requests that the route does not have, and reports completed ones.
func (s *Server) checked(as kind, methods []string, handler echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if methods != nil && !slices.Contains(methods, c.Request().Method) {
			return methodNotAllowed(c.Request().Method, methods)
		}
		if s.draining.Load() && c.Request().ProtoMajor == 1 {
			// The next request on this connection would fail, since the server stops.
			c.Response().Header().Set("Connection", "close")
		}
		if err := checkQuery(c.Request().URL, as); err != nil {
			return err
		}
		if err := handler(c); err != nil {
			return err
		}
		if as != kindUncounted && as != kindOther {
			s.completed(c.Request().Context())
		}
		return nil
	}
}

// checkQuery rejects query parameters of requests for results, which would have no effect. Handlers get
// those of calls and sends, and the senders of webhooks may add some to those for awakeables and signals.
func checkQuery(u *url.URL, as kind) error {
	if u.RawQuery == "" || as != kindAttach && as != kindOutput {
		return nil
	}
	for name := range u.Query() {
		if name != callbackParameter { // which is rejected as such
			return badRequest("unknown query parameter '%s'; there are none here", name)
		}
	}
	return nil
}

// recovered turns a panic of a handler into an error response. If the handler has already written a
// part of its response, the connection is closed, so that the response does not look complete.
func (s *Server) recovered(c echo.Context, v any) error {
	if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(v)
	}
	s.requestLog(c.Response(), c.Request(), ids.Invocation{}).Error("handler panicked", "err", fmt.Sprint(v), "stack", string(debug.Stack()))
	if c.Response().Committed {
		panic(http.ErrAbortHandler)
	}
	return &problem{status: http.StatusInternalServerError, message: "internal error"}
}

// serve handles every request.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if m := s.cfg.Metrics; m != nil {
		m.counted(w, r, s.dispatch)
		return
	}
	s.dispatch(w, r)
}

// dispatch performs the checks that apply to all requests, and then calls the router.
func (s *Server) dispatch(w http.ResponseWriter, r *http.Request) {
	returnRequestID(w.Header(), r.Header)
	if err := s.admit(w.Header(), r); err != nil {
		countAs(w, kindUncounted)
		s.fail(w, r, err)
		return
	}
	if r.Method == http.MethodOptions {
		countAs(w, kindUncounted)
		s.preflight(w, r)
		return
	}
	if !slices.Contains(knownMethods, r.Method) {
		s.fail(w, r, methodNotAllowed(r.Method, getPost))
		return
	}
	r = trimSlash(r)
	if n := strings.Count(echo.GetPath(r), "/"); n < 2 || n > 7 {
		length := "short"
		if n > 7 {
			length = "long"
		}
		s.fail(w, r, badRequest("bad path: '%s' is too %s; paths are /{service}[/{key}]/{handler}[/send] or start with /platform/%s", r.URL.Path, length, otherPort(r)))
		return
	}
	s.router.ServeHTTP(w, r)
}

// trimSlash returns the request without a slash at the end of its path.
func trimSlash(r *http.Request) *http.Request {
	if !strings.HasSuffix(r.URL.Path, "/") || len(r.URL.Path) == 1 {
		return r
	}
	trimmed, u := *r, *r.URL
	raw, encoded := strings.CutSuffix(u.RawPath, "/")
	if u.RawPath != "" && !encoded {
		return r // the slash is an encoded one and part of the last segment
	}
	u.Path, u.RawPath = strings.TrimSuffix(u.Path, "/"), raw
	trimmed.URL = &u
	return &trimmed
}

func (s *Server) health(c echo.Context) error {
	if s.draining.Load() {
		return &problem{status: http.StatusServiceUnavailable, message: "the server is shutting down"}
	}
	if err := s.cfg.Ready(); err != nil {
		return &problem{status: http.StatusServiceUnavailable, message: err.Error()}
	}
	// Anyone may ask whether the server is ready, but learns only of services that it may call.
	p := s.cfg.Authenticator.Identify(c.Request())
	schemas := s.registry.Schemas()
	names := make([]string, 0, len(schemas.Services))
	for name, svc := range schemas.Services {
		if isPublic(svc.Options) && s.maySee(p, svc) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return writeJSON(c.Response(), http.StatusOK, healthBody{Services: names})
}

type healthBody struct {
	Services []string `json:"services"`
}

func notFound(c echo.Context) error {
	return noRoute(c.Request())
}

// unescape decodes a segment of a URL's path, unless it is already decoded: the router uses the raw
// path if decoding would lose information.
func unescape(segment string, u *url.URL) (string, error) {
	if u.RawPath != "" {
		var err error
		if segment, err = url.PathUnescape(segment); err != nil {
			return "", badRequest("bad path: cannot decode the segment '%s'", segment)
		}
	}
	return checkText(segment)
}
