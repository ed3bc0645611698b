package admin

import (
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"platform/admin/rest"
	"platform/admin/ui"
	"platform/internal/access"
	"platform/internal/httpserver"
)

// Versions of the admin API. Routes without a version prefix behave as in the newest version.
const (
	minVersion = 2
	maxVersion = 4
)

func (s *Server) routes() []rest.Route {
	list := slices.Concat(s.deployments.Routes(), []rest.Route{
		rest.Get("/services/:service/scopes", access.View, s.listScopes),
		rest.Get("/invocations", access.View, s.listInvocations),
		rest.Get("/invocations/counts", access.View, s.countInvocations),
		rest.Get("/awakeables", access.View, s.listAwakeables),
		rest.Get("/invocations/:invocation_id", access.View, s.getInvocation),
		rest.Get("/invocations/:invocation_id/journal", access.View, s.onInvocation(s.listJournal)),
		rest.Get("/invocations/:invocation_id/journal/:index", access.View, s.onInvocation(s.getJournalEntry)),
		rest.Get("/invocations/:invocation_id/journal/:index/payload", access.Payloads, s.onInvocation(s.entryPayload)),
		rest.Get("/invocations/:invocation_id/events", access.View, s.onInvocation(s.listJournalEvents)),
		rest.Get("/invocations/:invocation_id/explain", access.View, s.onInvocation(s.explainInvocation)),
		rest.Delete("/invocations/:invocation_id", access.Operate, s.onInvocation(s.terminate)),
		rest.Patch("/invocations/:invocation_id/cancel", access.Operate, s.onInvocation(s.cancel)),
		rest.Patch("/invocations/:invocation_id/kill", access.Operate, s.onInvocation(s.kill)),
		rest.Patch("/invocations/:invocation_id/pause", access.Operate, s.onInvocation(s.pause)),
		rest.Patch("/invocations/:invocation_id/resume", access.Operate, s.onInvocation(s.resume)),
		rest.Patch("/invocations/:invocation_id/purge", access.Operate, s.onInvocation(s.purge)),
		rest.Patch("/invocations/:invocation_id/purge-journal", access.Operate, s.onInvocation(s.purgeJournal)),
		rest.Patch("/invocations/:invocation_id/restart-as-new", access.Operate, s.onInvocation(s.restart)),
		rest.Post("/invocations/:invocation_id/copy", access.Operate, s.onInvocation(s.copyInvocation)),
		rest.Post(batchPath, access.Operate, s.batch),
		rest.Get("/failures", access.View, s.listFailures),
		rest.Get("/failures/:group", access.View, s.getFailure),
		rest.Patch("/failures/:group", access.Operate, s.markFailure),
		rest.Post(statePath, access.Operate, s.updateState),
		rest.Get(statePath, access.Payloads, s.getState),
		rest.Get("/state-updates/:operation", access.View, s.getStateChange),
		rest.Get("/objects", access.View, s.listObjects),
		rest.Get("/objects/:service/:key", access.View, s.getObject),
		rest.Post("/query", access.View, s.runQuery),
		rest.Get("/query/tables", access.View, s.listTables),
		rest.Get(healthPath, access.Public, s.health),
		rest.Get("/version", access.View, s.version),
		rest.Get("/openapi", access.Public, s.openAPI),
		rest.Get("/cluster-health", access.View, s.clusterHealth),
		rest.Get("/cluster/config", access.View, s.getClusterConfig),
		rest.Patch("/cluster/config", access.Administer, s.setClusterConfig),
		rest.Get("/cluster/events", access.View, s.listClusterEvents),
		rest.Get(logLevelsPath, access.View, s.getLogLevels),
		rest.Put(logLevelsPath, access.Administer, s.setLogLevels),
		rest.Delete(logLevelsPath, access.Administer, s.resetLogLevels),
		rest.Get("/cluster/secrets", access.View, s.getSecrets),
		rest.Post("/cluster/secrets/rotate", access.Administer, s.rotateSecrets),
		rest.Post("/cluster/provision", access.Administer, s.provision),
		rest.Get("/cluster/nodes", access.View, s.listNodes),
		rest.Get("/cluster/nodes/:node", access.View, s.getNode),
		rest.Delete("/cluster/nodes/:node", access.Administer, s.removeNode),
		rest.Patch("/cluster/nodes/:node/drain", access.Administer, s.drainNode(true)),
		rest.Patch("/cluster/nodes/:node/undrain", access.Administer, s.drainNode(false)),
		rest.Get("/cluster/partitions", access.View, s.listPartitions),
		rest.Post("/cluster/partitions/recover", access.Administer, s.recoverPartitions),
		rest.Get("/cluster/partitions/:partition", access.View, s.getPartition),
		rest.Patch("/cluster/partitions/:partition/transfer", access.Administer, s.transferPartition),
		rest.Post("/jobs", access.Operate, s.createJob),
		rest.Get("/jobs", access.View, s.listJobs),
		rest.Get("/jobs/:job", access.View, s.getJob),
		rest.Delete("/jobs/:job", access.Operate, s.stopJob),
		rest.Get("/stats", access.View, s.getStats),
		rest.Get(eventsPath, access.View, s.streamEvents),
		rest.Get("/audit", access.Secure, s.listAudit),
		rest.Get("/audit/verification", access.Secure, s.verifyAudit),
		rest.Get("/errors", access.Public, s.listErrors),
		rest.Get("/errors/:code", access.Public, s.getError),
	}, s.flow.Routes(), s.subscriptions.Routes(), s.tokens.Routes())
	if s.cfg.Metrics != nil {
		list = append(list, rest.Get(metricsPath, access.Metrics, echo.WrapHandler(s.cfg.Metrics)))
	}
	return list
}

const (
	metricsPath   = "/metrics"
	logLevelsPath = "/cluster/log-levels"
)

// chooseEncoding replaces Accept-Encoding by the encoding to use: the compression looks for gzip
// anywhere in the header, also where the client rejects it.
func chooseEncoding(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if r := c.Request(); c.Path() != metricsPath { // whose handler knows other encodings
			chosen := "identity"
			if httpserver.AcceptsGzip(r.Header) {
				chosen = "gzip"
			}
			r.Header.Set("Accept-Encoding", chosen)
		}
		return next(c)
	}
}

func (s *Server) newRouter(routes []rest.Route) *echo.Echo {
	e := echo.New()
	e.HTTPErrorHandler = func(err error, c echo.Context) { s.fail(c.Response(), c.Request(), err) }
	e.Use(decodeParameters, rejectUnknownQuery, rejectPreconditions, chooseEncoding)
	e.Use(middleware.GzipWithConfig(middleware.GzipConfig{
		MinLength: 1024,
		// The metrics handler compresses responses itself, and events must not be buffered.
		Skipper: func(c echo.Context) bool { return c.Path() == metricsPath || c.Path() == eventsPath },
	}))
	for _, r := range routes {
		methods := []string{r.Method}
		if r.Method == http.MethodGet {
			methods = append(methods, http.MethodHead)
		}
		handle := s.authorized(r)
		e.Match(methods, r.Path, handle)
		if path, ok := strings.CutSuffix(r.Path, emptyParameter); ok {
			e.Match(methods, path, handle)
		}
	}
	e.GET("/", s.root)
	return e
}

const (
	// slashParameter is the path parameter that may contain slashes: patterns of rules are often
	// written with unescaped ones.
	slashParameter = "pattern"
	// emptyParameter is the last path parameter that may be empty: objects can have an empty key.
	emptyParameter = ":key"
)

// decodeParameters decodes the path parameters and requires each to be one nonempty segment. The
// router accepts an empty last parameter of some paths and one with slashes; only slashParameter
// may have slashes.
func decodeParameters(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		values := c.ParamValues()
		for i, value := range values {
			if value == "" || strings.Contains(value, "/") && c.ParamNames()[i] != slashParameter {
				return echo.ErrNotFound
			}
			if c.Request().URL.RawPath == "" {
				continue
			}
			decoded, err := url.PathUnescape(value)
			if err != nil {
				return rest.BadRequest("the path is invalid: %v", err)
			}
			values[i] = decoded
		}
		return next(c)
	}
}

// root responds to requests without a path with the list of routes.
func (s *Server) root(echo.Context) error {
	var names []string
	for _, r := range s.routes() {
		names = append(names, r.Method+" "+r.Path)
	}
	return &rest.Error{Status: http.StatusNotFound, Message: "this is the admin API; its routes are " + strings.Join(names, ", ")}
}

// serve runs before the router. It handles the version prefix, the limit of concurrent requests,
// cross-site requests, the web UI, authentication, and panics.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	defer s.recoverPanic(w, r)
	if limit := s.cfg.Limits.ConcurrentRequests; limit > 0 {
		defer s.active.Add(-1)
		if s.active.Add(1) > limit {
			s.fail(w, r, &rest.Error{
				Status:  http.StatusTooManyRequests,
				Message: fmt.Sprintf("more than %d requests are in progress (admin.concurrent-api-requests-limit)", limit),
			})
			return
		}
	}
	version, prefix := versionPrefix(r.URL.Path)
	if prefix != "" && (version < minVersion || version > maxVersion) {
		s.fail(w, r, rest.BadRequest("Unsupported Admin API version %s; this server supports v%d to v%d", prefix[1:], minVersion, maxVersion))
		return
	}
	if prefix != "" {
		r = withoutPrefix(r, prefix)
	}
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if err := s.admit(r); err != nil {
		s.fail(w, r, err)
		return
	}
	if s.ui != nil && ui.Serves(r) {
		s.ui.ServeHTTP(w, r)
		return
	}
	ctx := rest.WithVersion(r.Context(), version)
	if p, err := s.cfg.Authenticator.Authenticate(r); err == nil {
		ctx = access.With(ctx, p)
	}
	r = r.WithContext(ctx)
	client := access.ClientOf(r)
	if path := r.URL.Path; path != healthPath && path != eventsPath { // streams have a share of their own
		if _, taken := s.shares.Take(r); !taken {
			s.fail(w, r, &rest.Error{Status: http.StatusTooManyRequests, Retry: true, Message: fmt.Sprintf(
				"the client has %d requests in progress, and the rest of %d (admin.concurrent-api-requests-limit) is for other clients", s.shares.Size(), s.cfg.Limits.ConcurrentRequests)})
			return
		}
		defer s.shares.Give(client)
	}
	s.router.ServeHTTP(w, r.WithContext(access.WithClient(ctx, client)))
}

// recoverPanic responds to a request whose handler panicked. The stack trace is only logged.
func (s *Server) recoverPanic(w http.ResponseWriter, r *http.Request) {
	switch p := recover(); p {
	case nil:
	case http.ErrAbortHandler:
		panic(p)
	default:
		s.log.Error("request panicked", "method", r.Method, "path", r.URL.Path, "err", fmt.Sprint(p), "stack", string(debug.Stack()))
		s.fail(w, r, &rest.Error{Status: http.StatusInternalServerError, Message: internalError})
	}
}

// versionPrefix returns the version prefix of a path, such as /v3, and its version. Without a
// prefix, the newest version applies.
func versionPrefix(path string) (version int, prefix string) {
	if len(path) < 3 || path[:2] != "/v" || path[2] < '0' || path[2] > '9' || (len(path) > 3 && path[3] != '/') {
		return maxVersion, ""
	}
	return int(path[2] - '0'), path[:3]
}

// withoutPrefix returns a copy of a request without a prefix of the path.
func withoutPrefix(r *http.Request, prefix string) *http.Request {
	stripped, u := *r, *r.URL
	u.Path = orRoot(strings.TrimPrefix(u.Path, prefix))
	if u.RawPath != "" {
		u.RawPath = orRoot(strings.TrimPrefix(u.RawPath, prefix))
	}
	stripped.URL = &u
	return &stripped
}

func orRoot(path string) string {
	if path == "" {
		return "/"
	}
	return path
}
