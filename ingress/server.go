package ingress

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

	"platform/internal/access"
	"platform/internal/budget"
	"platform/internal/httpserver"
	"platform/internal/tracing"
	"platform/metadata"
	"platform/partition/machine"
)

// Config are the settings of the ingress; the zero value of each field stands for
// the default that it names.
type Config struct {
	// ForwardHeaders are the canonical names of headers with credentials that handlers get, and
	// that are stored with the invocation.
	ForwardHeaders []string
	// TLS is the configuration of TLS; nil: no TLS.
	TLS *tls.Config
	// RequestSizeLimit bounds request bodies, in bytes; 32 MiB.
	RequestSizeLimit int64
	// ConcurrentRequests bounds the requests in progress, those that wait for a
	// result included; more are answered 429. No bound.
	ConcurrentRequests int64
	// HTTP2MaxStreams bounds the concurrent requests of one HTTP/2 connection; 250.
	HTTP2MaxStreams int
	// MaxConnections bounds the open connections of a listener: more wait to be
	// accepted. 10,000.
	MaxConnections int
	// AddressConnections bounds those of one remote address: more are answered 503 and
	// closed. No bound.
	AddressConnections int
	// WriteTimeout is how long a client may take to read each 64 KiB of a response; that of
	// package httpserver.
	WriteTimeout time.Duration
	// Budget is what the bodies of requests and responses are accounted to; nil: nothing.
	Budget *budget.Budget
	// ResultTimeout is how long the result of a call may wait for memory, well below the
	// time for which results are kept; half of that time.
	ResultTimeout time.Duration
	// Authenticator identifies the sender of a request; without it requests are unrestricted.
	Authenticator *access.Authenticator
	// Quotas bound what each client may use; nil: nothing does.
	Quotas *access.Quotas
	// Guard decides which hosts requests may be sent to, and which web pages may send them; without
	// it all.
	Guard *access.Guard
	// DrainTimeout is how long requests in progress may take once the server stops;
	// 5 s.
	DrainTimeout time.Duration
	// BodyTimeout is how long a client may pause while it sends a body; 30 s.
	BodyTimeout time.Duration
	// FlowControl lets requests have a scope; without it they are refused.
	FlowControl bool
	// Version is the server's version, recorded with every invocation; empty.
	Version string
	// Defaults returns the server's values for options that handlers did not announce; it is called
	// for every request and its result may change. metadata.StandardDefaults.
	Defaults func() *metadata.Defaults
	// Ready returns why the node should receive no requests, for operators; nil means that it
	// should. Each health check calls it, so it must be fast. Always ready.
	Ready func() error
	// Now is the clock; time.Now.
	Now func() time.Time
	// Metrics count the requests; nil: nothing does.
	Metrics *Metrics
	// Tracer records calls and sends as spans; nil: none.
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
	draining    atomic.Bool
}

// New returns a server that finds handlers in registry and passes requests to invocations.
func New(cfg Config, registry Registry, invocations Invocations, log *slog.Logger) *Server {
	standard := metadata.StandardDefaults()
	setDefault(&cfg.RequestSizeLimit, 32<<20)
	setDefault(&cfg.HTTP2MaxStreams, 250)
	setDefault(&cfg.MaxConnections, 10_000)
	setDefault(&cfg.DrainTimeout, 5*time.Second)
	setDefault(&cfg.BodyTimeout, 30*time.Second)
	setDefault(&cfg.ResultTimeout, machine.MinRetention*time.Millisecond/2)
	if cfg.Defaults == nil {
		cfg.Defaults = func() *metadata.Defaults { return &standard }
	}
	if cfg.Authenticator == nil {
		cfg.Authenticator = &access.Authenticator{}
	}
	if cfg.Guard == nil {
		cfg.Guard = &access.Guard{Setting: "ingress", Hosts: []string{access.AnyOne}, Origins: []string{access.AnyOne}}
	}
	if cfg.Ready == nil {
		cfg.Ready = func() error { return nil }
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &Server{cfg: cfg, registry: registry, invocations: invocations, log: log}
	s.router = s.routes()
	return s
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Handler serves requests from any listener, such as a test's.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.serve) }

// Drain makes the health route report that the server is about to stop, so that load
// balancers choose other nodes. Requests are still served.
func (s *Server) Drain() { s.draining.Store(true) }

// Serve serves HTTP/1.1 and HTTP/2 with prior knowledge on a listener until ctx ends. Then it
// drains: it accepts no new connections and closes open ones after their current request. Callers
// still waiting after the drain timeout get an error saying that the invocation continues. It may
// run for several listeners concurrently.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	return httpserver.Serve(ctx, ln, httpserver.Config{
		Handler:        s.Handler(),
		TLS:            s.cfg.TLS,
		MaxStreams:     s.cfg.HTTP2MaxStreams,
		MaxConnections: s.cfg.MaxConnections,

		AddressConnections: s.cfg.AddressConnections,
		AddressKey:         "ingress.connections-per-address-limit",
		WriteTimeout:       s.cfg.WriteTimeout,
		Budget:             s.cfg.Budget,

		Drain:       s.cfg.DrainTimeout,
		OnDrain:     s.Drain,
		CancelCause: errStopping,
		Log:         s.log,
	})
}
