package node

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"

	"github.com/hashicorp/raft"
	"golang.org/x/sync/errgroup"

	"platform/ingress/kafka"
	"platform/internal/budget"
	"platform/internal/cluster"
	"platform/internal/cluster/replicas"
	"platform/internal/cluster/routing"
	"platform/internal/config"
	"platform/internal/node/lifecycle"
	"platform/internal/process"
	"platform/internal/stats"
	"platform/internal/telemetry"
	"platform/invoker"
	"platform/metadata"
	"platform/partition"
)

// Node is a running server: its components and their connections.
type Node struct {
	cfg *config.Config // of the start
	log *slog.Logger

	reloader    *config.Reloader
	defaults    atomic.Pointer[metadata.Defaults] // in effect, of the last configuration
	logLevels   *telemetry.Levels                 // of log
	exports     *exports
	metrics     nodeMetrics
	stats       *stats.Counters
	history     *stats.History
	usage       *process.Meter
	connections process.ConnectionLimits
	payloads    process.PayloadLimits
	bodies      *budget.Budget // of requests and responses at all ports
	outbox      *partition.OutboxMemory

	keys         keys
	listeners    listeners
	files        files
	access       *accessControl
	provisioning *cluster.Provisioning
	startup      *lifecycle.Startup
	port         nodePort

	metadata *metadata.Store
	invoker  *invoker.Invoker
	kafka    *kafka.Engine
	census   *partition.Census
	router   *routing.Router
	replicas *replicas.Reconciler
	ready    *lifecycle.Readiness

	draining atomic.Bool // the node is about to stop
	inUse    atomic.Bool // a replica did not stop in time and may still use the files
	failed   chan error  // of a component that has failed
	shutdown *lifecycle.Shutdown
}

// Run starts a server, serves until ctx ends, and stops it in order: first the callers, then the
// partitions, then the files. It applies changes of the configuration file, see config.Reloader. levels are those of log.
func Run(ctx context.Context, loaded *config.Loaded, log *slog.Logger, levels *telemetry.Levels) (err error) {
	cfg := loaded.Config
	exports, log, err := openExports(ctx, cfg, log)
	if err != nil {
		return err
	}
	defer exports.close()
	n := newNode(cfg, log, levels, exports)
	n.reloader = loaded.Reloader()
	if n.keys, err = openKeys(cfg, log); err != nil {
		return err
	}
	n.port.addresses = cluster.NewAddresses()
	defer n.shutdown.Complete()
	defer context.AfterFunc(ctx, n.shutdown.Begin)()
	defer n.keys.run()()
	defer func() { err = errors.Join(err, n.close()) }()
	if err := n.open(ctx); err != nil {
		return err
	}
	started := n.startup.Serve(n.listeners.ingress.open, n.listeners.admin)
	defer started()
	err = n.begin(ctx)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil // stopped while it waited for other nodes
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.closeMetadata()) }()
	n.connectPartitions()
	defer func() { err = errors.Join(err, n.closePartitions()) }()
	n.startup.Report("opening the replicas of its partitions")
	if err := n.replicas.Open(ctx); err != nil {
		return err
	}
	started()
	return n.serve(ctx)
}

// connections are the limits of a process that may open enough files. They are not configurable. That of the node port is for
// connections that use HTTP, with or without a certificate.
var connections = process.ConnectionLimits{Ingress: 10_000, Admin: 2000, Node: 500, Pending: 512}

// newNode returns a node that has nothing open yet.
func newNode(cfg *config.Config, log *slog.Logger, levels *telemetry.Levels, exports *exports) *Node {
	configured := process.PayloadLimits{
		Bodies: int64(cfg.Networking.BodyMemoryLimit), Connection: int64(cfg.Networking.ConnectionBodyMemory), Attempts: int64(cfg.Worker.Invoker.MemoryLimit),
	}
	n := &Node{
		cfg: cfg, log: log, logLevels: levels, exports: exports,
		payloads: configured.Fit(int64(cfg.Networking.MessageSizeLimit), log), connections: connections.Fit(log),
		metrics: newMetrics(cfg), outbox: partition.NewOutboxMemory(),
		provisioning: cluster.NewProvisioning(cfg.AutoProvision, cfg.DefaultNumPartitions, cfg.DefaultReplication, cfg.BootstrapExpect),
		shutdown:     lifecycle.NewShutdown(cfg.ShutdownTimeout.Std(), log),
		failed:       make(chan error, 1),
	}
	n.applyDefaults(cfg)
	n.bodies = budget.New(n.payloads.Bodies, n.payloads.Connection)
	n.stats = stats.NewCounters(n.metrics.handlers)
	n.usage = process.NewMeter()
	n.history = stats.NewHistory(n.stats, func() map[string]stats.Load { return n.invoker.Load() })
	return n
}

// open opens the ports and the data directory. The ports are opened first, so that a second server
// that is started by mistake fails with the port rather than with the lock of the directory.
func (n *Node) open(ctx context.Context) (err error) {
	cfg := n.cfg
	if n.listeners, err = listen(ctx, cfg); err != nil {
		return err
	}
	if n.files, err = openFiles(cfg, n.shortOfSpace, n.log); err != nil {
		return err
	}
	if haveOthers(n.files.knownNodes()) { // which serve its clients
		n.listeners.ingress.suspend()
	} else if _, err = n.listeners.ingress.open(ctx); err != nil {
		return err
	}
	if n.access, err = openAccess(cfg, n.listeners, n.files.dir, n.log); err != nil {
		return err
	}
	n.access.report()
	n.startup = lifecycle.NewStartup(lifecycle.StartupConfig{
		Node: n.files.self.Node, Provisioning: n.provisioning, Log: n.log,
		IngressTLS: serverTLS(n.keys.listeners.ingress, &cfg.Ingress.TLS), AdminTLS: serverTLS(n.keys.listeners.admin, &cfg.Admin.TLS),
		Connections: n.connections, Guard: n.access.adminGuard(), Authenticator: n.access.authenticator(portAdmin, n.access.required, nil),
	})
	return nil
}

// begin opens the databases and makes the node part of a cluster.
func (n *Node) begin(ctx context.Context) error {
	if err := n.files.awaitRoom(ctx, n.startup.Report); err != nil {
		return err
	}
	n.startup.Report("")
	n.port.address = config.HostPort(n.cfg.AdvertisedURL(n.listeners.node.Addr()))
	if err := n.obtainCertificate(ctx); err != nil {
		return err
	}
	if err := n.files.openStores(n.cfg.DiskTimeout.Std(), n.log); err != nil {
		return err
	}
	if err := n.openPort(ctx); err != nil {
		return err
	}
	return n.openMetadata(ctx)
}

// close releases the ports and the files that are open.
func (n *Node) close() error {
	n.shutdown.Enter("ports and files")
	err := errors.Join(n.port.close(context.Background(), n.log), n.files.close(n.inUse.Load()))
	n.listeners.close()
	return err
}

// serve serves requests until ctx ends or a component fails. Then it hands over leaderships before
// it stops serving.
func (n *Node) serve(ctx context.Context) error {
	defer process.TuneCollector()()
	stopping, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	g, serving := errgroup.WithContext(stopping)
	n.registerMetrics()
	stopMetrics, err := n.exportMetrics(ctx)
	if err != nil {
		return err
	}
	defer stopMetrics()
	port, err := n.listeners.ingress.open(ctx)
	if err != nil {
		return err
	}
	ingress := n.ingressServer()
	checkpoints := replicas.NewCheckpointer(n.router.Replicas, n.log)
	for _, part := range []func(context.Context) error{
		func(ctx context.Context) error { return ingress.Serve(ctx, port) },
		n.serveAdmin, n.serveNodeHTTP, n.serveCluster, n.serveCertificates, n.watchConfiguration,
		n.access.checkProvider,
		func(ctx context.Context) error { return n.access.uses.Run(ctx, n.metadata, n.log) },
		func(ctx context.Context) error { return n.keys.secrets.run(ctx, n.metadata, n.log) },
		func(ctx context.Context) error { return ignoreCanceled(n.metadata.Run(ctx)) },
		n.replicas.Run, n.kafka.Run, n.census.Run, n.files.disk.Run, n.history.Run, n.measureUsage, n.port.server.RunEvents, checkpoints.Run,
		func(ctx context.Context) error { return process.ReturnWhenIdle(ctx, checkpoints.Applied) },
		func(ctx context.Context) error { return n.files.reclaimSpace(ctx, n.log) },
	} {
		g.Go(func() error { return part(serving) })
	}
	g.Go(func() error {
		select {
		case err := <-n.failed:
			n.shutdown.Enter("requests in progress")
			return err
		case <-serving.Done():
			return nil
		case <-ctx.Done():
			n.drain(ingress)
			stop()
			return nil
		}
	})
	n.keys.secrets.report(n.metadata.Secrets(), n.log)
	n.log.Info("server ready",
		"node", n.files.self.Node, "ingress", n.cfg.Ingress.AdvertisedURL(n.listeners.ingress.Addr()),
		"admin", n.cfg.Admin.AdvertisedURL(n.listeners.admin.Addr()), "data", n.files.dir.Path())
	return g.Wait()
}

// serveCluster runs this node's replicas and cluster services until ctx ends, or until it fails
// because the node is no longer a member.
func (n *Node) serveCluster(ctx context.Context) error {
	p := &n.port
	registration, removal := n.registration(), n.removalCheck()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { p.addresses.Run(ctx, n.metadata, p.members); return nil })
	g.Go(func() error { return registration.Run(ctx) })
	g.Go(func() error { return removal.Watch(ctx, n.metadata, p.members) })
	g.Go(func() error {
		return ignoreCanceled(cluster.RunController(ctx, n.metadata, p.members, p.nodes, n.cfg.NodeLostTimeout.Std()))
	})
	if n.cfg.FlowControl() {
		g.Go(func() error {
			cluster.RecordFlowControl(ctx, n.metadata, p.nodes, func() bool {
				first := n.router.Replica(0)
				return first != nil && first.Leading()
			}, n.log)
			return nil
		})
	}
	return g.Wait()
}

func ignoreCanceled(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// fail stops the node because a component has failed.
func (n *Node) fail(err error) {
	select {
	case n.failed <- err:
	default:
	}
}

// replica returns the Raft server ID of this node.
func (n *Node) replica() raft.Server {
	return raft.Server{Suffrage: raft.Voter, ID: raft.ServerID(n.files.self.ReplicaID()), Address: raft.ServerAddress(n.port.address)}
}
