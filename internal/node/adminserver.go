package node

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"sync"
	"time"

	"platform/admin"
	"platform/admin/backend"
	"platform/admin/query"
	"platform/admin/tokens"
	"platform/flowcontrol"
	"platform/internal/access"
	"platform/internal/config"
	"platform/internal/feature"
	"platform/internal/httpserver"
	"platform/internal/nodetls"
	"platform/internal/version"
	"platform/invoker/discovery"
	"platform/invoker/protocol"
	"platform/metadata"
)

func (n *Node) adminHandler(ctx context.Context, engine *query.Engine, members *backend.Cluster) http.Handler {
	c := &n.cfg.Admin
	authenticator := n.access.authenticator(portAdmin, n.access.required, n.metadata)
	authenticator.Sessions = n.access.sessions()
	settings := admin.Config{
		Limits: admin.Limits{
			ConcurrentRequests: int64(c.ConcurrentAPIRequestsLimit),
			Deployments:        int(c.DeploymentsLimit),
			Services:           int(c.ServicesPerDeployment),
			Subscriptions:      c.SubscriptionsLimit,
			KafkaClusters:      c.KafkaClustersLimit,
			StateSize:          int64(n.cfg.Worker.Invoker.ObjectStateSizeLimit),
		},
		Build: admin.Build{Version: version.Version(), Commit: version.Commit(), Toolchain: version.Platform(), Level: feature.Supported()},
		Ingress: admin.Ingress{
			Endpoint: n.cfg.Ingress.AdvertisedAddress,
			Port:     tcpPort(n.listeners.ingress.Addr()),
			TLS:      n.cfg.Ingress.TLS.Enabled(),
		},
		RoutingHeaders:  c.DeploymentRoutingHeaders,
		Node:            n.files.self.Node,
		SecurityMode:    string(n.cfg.Security.Mode),
		NodeTLS:         tokens.NodeTLS{Mode: string(n.cfg.Security.NodeTLS.Mode), Managed: n.cfg.Security.NodeTLS.Managed(), Trusts: n.keys.nodes.Trusts},
		AuditReads:      n.cfg.Security.AuditReads,
		Authenticator:   authenticator,
		Login:           n.access.oidc,
		SessionLifetime: n.cfg.Security.OIDC.SessionLifetime.Std(),
		Guard:           n.access.adminGuard(),
		AllowedOrigins:  c.AllowedOrigins,
		Features:        map[string]bool{"protocol_v7": n.cfg.EnableProtocolV7, "vqueues": n.cfg.FlowControl()},
		FlowControl:     n.cfg.FlowControl(),
		AwaitRules:      n.awaitRules,
		Defaults:        n.defaults.Load,
		Ready:           n.ready.Check,
		Query:           engine,
		Streams:         n.streams(),
		KafkaClusters:   n.cfg.Ingress.KafkaClusters,
		Stopping:        ctx.Done(),
		DisableUI:       c.DisableWebUI,
		Logger:          n.log.With("component", "platform/admin"),
	}
	if !n.cfg.DisablePrometheus {
		settings.Metrics = n.metrics.registry.Handler()
	}
	find := discovery.DefaultConfig()
	find.Identity, find.Log = n.keys.signer, n.log.With("component", "platform/discovery")
	find.EnableV7 = n.cfg.EnableProtocolV7
	find.AdditionalHeaders = n.cfg.Worker.Invoker.AdditionalRequestHeaders
	api := admin.New(settings, n.metadata, discovery.New(n.invoker.Client(), find), n.invocations(), members).Handler()
	return n.withProfiles(api, portAdmin, n.access.required)
}

// invocations returns the operations on invocations of all partitions.
func (n *Node) invocations() backend.Invocations {
	return backend.NewInvocations(n.router, n.metadata.Schemas, n.metadata.FeatureLevel, protocol.ServerRange(n.cfg.EnableProtocolV7))
}

// withProfiles adds the profiles of the Go runtime to the API if they are enabled. If required is
// set, clients must present a token.
func (n *Node) withProfiles(others http.Handler, port string, required bool) http.Handler {
	if !n.cfg.EnableProfiles {
		return others
	}
	profiles := http.NewServeMux()
	profiles.HandleFunc("GET /debug/pprof/", pprof.Index)
	profiles.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	profiles.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	profiles.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	restrictedProfiles := access.Protect(access.Restrict(profiles, n.access.authenticator(port, required, n.metadata), access.Profile), n.access.adminGuard())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/debug/pprof/") {
			restrictedProfiles.ServeHTTP(w, r)
			return
		}
		others.ServeHTTP(w, r) // not by the mux, which redirects paths with //
	})
}

func tcpPort(a net.Addr) int {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.Port
	}
	return 0
}

// adminDrainTimeout returns how long requests in progress may take when the server stops.
func adminDrainTimeout() time.Duration { return 5 * time.Second }

// serveAdmin serves the admin API until ctx ends.
func (n *Node) serveAdmin(ctx context.Context) (err error) {
	members := &backend.Cluster{Self: n.replica().ID, Store: n.metadata, Members: n.port.members, Nodes: n.port.nodes, Log: n.log}
	engine := n.newQueryEngine(members)
	defer func() { err = errors.Join(err, engine.Close()) }()
	if n.metrics.registry != nil {
		n.metrics.registry.MustRegister(engine.Collector())
	}
	if err := engine.SelfTest(); err != nil {
		n.log.Error("SQL queries are disabled", "err", err)
	}
	jobs := backend.NewJobRunner(n.metadata, n.invocations(), n.metadata.Group().IsLeader, n.log.With("component", "platform/jobs"))
	running, stop := context.WithCancel(ctx)
	defer stop()
	reaper := &backend.Reaper{
		Store: n.metadata, Nodes: n.port.nodes, Leads: n.metadata.Group().IsLeader, Now: time.Now, Log: n.log.With("component", "platform/subscriptions"),
	}
	var background sync.WaitGroup
	background.Go(func() { _ = jobs.Run(running) })
	background.Go(func() { _ = reaper.Run(running) })
	defer func() { stop(); background.Wait() }()
	return httpserver.Serve(ctx, n.listeners.admin, httpserver.Config{
		Handler: n.adminHandler(ctx, engine, members), TLS: serverTLS(n.keys.listeners.admin, &n.cfg.Admin.TLS), DrainTimeout: adminDrainTimeout, Log: n.log, Budget: n.bodies,
		MaxConnections: n.connections.Admin, AddressConnections: int(n.cfg.Admin.ConnectionsPerAddressLimit), Section: "admin",
		TrustedProxies: prefixes(n.cfg.Admin.TrustedProxies),
	})
}

// serveNodeHTTP serves operators and monitoring on the node port until ctx ends.
func (n *Node) serveNodeHTTP(ctx context.Context) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		if err := n.ready.Check(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	if !n.cfg.DisablePrometheus {
		strict := n.cfg.Security.Mode == config.SecurityStrict
		mux.Handle("GET /metrics", access.Restrict(n.metrics.registry.Handler(), n.access.authenticator(portNode, strict, n.metadata), access.Metrics))
	}
	return httpserver.Serve(ctx, n.port.ports.HTTP, httpserver.Config{
		Handler: n.access.membersOnly(n.withProfiles(mux, portNode, n.access.nodePortRequiresToken()), n.metadata), DrainTimeout: adminDrainTimeout, Log: n.log,
		TotalConnections: n.connections.Node, AddressConnections: max(1, n.connections.Node/2),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, nodeKey{}, nodetls.NodeOf(c))
		},
	})
}

// newQueryEngine returns the engine for SQL queries on this node.
func (n *Node) newQueryEngine(members *backend.Cluster) *query.Engine {
	c := &n.cfg.Admin.QueryEngine
	return query.NewEngine(query.Config{
		Partitions: backend.Queried{Router: n.router, FlowControl: n.cfg.FlowControl()},
		Registry:   n.metadata.Schemas, Defaults: n.defaults.Load,
		Rules: func() *flowcontrol.Book {
			book, _ := n.metadata.Rules()
			return book
		},
		Cluster:       backend.QueriedCluster{Cluster: members},
		Jobs:          n.metadata.Jobs,
		Audit:         func() ([]metadata.AuditRecord, error) { return n.metadata.Audit(0, metadata.MaxAuditRecords) },
		Subscriptions: n.streams().States,
		DeadLetters:   n.streams().DeadLetters,
		Failures:      n.invocations().FailureGroups,
		FailureMark:   n.metadata.FailureMark,
		Timeout:       c.Timeout.Std(), MaxRows: c.MaxRows, MaxBytes: int(c.MaxBytes),
		Concurrent: c.Concurrency, MemoryLimit: int64(c.MemorySize), Rate: c.RateLimiting.Tokens(),
	})
}

// streams returns the operations on event streams of all nodes.
func (n *Node) streams() *backend.Streams {
	return &backend.Streams{Nodes: n.port.nodes, Resolver: n.kafka, Store: n.metadata, Static: n.cfg.Ingress.KafkaClusters}
}
