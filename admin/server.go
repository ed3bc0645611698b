package admin

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

	"platform/admin/deployments"
	"platform/admin/events"
	"platform/admin/flow"
	"platform/admin/query"
	"platform/admin/rest"
	"platform/admin/subscriptions"
	"platform/admin/tokens"
	"platform/admin/ui"
	"platform/internal/access"
	"platform/internal/access/oidc"
	"platform/internal/feature"
	"platform/internal/ids"
	"platform/internal/subscription"
	"platform/invoker/discovery"
	"platform/metadata"
)

// Registry is the metadata of the cluster. A change is visible to readers when the method that made
// it returns. Each part is declared in the file of its routes.
type Registry interface {
	deployments.Registry
	flow.Registry
	jobRegistry
	failureMarkRegistry
	tokens.Registry
	auditLog
	subscriptions.Registry
	secretRegistry
	memberRegistry
}

var (
	_ Registry               = (*metadata.Store)(nil)
	_ deployments.Discoverer = (*discovery.Discoverer)(nil)
)

// Limits bound what clients send, and how much of it is stored. Zero values select the default in
// parentheses.
type Limits struct {
	// body limits request bodies, in bytes (4 MiB).
	body int64
	// bodyTimeout is the time that a client has for each 64 KiB of a body (30 s).
	bodyTimeout time.Duration
	// ConcurrentRequests limits the requests in progress; others are rejected with status 429
	// (unlimited).
	ConcurrentRequests int64
	// Deployments limits their number, and Services that of the services of one (unlimited).
	Deployments, Services int
	// Subscriptions and KafkaClusters limit the numbers of event subscriptions and of the Kafka
	// clusters that are added to those of the configuration (what the metadata can store).
	Subscriptions, KafkaClusters int
	// StateSize limits an object's state, as limits.StateEntry counts it (unlimited).
	StateSize int64
}

// Build describes the program.
type Build struct {
	Version, Commit, Toolchain string
	// Level is the highest feature level that it supports.
	Level feature.Level
}

// Ingress is where clients reach the ingress.
type Ingress struct {
	// Endpoint is the address as reported to clients (the host of the request, with Port and TLS).
	Endpoint string
	// Port is the port of the ingress (8080).
	Port int
	// TLS is set if it uses TLS.
	TLS bool
}

// Config is the configuration of the admin API. Zero values select the default in parentheses.
type Config struct {
	Limits  Limits
	Build   Build
	Ingress Ingress
	// RoutingHeaders are additional headers whose values distinguish deployments at the same
	// address (none).
	RoutingHeaders []string
	// Features maps the optional parts of the server to whether they are enabled (none).
	Features map[string]bool
	// Defaults returns the server's values for options that services do not set. It is called for
	// each request; the values may change (metadata.StandardDefaults).
	Defaults func() *metadata.Defaults
	// FlowControl allows scopes of objects.
	FlowControl bool
	// AwaitRules returns when the partitions led by this node have this version of the rule book or
	// a newer one, or when ctx ends (responses do not wait).
	AwaitRules func(ctx context.Context, version uint32)
	// Streams provides the state of the event streams of the cluster (none).
	Streams subscriptions.Streams
	// KafkaClusters are the Kafka clusters of the configuration (none).
	KafkaClusters []subscription.Cluster
	// now returns the current time (time.Now).
	now func() time.Time
	// Query runs SQL queries (its routes respond with status 503).
	Query *query.Engine
	// SecurityMode is security.mode, which GET /whoami returns.
	SecurityMode string
	// NodeTLS is how this node authenticates others.
	NodeTLS tokens.NodeTLS
	// AuditReads records reads of payloads in the audit log.
	AuditReads bool
	// Node is the name of this node, for the audit log.
	Node string
	// Authenticator authenticates requests (all requests have all permissions).
	Authenticator *access.Authenticator
	// Login is the identity provider at which users log in (none).
	Login *oidc.Provider
	// SessionLifetime is how long a login is valid (8 h).
	SessionLifetime time.Duration
	// Guard validates the Host header of requests (no validation).
	Guard *access.Guard
	// AllowedOrigins are other origins whose pages may send requests that change something (none).
	AllowedOrigins []string
	// Metrics serves /metrics (the route does not exist).
	Metrics http.Handler
	// DisableUI disables the web UI.
	DisableUI bool
	// discoveryTimeout limits a discovery request (30 s).
	discoveryTimeout time.Duration
	// Ready returns an error with the reason if the node should not receive requests. Each health
	// check calls it, so it must be fast (always ready).
	Ready func() error
	// Stopping is closed before the server stops, so that event streams end (never).
	Stopping <-chan struct{}
	// Logger receives log records (slog.Default).
	Logger *slog.Logger
}

// Server serves the admin API.
type Server struct {
	cfg           Config
	registry      Registry
	invocations   Invocations
	cluster       Cluster
	bodies        rest.BodyReader
	log           *slog.Logger
	router        *echo.Echo
	ui            *ui.Handler // nil if disabled
	active        atomic.Int64
	shares        *access.Shares // of active
	quiet         quietRequests
	crossOrigin   *http.CrossOriginProtection
	hub           *events.Hub
	deployments   *deployments.Server
	flow          *flow.Server
	subscriptions *subscriptions.Server
	tokens        *tokens.Server

	described   sync.Once // covers description, the OpenAPI document
	description object
}

// New returns a server.
func New(cfg Config, registry Registry, discoverer deployments.Discoverer, invocations Invocations, cluster Cluster) *Server {
	cfg = cfg.withDefaults()
	s := &Server{cfg: cfg, registry: registry, invocations: invocations, cluster: cluster, log: cfg.Logger}
	s.bodies = rest.BodyReader{Limit: cfg.Limits.body, Timeout: cfg.Limits.bodyTimeout}
	s.hub = events.NewHub(events.Config{
		MaxSubscriptions: maxStreams, MaxSources: maxSources, MaxClientSubscriptions: maxClientStreams, MaxClientSources: maxClientSources,
		ReadTimeout: topicReadTimeout,
	})
	s.deployments = deployments.New(deployments.Config{
		Registry: registry, Discoverer: discoverer, InUse: func(ctx context.Context, id ids.Deployment) (int, error) { return invocations.InUse(ctx, id) },
		Bodies: s.bodies, MaxDeployments: cfg.Limits.Deployments, MaxServices: cfg.Limits.Services, RoutingHeaders: cfg.RoutingHeaders,
		Defaults: cfg.Defaults, SecurityMode: cfg.SecurityMode, RequireSharedKey: s.requireSharedKey, DiscoveryTimeout: cfg.discoveryTimeout,
		IngressEndpoint: s.ingressEndpoint, Logger: cfg.Logger,
	})
	s.flow = flow.New(flow.Config{
		Registry: registry, Operator: invocations, Query: cfg.Query, Bodies: s.bodies, Enabled: cfg.FlowControl, AwaitRules: cfg.AwaitRules, Logger: cfg.Logger,
	})
	s.subscriptions = subscriptions.New(subscriptions.Config{
		Registry: registry, Streams: cfg.Streams, Bodies: s.bodies, KafkaClusters: cfg.KafkaClusters,
		MaxSubscriptions: cfg.Limits.Subscriptions, MaxKafkaClusters: cfg.Limits.KafkaClusters, FlowControl: cfg.FlowControl,
		RequireSharedKey: s.requireSharedKey, Now: cfg.now,
	})
	s.tokens = tokens.New(tokens.Config{
		Registry: registry, Bodies: s.bodies, Authenticator: cfg.Authenticator, Login: cfg.Login, SessionLifetime: cfg.SessionLifetime,
		SecurityMode: cfg.SecurityMode, NodeTLS: cfg.NodeTLS, Node: cfg.Node, Explain: s.explain, RecordRejected: s.recordRejected, Now: cfg.now, Logger: cfg.Logger,
	})
	if !cfg.DisableUI {
		s.ui = ui.New(ui.Options{Ingress: s.ingressEndpoint})
	}
	s.quiet.by = map[string]*quietPrincipal{}
	s.shares = access.NewShares(cfg.Limits.ConcurrentRequests)
	s.crossOrigin = http.NewCrossOriginProtection()
	for _, origin := range cfg.AllowedOrigins {
		if err := s.crossOrigin.AddTrustedOrigin(origin); err != nil {
			panic(err) // validated by the configuration
		}
	}
	s.router = s.newRouter(s.routes())
	return s
}

func (c Config) withDefaults() Config {
	if c.Limits.body == 0 {
		c.Limits.body = 4 << 20
	}
	if c.Limits.bodyTimeout == 0 {
		c.Limits.bodyTimeout = 30 * time.Second
	}
	if c.Ingress.Port == 0 {
		c.Ingress.Port = 8080
	}
	c.RoutingHeaders = slices.Clone(c.RoutingHeaders)
	for i, name := range c.RoutingHeaders {
		c.RoutingHeaders[i] = strings.ToLower(name)
	}
	if c.Features == nil {
		c.Features = map[string]bool{}
	}
	if c.Defaults == nil {
		standard := metadata.StandardDefaults()
		c.Defaults = func() *metadata.Defaults { return &standard }
	}
	if c.discoveryTimeout == 0 {
		c.discoveryTimeout = 30 * time.Second
	}
	if c.Authenticator == nil {
		c.Authenticator = &access.Authenticator{}
	}
	if c.SessionLifetime == 0 {
		c.SessionLifetime = 8 * time.Hour
	}
	if c.Ready == nil {
		c.Ready = func() error { return nil }
	}
	if c.Streams == nil {
		c.Streams = subscriptions.NoStreams{}
	}
	if c.now == nil {
		c.now = time.Now
	}
	c.KafkaClusters = slices.Clone(c.KafkaClusters)
	for i := range c.KafkaClusters {
		c.KafkaClusters[i].CreatedAt = c.now() // clients require a time
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// Handler returns the handler of all routes. It is safe for concurrent use.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.serve) }
