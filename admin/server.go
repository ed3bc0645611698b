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

	"platform/admin/events"
	"platform/admin/query"
	"platform/admin/ui"
	"platform/flowcontrol"
	"platform/internal/access"
	"platform/internal/feature"
	"platform/internal/ids"
	"platform/internal/subscription"
	"platform/invoker/discovery"
	"platform/metadata"
)

// Registry is the metadata of the cluster. A change is visible in Schemas when the
// method that made it returns.
type Registry interface {
	Schemas() *metadata.Schemas
	Cluster() (metadata.Cluster, bool)
	Nodes() []metadata.Node

	RegisterDeployment(context.Context, metadata.Registration) (metadata.Registered, error)
	// PlanDeployment is RegisterDeployment without effect.
	PlanDeployment(metadata.Registration) (metadata.Registered, error)
	UpdateDeployment(context.Context, metadata.Update) (*metadata.Deployment, error)
	// PlanUpdate is UpdateDeployment without effect.
	PlanUpdate(metadata.Update) (*metadata.Deployment, error)
	DeleteDeployment(context.Context, ids.Deployment) error
	ModifyService(ctx context.Context, name string, options metadata.Options) (*metadata.Service, error)

	// Rules is the rule book, and a channel that is closed when there is another.
	Rules() (*flowcontrol.Book, <-chan struct{})
	PutRules(context.Context, []flowcontrol.Change) ([]flowcontrol.Rule, error)
	DeleteRules(context.Context, []flowcontrol.Removal) ([]flowcontrol.Pattern, error)

	// Jobs lists the jobs by ID.
	Jobs() []metadata.Job
	Job(id string) (metadata.Job, bool)
	CreateJob(context.Context, metadata.Job) (metadata.Job, error)
	StopJob(ctx context.Context, id string) (metadata.Job, error)

	// FailureMark returns the mark of a failure group, false if it has none.
	FailureMarks() []metadata.FailureMark
	FailureMark(group string) (metadata.FailureMark, bool)
	MarkFailure(context.Context, metadata.FailureMarkEdit) (metadata.FailureMark, error)

	Tokens() []metadata.Token
	Token(id string) (metadata.Token, bool)
	CreateToken(context.Context, metadata.Token) (metadata.Token, error)
	RevokeToken(ctx context.Context, id string) (metadata.Token, error)

	// RecordAction adds a record to the audit log, Audit reads the ones before a number.
	RecordAction(context.Context, metadata.Action) error
	Audit(before uint64, limit int) ([]metadata.AuditRecord, error)
	VerifyAudit() (metadata.AuditState, error)

	// Subscriptions lists the event subscriptions by ID, with a channel that is closed when they
	// or the Kafka clusters have changed.
	Subscriptions() ([]subscription.Subscription, <-chan struct{})
	NewSubscriptionID() string
	CreateSubscription(context.Context, subscription.Subscription) (subscription.Subscription, error)
	ChangeSubscription(ctx context.Context, id string, change func(subscription.Subscription) (subscription.Subscription, error)) (subscription.Subscription, error)
	RemoveSubscription(ctx context.Context, id string) error
	// KafkaClusters lists the clusters that were added by requests, by name.
	KafkaClusters() []subscription.Cluster
	CreateKafkaCluster(context.Context, subscription.Cluster) (subscription.Cluster, error)
	ChangeKafkaCluster(ctx context.Context, name string, change func(map[string]string) (map[string]string, error)) (subscription.Cluster, error)
	DeleteKafkaCluster(ctx context.Context, name string, force bool) error

	SetReplication(ctx context.Context, replicas int) (metadata.Cluster, error)
	DrainNode(ctx context.Context, id uint32, draining bool) (metadata.Node, error)
	RemoveNode(ctx context.Context, id uint32, force bool) (metadata.Node, error)
}

// Discoverer asks endpoints what they offer; *discovery.Discoverer does.
type Discoverer interface {
	// Discover returns the deployment as the endpoint announces it: without id,
	// creation time, labels and revisions. What is wrong with the endpoint is an
	// error with a code, or a *discovery.InvalidError; any other is answered 502.
	Discover(context.Context, discovery.Request) (*metadata.Deployment, error)
	// Convert passes a value to a deployment, which converts it. Errors are those of
	// Discover.
	Convert(context.Context, discovery.Conversion) (discovery.Converted, error)
}

var (
	_ Registry   = (*metadata.Store)(nil)
	_ Discoverer = (*discovery.Discoverer)(nil)
)

// Config are the settings of the admin API; the zero value of each field stands
// for the default that it names.
type Config struct {
	// BodyLimit bounds request bodies, in bytes; 4 MiB.
	BodyLimit int64
	// BodyTimeout is how long a client may take to send each 64 KiB of a body; 30 s.
	BodyTimeout time.Duration
	// ConcurrentRequests bounds the requests in progress; more are answered 429. No
	// bound.
	ConcurrentRequests int64
	// RoutingHeaders are the additional headers whose values tell deployments at one
	// address apart; none.
	RoutingHeaders []string
	// Version is the server's version, Commit and Toolchain say how it was built.
	Version, Commit, Toolchain string
	// Level is the highest feature level that the server supports.
	Level feature.Level
	// IngressEndpoint is the address of the ingress that is told to clients; the
	// host of the request with IngressPort.
	IngressEndpoint string
	// IngressPort is the port of the ingress; 8080.
	IngressPort int
	// Features are the optional parts of the server by name, and whether they are
	// on; none.
	Features map[string]bool
	// Defaults are the server's values for what services did not announce; they are
	// asked for with every request and may change. metadata.StandardDefaults.
	Defaults func() *metadata.Defaults
	// FlowControl lets objects have a scope.
	FlowControl bool
	// AwaitRules returns when the partitions led by this node have the rule book of that
	// version or a newer one, or when ctx ends; nothing is waited for.
	AwaitRules func(ctx context.Context, version uint32)
	// Streams are the event streams of the cluster; none.
	Streams Streams
	// KafkaClusters are the Kafka clusters of the configuration; none.
	KafkaClusters []subscription.Cluster
	// Now is the clock; time.Now.
	Now func() time.Time
	// Query answers SQL; its routes answer 503.
	Query *query.Engine
	// SecurityMode is security.mode; GET /whoami shows it.
	SecurityMode string
	// AuditReads records in the audit log who reads payloads.
	AuditReads bool
	// Node is the name of this node, for the audit log.
	Node string
	// Authenticator finds out who sends a request; everybody may do everything.
	Authenticator *access.Authenticator
	// Guard checks the hosts to which requests are sent; nothing does.
	Guard *access.Guard
	// AllowedOrigins are the other origins whose pages may send requests that change
	// something; none.
	AllowedOrigins []string
	// Metrics answers /metrics; the route does not exist.
	Metrics http.Handler
	// DisableUI leaves out the web UI.
	DisableUI bool
	// DiscoveryTimeout bounds how long an endpoint may take to be discovered; 30 s.
	DiscoveryTimeout time.Duration
	// Ready says why the node should get no requests, in words for people; nil means
	// that it should. It is asked by each health check and must be quick. Always ready.
	Ready func() error
	// Stopping is closed when the server is about to stop: event streams end. Never.
	Stopping <-chan struct{}
	// Logger is slog.Default().
	Logger *slog.Logger
}

// Server answers the requests of the admin API.
type Server struct {
	cfg         Config
	registry    Registry
	discoverer  Discoverer
	invocations Invocations
	cluster     Cluster
	log         *slog.Logger
	router      *echo.Echo
	ui          *ui.Handler // nil: there is no web UI
	active      atomic.Int64
	quiet       quietRequests
	crossOrigin *http.CrossOriginProtection
	hub         *events.Hub

	described   sync.Once // covers description, the OpenAPI document
	description object
}

// recheckTimeout bounds how long a registration that changes nothing waits to see
// whether the endpoint still offers the same.
const recheckTimeout = 2 * time.Second

// New returns a server for Handler.
func New(cfg Config, registry Registry, discoverer Discoverer, invocations Invocations, cluster Cluster) *Server {
	cfg = cfg.withDefaults()
	s := &Server{cfg: cfg, registry: registry, discoverer: discoverer, invocations: invocations, cluster: cluster, log: cfg.Logger}
	s.hub = events.NewHub(events.Config{MaxSubscriptions: maxStreams, MaxSources: maxSources, ReadTimeout: topicReadTimeout})
	if !cfg.DisableUI {
		s.ui = ui.New(ui.Options{Ingress: s.ingressEndpoint})
	}
	s.quiet.by = map[string]*quietPrincipal{}
	s.crossOrigin = http.NewCrossOriginProtection()
	for _, origin := range cfg.AllowedOrigins {
		if err := s.crossOrigin.AddTrustedOrigin(origin); err != nil {
			panic(err) // the configuration has been checked
		}
	}
	s.router = s.newRouter(s.routes())
	return s
}

func (c Config) withDefaults() Config {
	if c.BodyLimit == 0 {
		c.BodyLimit = 4 << 20
	}
	if c.BodyTimeout == 0 {
		c.BodyTimeout = 30 * time.Second
	}
	if c.IngressPort == 0 {
		c.IngressPort = 8080
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
	if c.DiscoveryTimeout == 0 {
		c.DiscoveryTimeout = 30 * time.Second
	}
	if c.Authenticator == nil {
		c.Authenticator = &access.Authenticator{}
	}
	if c.Ready == nil {
		c.Ready = func() error { return nil }
	}
	if c.Streams == nil {
		c.Streams = noStreams{}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.KafkaClusters = slices.Clone(c.KafkaClusters)
	for i := range c.KafkaClusters {
		c.KafkaClusters[i].CreatedAt = c.Now() // clients require a time
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// Handler answers all routes, for any number of requests at a time.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.serve) }
