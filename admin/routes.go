package admin

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
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

// route is one entry of the route table.
type route struct {
	method, path string
	permission   access.Permission // required permission
	handle       echo.HandlerFunc
}

func (s *Server) routes() []route {
	list := []route{
		{http.MethodPost, "/deployments", access.Deploy, s.registerDeployment},
		{http.MethodGet, "/deployments", access.View, s.listDeployments},
		{http.MethodGet, "/deployments/:deployment", access.View, s.getDeployment},
		{http.MethodPatch, "/deployments/:deployment", access.Deploy, s.updateDeployment},
		{http.MethodPut, "/deployments/:deployment", access.Deploy, s.updateDeployment},
		{http.MethodDelete, "/deployments/:deployment", access.Deploy, s.deleteDeployment},
		{http.MethodGet, "/services", access.View, s.listServices},
		{http.MethodGet, "/services/:service", access.View, s.getService},
		{http.MethodPatch, "/services/:service", access.Deploy, s.modifyService},
		{http.MethodGet, "/services/:service/openapi", access.View, s.serviceOpenAPI},
		{http.MethodGet, "/services/:service/scopes", access.View, s.listScopes},
		{http.MethodGet, "/services/:service/handlers", access.View, s.listHandlers},
		{http.MethodGet, "/services/:service/handlers/:handler", access.View, s.getHandler},
		{http.MethodGet, "/invocations", access.View, s.listInvocations},
		{http.MethodGet, "/invocations/counts", access.View, s.countInvocations},
		{http.MethodGet, "/invocations/:invocation_id", access.View, s.getInvocation},
		{http.MethodGet, "/invocations/:invocation_id/journal", access.View, s.onInvocation(s.listJournal)},
		{http.MethodGet, "/invocations/:invocation_id/journal/:index", access.View, s.onInvocation(s.getJournalEntry)},
		{http.MethodGet, "/invocations/:invocation_id/journal/:index/payload", access.Payloads, s.onInvocation(s.entryPayload)},
		{http.MethodGet, "/invocations/:invocation_id/events", access.View, s.onInvocation(s.listJournalEvents)},
		{http.MethodGet, "/invocations/:invocation_id/explain", access.View, s.onInvocation(s.explainInvocation)},
		{http.MethodDelete, "/invocations/:invocation_id", access.Operate, s.onInvocation(s.terminate)},
		{http.MethodPatch, "/invocations/:invocation_id/cancel", access.Operate, s.onInvocation(s.cancel)},
		{http.MethodPatch, "/invocations/:invocation_id/kill", access.Operate, s.onInvocation(s.kill)},
		{http.MethodPatch, "/invocations/:invocation_id/pause", access.Operate, s.onInvocation(s.pause)},
		{http.MethodPatch, "/invocations/:invocation_id/resume", access.Operate, s.onInvocation(s.resume)},
		{http.MethodPatch, "/invocations/:invocation_id/purge", access.Operate, s.onInvocation(s.purge)},
		{http.MethodPatch, "/invocations/:invocation_id/purge-journal", access.Operate, s.onInvocation(s.purgeJournal)},
		{http.MethodPatch, "/invocations/:invocation_id/restart-as-new", access.Operate, s.onInvocation(s.restart)},
		{http.MethodPost, "/invocations/:invocation_id/copy", access.Operate, s.onInvocation(s.copyInvocation)},
		{http.MethodPost, batchPath, access.Operate, s.batch},
		{http.MethodGet, "/failures", access.View, s.listFailures},
		{http.MethodGet, "/failures/:group", access.View, s.getFailure},
		{http.MethodPatch, "/failures/:group", access.Operate, s.markFailure},
		{http.MethodPost, "/internal/services/:service/serdes/:operation/:serde", access.Payloads, s.convert},
		{http.MethodPost, statePath, access.Operate, s.updateState},
		{http.MethodGet, statePath, access.Payloads, s.getState},
		{http.MethodGet, "/state-updates/:operation", access.View, s.getStateChange},
		{http.MethodGet, "/objects", access.View, s.listObjects},
		{http.MethodGet, "/objects/:service/:key", access.View, s.getObject},
		{http.MethodGet, "/limits/rules", access.View, s.listRules},
		{http.MethodPut, "/limits/rules", access.Operate, s.putRules},
		{http.MethodPost, "/limits/rules/bulk-delete", access.Operate, s.deleteRules},
		{http.MethodGet, "/limits/counters", access.View, s.listCounters},
		{http.MethodPost, "/limits/scopes/:scope/pause", access.Operate, s.onScope("pause", s.pauseScope)},
		{http.MethodPost, "/limits/scopes/:scope/resume", access.Operate, s.onScope("resume", s.resumeScope)},
		{http.MethodGet, "/limits/rules/:pattern", access.View, s.getRule},
		{http.MethodPut, "/limits/rules/:pattern", access.Operate, s.putRule},
		{http.MethodDelete, "/limits/rules/:pattern", access.Operate, s.deleteRule},
		{http.MethodPost, "/query", access.View, s.runQuery},
		{http.MethodGet, "/query/tables", access.View, s.listTables},
		{http.MethodGet, "/vqueues", access.View, s.listQueues},
		{http.MethodGet, "/vqueues/:vqueue_id", access.View, s.getQueue},
		{http.MethodPost, "/vqueues/:vqueue_id/pause", access.Operate, s.onQueue("pause", s.pauseQueue)},
		{http.MethodPost, "/vqueues/:vqueue_id/resume", access.Operate, s.onQueue("resume", s.resumeQueue)},
		{http.MethodGet, healthPath, access.Public, s.health},
		{http.MethodGet, "/version", access.View, s.version},
		{http.MethodGet, "/openapi", access.Public, s.openAPI},
		{http.MethodGet, "/cluster-health", access.View, s.clusterHealth},
		{http.MethodGet, "/cluster/config", access.View, s.getClusterConfig},
		{http.MethodPatch, "/cluster/config", access.Administer, s.setClusterConfig},
		{http.MethodGet, "/cluster/events", access.View, s.listClusterEvents},
		{http.MethodGet, logLevelsPath, access.View, s.getLogLevels},
		{http.MethodPut, logLevelsPath, access.Administer, s.setLogLevels},
		{http.MethodDelete, logLevelsPath, access.Administer, s.resetLogLevels},
		{http.MethodGet, "/cluster/secrets", access.View, s.getSecrets},
		{http.MethodPost, "/cluster/secrets/rotate", access.Administer, s.rotateSecrets},
		{http.MethodPut, "/cluster/authority", access.Administer, s.putAuthority},
		{http.MethodPost, "/cluster/join-tokens", access.Administer, s.createJoinToken},
		{http.MethodGet, "/cluster/join-tokens", access.Secure, s.listJoinTokens},
		{http.MethodDelete, "/cluster/join-tokens/:join_token", access.Secure, s.revokeJoinToken},
		{http.MethodPost, "/cluster/provision", access.Administer, s.provision},
		{http.MethodGet, "/cluster/nodes", access.View, s.listNodes},
		{http.MethodGet, "/cluster/nodes/:node", access.View, s.getNode},
		{http.MethodDelete, "/cluster/nodes/:node", access.Administer, s.removeNode},
		{http.MethodPatch, "/cluster/nodes/:node/drain", access.Administer, s.drainNode(true)},
		{http.MethodPatch, "/cluster/nodes/:node/undrain", access.Administer, s.drainNode(false)},
		{http.MethodGet, "/cluster/partitions", access.View, s.listPartitions},
		{http.MethodPost, "/cluster/partitions/recover", access.Administer, s.recoverPartitions},
		{http.MethodGet, "/cluster/partitions/:partition", access.View, s.getPartition},
		{http.MethodPatch, "/cluster/partitions/:partition/transfer", access.Administer, s.transferPartition},
		{http.MethodPost, "/jobs", access.Operate, s.createJob},
		{http.MethodGet, "/jobs", access.View, s.listJobs},
		{http.MethodGet, "/jobs/:job", access.View, s.getJob},
		{http.MethodDelete, "/jobs/:job", access.Operate, s.stopJob},
		{http.MethodPost, "/subscriptions", access.Deploy, s.createSubscription},
		{http.MethodGet, "/subscriptions", access.View, s.listSubscriptions},
		{http.MethodGet, "/subscriptions/:subscription", access.View, s.getSubscription},
		{http.MethodPatch, "/subscriptions/:subscription", access.Deploy, s.patchSubscription},
		{http.MethodDelete, "/subscriptions/:subscription", access.Deploy, s.deleteSubscription},
		{http.MethodPost, "/subscriptions/:subscription/pause", access.Operate, s.pauseSubscription},
		{http.MethodPost, "/subscriptions/:subscription/resume", access.Operate, s.resumeSubscription},
		{http.MethodPost, "/subscriptions/:subscription/seek", access.Operate, s.seekSubscription},
		{http.MethodGet, recordPath, access.Payloads, s.getRecord},
		{http.MethodPost, recordPath + "/retry", access.Operate, s.onRecord(s.cfg.Streams.RetryRecord, recordError)},
		{http.MethodPost, recordPath + "/skip", access.Operate, s.onRecord(s.cfg.Streams.SkipRecord, recordError)},
		{http.MethodGet, lettersPath, access.View, s.listDeadLetters},
		{http.MethodPost, lettersPath + "/retry", access.Operate, s.onEachDeadLetter(s.cfg.Streams.RetryDeadLetter)},
		{http.MethodDelete, lettersPath, access.Operate, s.onEachDeadLetter(s.cfg.Streams.DropDeadLetter)},
		{http.MethodGet, lettersPath + letterPath, access.Payloads, s.getDeadLetter},
		{http.MethodPost, lettersPath + letterPath + "/retry", access.Operate, s.onRecord(s.cfg.Streams.RetryDeadLetter, deadLetterError)},
		{http.MethodDelete, lettersPath + letterPath, access.Operate, s.onRecord(s.cfg.Streams.DropDeadLetter, deadLetterError)},
		{http.MethodPost, "/kafka-clusters", access.Deploy, s.createKafkaCluster},
		{http.MethodGet, "/kafka-clusters", access.View, s.listKafkaClusters},
		{http.MethodGet, "/kafka-clusters/:kafka_cluster", access.View, s.getKafkaCluster},
		{http.MethodPatch, "/kafka-clusters/:kafka_cluster", access.Deploy, s.patchKafkaCluster},
		{http.MethodDelete, "/kafka-clusters/:kafka_cluster", access.Deploy, s.deleteKafkaCluster},
		{http.MethodGet, "/stats", access.View, s.getStats},
		{http.MethodGet, eventsPath, access.View, s.streamEvents},
		{http.MethodPost, "/tokens", access.Secure, s.createToken},
		{http.MethodGet, "/tokens", access.Secure, s.listTokens},
		{http.MethodDelete, "/tokens/:token", access.Secure, s.revokeToken},
		{http.MethodGet, loginPath, access.Public, s.loginOptions},
		{http.MethodGet, loginStartPath, access.Public, s.startLogin},
		{http.MethodGet, loginReturnPath, access.Public, s.finishLogin},
		{http.MethodPost, loginTokenPath, access.Public, s.exchangeToken},
		{http.MethodPost, logoutPath, access.Public, s.logout},
		{http.MethodGet, "/whoami", access.Public, s.whoAmI},
		{http.MethodGet, "/audit", access.Secure, s.listAudit},
		{http.MethodGet, "/audit/verification", access.Secure, s.verifyAudit},
		{http.MethodGet, "/errors", access.Public, s.listErrors},
		{http.MethodGet, "/errors/:code", access.Public, s.getError},
	}
	if s.cfg.Metrics != nil {
		list = append(list, route{http.MethodGet, metricsPath, access.Metrics, echo.WrapHandler(s.cfg.Metrics)})
	}
	return list
}

const (
	metricsPath   = "/metrics"
	logLevelsPath = "/cluster/log-levels"
	recordPath    = "/subscriptions/:subscription/records/:topic/:topic_partition/:offset"
	lettersPath   = "/subscriptions/:subscription/dead-letters"
	letterPath    = "/:topic/:topic_partition/:offset"
)

// chooseEncoding replaces Accept-Encoding by the encoding to use: the compression looks for gzip
// anywhere in the header, also where the client refuses it.
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

func (s *Server) newRouter(routes []route) *echo.Echo {
	e := echo.New()
	e.HTTPErrorHandler = func(err error, c echo.Context) { s.fail(c.Response(), c.Request(), err) }
	e.Use(decodeParameters, rejectUnknownQuery, rejectPreconditions, chooseEncoding)
	e.Use(middleware.GzipWithConfig(middleware.GzipConfig{
		MinLength: 1024,
		// The metrics handler compresses responses itself, and events must not be buffered.
		Skipper: func(c echo.Context) bool { return c.Path() == metricsPath || c.Path() == eventsPath },
	}))
	for _, r := range routes {
		methods := []string{r.method}
		if r.method == http.MethodGet {
			methods = append(methods, http.MethodHead)
		}
		handle := s.authorized(r)
		e.Match(methods, r.path, handle)
		if path, ok := strings.CutSuffix(r.path, emptyParameter); ok {
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
		names = append(names, r.method+" "+r.path)
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
	ctx := context.WithValue(r.Context(), versionKey{}, version)
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

type versionKey struct{}

// versionOf returns the API version that a request selects.
func versionOf(c echo.Context) int {
	version, _ := c.Request().Context().Value(versionKey{}).(int)
	return version
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
