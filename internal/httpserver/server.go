package httpserver

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"golang.org/x/net/netutil"

	"platform/internal/budget"
)

// Config configures Serve.
type Config struct {
	Handler http.Handler
	// TLS is the configuration of TLS, whose certificates may change between connections;
	// nil: no TLS.
	TLS *tls.Config
	// MaxStreams bounds the concurrent requests of one HTTP/2 connection; 0 uses the
	// default of net/http.
	MaxStreams int
	// MaxConnections bounds the open connections; further ones wait to be accepted. 0 means
	// unlimited. While the server stops, up to maxEstablished of those are served as well.
	MaxConnections int
	// TotalConnections bounds the open connections as well, but further ones get status 503 and are closed. No bound if 0.
	TotalConnections int
	// AddressConnections bounds those of one remote address; further ones get status 503 and are closed. No bound if 0.
	AddressConnections int
	// TrustedProxies are networks of proxies whose requests are those of the clients in their header
	// X-Forwarded-For, which becomes the RemoteAddr of the request. AddressConnections does not apply to them.
	TrustedProxies []netip.Prefix
	// Section is the section of the configuration that has the keys of these settings, for the answer; empty if there are none.
	Section string
	// Problem formats the responses that do not come from Handler: to requests that cannot be
	// parsed, except over TLS, and to connections above the bound. The default is the format of
	// the admin API.
	Problem Problem
	// WriteTimeout is how long a client may take to read each 64 KiB of a response; 30 s
	// if 0.
	WriteTimeout time.Duration
	// Budget is what the bodies of requests and responses are accounted to, per
	// connection; nil: nothing.
	Budget *budget.Budget
	// ConnContext may extend the context of the requests of a connection; nil: not extended.
	ConnContext func(context.Context, net.Conn) context.Context
	// DrainTimeout returns how long requests in progress may continue after ctx ends, which is when it is called;
	// nil: not at all.
	DrainTimeout func() time.Duration
	// OnDrain is called when the drain begins, before new connections are rejected.
	OnDrain func()
	// CancelCause is the cause with which request contexts are cancelled at the end of the
	// drain.
	CancelCause error
	// CancelGrace is how long cancelled requests may take to write their response; 1 s if 0.
	CancelGrace time.Duration
	Log         *slog.Logger
}

// Limits that are not configurable.
const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	// cancelGracePeriod is the default of Config.CancelGrace.
	cancelGracePeriod = time.Second
	// writeTimeout is the default of Config.WriteTimeout.
	writeTimeout = 30 * time.Second
)

// Serve serves requests on ln until ctx ends. It then drains: it accepts no connections,
// closes open ones after their current request, and cancels the contexts of requests that
// exceed the drain time.
func Serve(ctx context.Context, ln net.Listener, cfg Config) error {
	base, cancelRequests := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancelRequests(nil)
	port, _ := ln.(*net.TCPListener)
	ln = shortBuffers{ln}
	if cfg.MaxConnections > 0 {
		ln = netutil.LimitListener(ln, cfg.MaxConnections)
	}
	ln = &backlog{Listener: ln, port: port}
	if cfg.WriteTimeout == 0 {
		cfg.WriteTimeout = writeTimeout
	}
	if cfg.Problem == nil {
		cfg.Problem = adminProblem
	}
	bound := &boundedListener{
		Listener: ln, total: cfg.TotalConnections, limit: cfg.AddressConnections, section: cfg.Section, tls: cfg.TLS != nil, writeTimeout: cfg.WriteTimeout, sources: map[netip.Addr]*source{},
		proxies: cfg.TrustedProxies, problem: cfg.Problem, refused: &refusals{log: cfg.Log}, closed: &refusals{log: cfg.Log},
	}
	ln = bound
	cfg.Handler = boundCancels(base, cfg.Handler)
	if len(cfg.TrustedProxies) > 0 {
		cfg.Handler = bound.identifyClients(cfg.Handler)
	}
	conns := &newConns{conns: map[net.Conn]struct{}{}}
	srv := newServer(base, cfg, conns)
	served := make(chan error, 1)
	go func() {
		if cfg.TLS != nil {
			served <- srv.ServeTLS(ln, "", "")
			return
		}
		served <- srv.Serve(ln)
	}()
	select {
	case err := <-served:
		_ = srv.Close()
		return err
	case <-ctx.Done():
	}
	begin, timeout := time.Now(), time.Duration(0)
	if cfg.DrainTimeout != nil {
		timeout = cfg.DrainTimeout()
	}
	if cfg.OnDrain != nil {
		cfg.OnDrain()
	}
	// Shutdown makes net/http close connections whose first request has just been read. Their clients cannot know whether it
	// was executed.
	_ = ln.Close()
	err := <-served
	grace := newConnGracePeriod
	if timeout > 0 {
		grace = min(grace, timeout/2)
	}
	conns.await(grace)
	conns.close()
	if stop(srv, time.Until(begin.Add(timeout))) != nil {
		cancelRequests(cfg.CancelCause)
		if err := stop(srv, cmp.Or(cfg.CancelGrace, cancelGracePeriod)); err != nil {
			cfg.Log.Warn("requests aborted at the end of the drain", "err", err)
			_ = srv.Close()
		}
	}
	if !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// stop shuts down a server and waits up to timeout for its requests.
func stop(srv *http.Server, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return srv.Shutdown(ctx)
}

func newServer(base context.Context, cfg Config, conns *newConns) *http.Server {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(cfg.TLS != nil)
	protocols.SetUnencryptedHTTP2(cfg.TLS == nil)
	srv := &http.Server{
		Handler:           timed(limitHeaders(cfg.Handler, cfg.Problem), cfg.WriteTimeout),
		Protocols:         &protocols,
		TLSConfig:         cfg.TLS,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: cfg.MaxStreams},
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    parsedHeader,
		BaseContext:       func(net.Listener) context.Context { return base },
		ConnState:         conns.connState,
		ErrorLog:          slog.NewLogLogger(cfg.Log.Handler(), slog.LevelDebug),
	}
	srv.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		outer := c
		if secure, ok := c.(*tls.Conn); ok {
			c = secure.NetConn()
		}
		accepted, ok := c.(*conn)
		if ok {
			accepted.outer = outer
			ctx = context.WithValue(ctx, connKey{}, accepted)
		}
		if ok && cfg.ConnContext != nil {
			ctx = cfg.ConnContext(ctx, accepted.Conn)
		}
		if cfg.Budget == nil {
			return ctx
		}
		account := cfg.Budget.Account()
		if ok {
			accepted.account = account
		}
		return budget.With(ctx, account)
	}
	return srv
}
