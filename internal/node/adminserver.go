package node

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"platform/admin"
	"platform/internal/version"
	"platform/invoker/discovery"
	"platform/metadata"
)

func (n *Node) adminHandler() http.Handler {
	c := &n.cfg.Admin
	defaults := defaultsOf(n.cfg)
	settings := admin.Config{
		ConcurrentRequests: int64(c.ConcurrentAPIRequestsLimit),
		RoutingHeaders:     c.DeploymentRoutingHeaders,
		Version:            version.Version(),
		IngressEndpoint:    n.cfg.Ingress.AdvertisedAddress,
		IngressPort:        port(n.ingress.Addr()),
		Features:           map[string]bool{"protocol_v7": n.cfg.EnableProtocolV7, "vqueues": n.cfg.FlowControl()},
		Defaults:           func() *metadata.Defaults { return &defaults },
		Logger:             n.log.With("component", "platform/admin"),
	}
	find := discovery.DefaultConfig()
	find.EnableV7 = n.cfg.EnableProtocolV7
	find.AdditionalHeaders = n.cfg.Worker.Invoker.AdditionalRequestHeaders
	api := admin.New(settings, n.metadata, discovery.New(n.invoker.Client(), find), &catalog{n.router, n.invoker}).Handler()
	return withProfiles(api)
}

// withProfiles serves Go's profiles beside the API.
func withProfiles(api http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", api)
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	return mux
}

func port(a net.Addr) int {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.Port
	}
	return 0
}

// adminDrain is how long requests in progress may take once the server stops.
const adminDrain = 5 * time.Second

// serveAdmin answers the admin API until ctx ends.
func (n *Node) serveAdmin(ctx context.Context) error {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	srv := &http.Server{
		Handler:           n.adminHandler(),
		Protocols:         &protocols,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(n.log.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(n.admin) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), adminDrain)
	defer cancel()
	if err := srv.Shutdown(patience); err != nil {
		_ = srv.Close()
	}
	<-failed
	return nil
}
