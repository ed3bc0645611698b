package httpserver

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"golang.org/x/net/netutil"

	"platform/internal/budget"
)

// Config says how to serve.
type Config struct {
	Handler http.Handler
	// MaxStreams bounds the concurrent requests of one HTTP/2 connection; the
	// library's default if 0.
	MaxStreams int
	// MaxConnections bounds the open connections: more wait to be accepted. No bound
	// if 0.
	MaxConnections int
	// AddressConnections bounds those of one remote address: more are answered 503 and
	// closed. No bound if 0.
	AddressConnections int
	// WriteTimeout is how long a client may take to read each 64 KiB of a response; 30 s
	// if 0.
	WriteTimeout time.Duration
	// Budget is what the bodies of requests and responses are accounted to, per
	// connection; nil: nothing.
	Budget *budget.Budget
	// Drain is how long requests in progress may take once serving ends.
	Drain time.Duration
	// OnDrain is called when serving ends, before anything is refused.
	OnDrain func()
	// Cut is the cause that contexts of requests end with when the drain is over.
	Cut error
	Log *slog.Logger
}

// Limits that nobody has needed to change.
const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeader     = 64 << 10
	// farewell is how long requests that were cut short may take to answer.
	farewell = time.Second
	// writeTimeout is the default of Config.WriteTimeout.
	writeTimeout = 30 * time.Second
)

// Serve answers requests on ln until ctx ends. Then it drains: no new connection,
// the open ones close after their request, and the contexts of requests that take
// longer than the drain end.
func Serve(ctx context.Context, ln net.Listener, cfg Config) error {
	base, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(nil)
	if cfg.MaxConnections > 0 {
		ln = netutil.LimitListener(ln, cfg.MaxConnections)
	}
	if cfg.WriteTimeout == 0 {
		cfg.WriteTimeout = writeTimeout
	}
	ln = &perAddress{
		Listener: ln, limit: cfg.AddressConnections, writeTimeout: cfg.WriteTimeout, open: map[netip.Addr]int{},
		refused: (&refusals{log: cfg.Log}).add,
	}
	fresh := &freshConns{conns: map[net.Conn]struct{}{}}
	srv := newServer(base, cfg, fresh)
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(ln) }()
	select {
	case err := <-failed:
		_ = srv.Close()
		return err
	case <-ctx.Done():
	}
	if cfg.OnDrain != nil {
		cfg.OnDrain()
	}
	fresh.close()
	if stop(srv, cfg.Drain) != nil {
		cut(cfg.Cut)
		if err := stop(srv, farewell); err != nil {
			cfg.Log.Warn("requests were cut off at the end of the drain", "err", err)
			_ = srv.Close()
		}
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// stop shuts a server down and waits for its requests, for a while.
func stop(srv *http.Server, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return srv.Shutdown(ctx)
}

func newServer(base context.Context, cfg Config, fresh *freshConns) *http.Server {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	srv := &http.Server{
		Handler:           timed(cfg.Handler, cfg.WriteTimeout),
		Protocols:         &protocols,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: cfg.MaxStreams},
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		BaseContext:       func(net.Listener) context.Context { return base },
		ConnState:         fresh.note,
		ErrorLog:          slog.NewLogLogger(cfg.Log.Handler(), slog.LevelDebug),
	}
	if cfg.Budget != nil {
		srv.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
			return budget.With(ctx, cfg.Budget.Account())
		}
	}
	return srv
}
