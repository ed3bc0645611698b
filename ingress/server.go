package ingress

import (
	"context"
	"crypto/tls"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

	"platform/internal/access"
	"platform/internal/budget"
	"platform/internal/feature"
	"platform/internal/httpserver"
	"platform/internal/tracing"
	"platform/metadata"
	"platform/partition/machine"
)

// Config contains the settings of the ingress. Zero values select the default in parentheses.
type Config struct {
	// ForwardHeaders are the canonical names of headers with credentials that handlers get, and
	// that are stored with the invocation.
	ForwardHeaders []string
	// TLS is the configuration of TLS (no TLS).
	TLS *tls.Config
	// RequestSizeLimit limits request bodies, in bytes (32 MiB).
	RequestSizeLimit int64
	// ConcurrentRequests limits the requests in progress, including those that wait for a
	// result; others are rejected with status 429 (unlimited).
	ConcurrentRequests int64
	// HTTP2MaxStreams limits the concurrent requests of one HTTP/2 connection (250).
	HTTP2MaxStreams int
	// MaxConnections limits the open connections of a listener; others wait to be accepted
	// (10,000).
	MaxConnections int
	// AddressConnections limits the connections of one remote address; others get status 503 and
	// are closed (unlimited).
	AddressConnections int
	// TrustedProxies are networks of proxies whose X-Forwarded-For names the client (none).
	TrustedProxies []netip.Prefix
	// writeTimeout is the time that a client has to read each 64 KiB of a response (that of
	// package httpserver).
	writeTimeout time.Duration
	// Budget limits the memory of the bodies of requests and responses (unlimited).
	Budget *budget.Budget
	// resultTimeout limits how long the result of a call waits for memory. It must be well below
	// the time for which results are kept (half of that time).
	resultTimeout time.Duration
	// Authenticator authenticates requests (all requests have all permissions).
	Authenticator *access.Authenticator
	// Strict ignores settings of services that require less of callers than Authenticator does.
	Strict bool
	// Quotas limit the requests and bytes of each client (unlimited).
	Quotas *access.Quotas
	// Guard validates the Host header of requests and the web pages that send them (no
	// validation).
	Guard *access.Guard
	// DrainTimeout returns how long requests in progress may continue once the server stops (5 s).
	DrainTimeout func() time.Duration
	// bodyTimeout limits the pauses of a client that sends a body (30 s).
	bodyTimeout time.Duration
	// FlowControl allows scopes; without it, requests with a scope are rejected.
	FlowControl bool
	// Version is the server's version, recorded with every invocation (empty).
	Version string
	// Defaults returns the server's values for options that handlers do not announce. It is called
	// for each request; the values may change (metadata.StandardDefaults).
	Defaults func() *metadata.Defaults
	// Level returns the cluster's feature level (the newest).
	Level func() feature.Level
	// PartitionKey returns the partition key of an invocation with an input of that many bytes
	// whose partition does not matter (random).
	PartitionKey func(input int) uint64
	// Ready returns an error with the reason if the node should not receive requests. Each health
	// check calls it, so it must be fast (always ready).
	Ready func() error
	// now returns the current time (time.Now).
	now func() time.Time
	// Metrics count the requests (none).
	Metrics *Metrics
	// Tracer records calls and sends as spans (none).
	Tracer *tracing.Tracer
}

// Registry provides the registered handlers.
type Registry interface {
	// Schemas returns the newest snapshot, which is immutable.
	Schemas() *metadata.Schemas
}

// Server serves the requests of the ingress.
type Server struct {
	cfg         Config
	registry    Registry
	invocations Invocations
	log         *slog.Logger
	router      *echo.Echo
	active      atomic.Int64
	shares      *access.Shares // of active
	draining    atomic.Bool
	completed   func(context.Context) // httpserver.Completed
}

// New returns a server that finds handlers in registry and passes requests to invocations.
func New(cfg Config, registry Registry, invocations Invocations, log *slog.Logger) *Server {
	standard := metadata.StandardDefaults()
	setDefault(&cfg.RequestSizeLimit, 32<<20)
	setDefault(&cfg.HTTP2MaxStreams, 250)
	setDefault(&cfg.MaxConnections, 10_000)
	setDefault(&cfg.bodyTimeout, 30*time.Second)
	setDefault(&cfg.resultTimeout, machine.MinRetention*time.Millisecond/2)
	if cfg.DrainTimeout == nil {
		cfg.DrainTimeout = func() time.Duration { return 5 * time.Second }
	}
	if cfg.Defaults == nil {
		cfg.Defaults = func() *metadata.Defaults { return &standard }
	}
	if cfg.Authenticator == nil {
		cfg.Authenticator = &access.Authenticator{}
	}
	if cfg.Guard == nil {
		cfg.Guard = &access.Guard{Setting: "ingress", Hosts: []string{access.AnyOne}, Origins: []string{access.AnyOne}}
	}
	if cfg.Level == nil {
		cfg.Level = func() feature.Level { return feature.Newest }
	}
	if cfg.PartitionKey == nil {
		cfg.PartitionKey = func(int) uint64 { return rand.Uint64() }
	}
	if cfg.Ready == nil {
		cfg.Ready = func() error { return nil }
	}
	if cfg.now == nil {
		cfg.now = time.Now
	}
	s := &Server{cfg: cfg, registry: registry, invocations: invocations, log: log, shares: access.NewShares(cfg.ConcurrentRequests), completed: httpserver.Completed}
	s.router = s.routes()
	return s
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// handler serves requests from any listener, such as a test's.
func (s *Server) handler() http.Handler { return http.HandlerFunc(s.serve) }

// Drain makes the health route report that the server is about to stop, so that load
// balancers choose other nodes. Requests are still served.
func (s *Server) Drain() { s.draining.Store(true) }

// Serve serves HTTP/1.1 and HTTP/2 with prior knowledge on a listener until ctx ends. Then it
// drains: it accepts no new connections and closes open ones after their current request. Callers
// still waiting after the drain timeout get an error saying that the invocation continues. It may
// run for several listeners concurrently.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	return httpserver.Serve(ctx, ln, httpserver.Config{
		Handler:        s.handler(),
		TLS:            s.cfg.TLS,
		MaxStreams:     s.cfg.HTTP2MaxStreams,
		MaxConnections: s.cfg.MaxConnections,

		AddressConnections: s.cfg.AddressConnections,
		TrustedProxies:     s.cfg.TrustedProxies,
		Section:            "ingress",
		Problem:            unhandledProblem,
		WriteTimeout:       s.cfg.writeTimeout,
		Budget:             s.cfg.Budget,

		DrainTimeout: s.cfg.DrainTimeout,
		OnDrain:      s.Drain,
		CancelCause:  errStopping,
		Log:          s.log,
	})
}
