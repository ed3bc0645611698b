package node

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"platform/admin"
	"platform/admin/query"
	"platform/internal/feature"
	"platform/internal/httpserver"
	"platform/internal/version"
	"platform/invoker/discovery"
	"platform/invoker/protocol"
	"platform/metadata"
)

func (n *Node) adminHandler(engine *query.Engine) http.Handler {
	c := &n.cfg.Admin
	defaults := defaultsOf(n.cfg)
	settings := admin.Config{
		ConcurrentRequests: int64(c.ConcurrentAPIRequestsLimit),
		RoutingHeaders:     c.DeploymentRoutingHeaders,
		Version:            version.Version(),
		Commit:             version.Commit(),
		Toolchain:          version.Platform(),
		Level:              feature.Supported(),
		IngressEndpoint:    n.cfg.Ingress.AdvertisedAddress,
		IngressPort:        port(n.ingress.Addr()),
		Features:           map[string]bool{"protocol_v7": n.cfg.EnableProtocolV7, "vqueues": n.cfg.FlowControl()},
		FlowControl:        n.cfg.FlowControl(),
		AwaitRules:         n.awaitRules,
		Defaults:           func() *metadata.Defaults { return &defaults },
		Ready:              n.ready,
		Query:              engine,
		Logger:             n.log.With("component", "platform/admin"),
	}
	if !n.cfg.DisablePrometheus {
		settings.Metrics = n.metricsHandler()
	}
	find := discovery.DefaultConfig()
	find.Identity = n.signer
	find.EnableV7 = n.cfg.EnableProtocolV7
	find.AdditionalHeaders = n.cfg.Worker.Invoker.AdditionalRequestHeaders
	api := admin.New(settings, n.metadata, discovery.New(n.invoker.Client(), find), invocations{
		&catalog{n.router, n.metadata.Schemas},
		&operator{n.router, n.metadata.Schemas, n.featureLevel, protocol.ServerRange(n.cfg.EnableProtocolV7)},
	}, clusterAdmin{n}).Handler()
	return withProfiles(api)
}

// invocations are what the admin API may ask of all partitions.
type invocations struct {
	*catalog
	*operator
}

var _ admin.Invocations = invocations{}

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

// adminConnections bounds the open connections of the admin port.
const adminConnections = 2000

// serveAdmin answers the admin API until ctx ends.
func (n *Node) serveAdmin(ctx context.Context) (err error) {
	engine := n.newQueryEngine()
	defer func() { err = errors.Join(err, engine.Close()) }()
	return httpserver.Serve(ctx, n.admin, httpserver.Config{
		Handler: n.adminHandler(engine), Drain: adminDrain, Log: n.log, Budget: n.bodies,
		MaxConnections: adminConnections, AddressConnections: int(n.cfg.Admin.ConnectionsPerAddressLimit),
	})
}

// serveFigures answers what people and monitoring ask on the node port, until ctx ends.
func (n *Node) serveFigures(ctx context.Context) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		if err := n.ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	if !n.cfg.DisablePrometheus {
		mux.Handle("GET /metrics", n.metricsHandler())
	}
	return httpserver.Serve(ctx, n.ports.HTTP, httpserver.Config{Handler: withProfiles(mux), Drain: adminDrain, Log: n.log})
}
