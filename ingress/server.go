package ingress

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"
	"golang.org/x/net/netutil"

	"platform/metadata"
)

// Config are the settings of the ingress; the zero value of each field stands for
// the default that it names.
type Config struct {
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
	// AllowedOrigins are the origins whose pages may read answers; all.
	AllowedOrigins []string
	// DrainTimeout is how long requests in progress may take once the server stops;
	// 5 s.
	DrainTimeout time.Duration
	// BodyTimeout is how long a client may pause while it sends a body; 30 s.
	BodyTimeout time.Duration
	// Version is the server's version, recorded with every invocation; empty.
	Version string
	// Defaults are the server's values for what handlers did not announce; they are
	// asked for with every request and may change. metadata.StandardDefaults.
	Defaults func() *metadata.Defaults
	// Now is the clock; time.Now.
	Now func() time.Time
}

// Registry is where the handlers are known.
type Registry interface {
	// Schemas is the newest snapshot; it never changes.
	Schemas() *metadata.Schemas
}

// Server answers the requests of the ingress.
type Server struct {
	cfg         Config
	registry    Registry
	invocations Invocations
	log         *slog.Logger
	router      *echo.Echo
	active      atomic.Int64
	draining    atomic.Bool
}

// Limits of the listener that nobody has needed to change.
const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeader     = 64 << 10
	// farewell is how long requests that were cut short at the end of the drain
	// may take to answer.
	farewell = time.Second
)

// New returns a server that finds handlers in registry and gives requests to
// invocations.
func New(cfg Config, registry Registry, invocations Invocations, log *slog.Logger) *Server {
	standard := metadata.StandardDefaults()
	setDefault(&cfg.RequestSizeLimit, 32<<20)
	setDefault(&cfg.HTTP2MaxStreams, 250)
	setDefault(&cfg.MaxConnections, 10_000)
	setDefault(&cfg.DrainTimeout, 5*time.Second)
	setDefault(&cfg.BodyTimeout, 30*time.Second)
	if cfg.Defaults == nil {
		cfg.Defaults = func() *metadata.Defaults { return &standard }
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

// Handler answers requests of any listener, such as a test's.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.serve) }

// Drain makes the health route say that the server is about to stop, so that load
// balancers look elsewhere. Requests are still served.
func (s *Server) Drain() { s.draining.Store(true) }

// Serve answers HTTP/1.1 and HTTP/2 with prior knowledge on a listener until ctx
// ends. Then it drains: no new connection, the open ones close after their request;
// whoever still waits after the drain timeout is told that the invocation goes on.
// It may run for several listeners at once.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	base, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(nil)
	srv := s.httpServer(base)
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(netutil.LimitListener(ln, s.cfg.MaxConnections)) }()
	select {
	case err := <-failed:
		_ = srv.Close()
		return err
	case <-ctx.Done():
	}
	s.Drain()
	err := stop(srv, s.cfg.DrainTimeout)
	if err != nil {
		cut(errStopping)
		if err = stop(srv, farewell); err != nil {
			s.log.Warn("requests were cut off at the end of the drain", "err", err)
			_ = srv.Close()
		}
	}
	<-failed
	return nil
}

// stop shuts a server down and waits for its requests, for a while.
func stop(srv *http.Server, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return srv.Shutdown(ctx)
}

func (s *Server) httpServer(base context.Context) *http.Server {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler:           s.Handler(),
		Protocols:         &protocols,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: s.cfg.HTTP2MaxStreams},
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		BaseContext:       func(net.Listener) context.Context { return base },
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
}
