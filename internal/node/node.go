package node

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"platform/internal/budget"
	"platform/internal/config"
	"platform/internal/datadir"
	"platform/internal/diskspace"
	"platform/internal/fabric"
	"platform/internal/membership"
	"platform/internal/raftgroup"
	"platform/internal/routing"
	"platform/invoker"
	signing "platform/invoker/identity" // this package has an identity of its own
	"platform/metadata"
	"platform/partition"
	"platform/partition/store"
)

// Node is one running server.
type Node struct {
	cfg  *config.Config
	log  *slog.Logger
	dir  *datadir.Dir
	self datadir.Identity

	port, ingress, admin net.Listener

	disk     *diskspace.Monitor
	hard     *raftgroup.HardStates
	logs     *raftgroup.LogDB
	tables   *store.DB
	watchdog *raftgroup.Watchdog
	// outboxMemory is what the outboxes of all partitions hold.
	outboxMemory partition.OutboxMemory

	// The node port and what comes and goes through it.
	ports     *membership.Ports
	rpc       *grpc.Server
	members   *membership.Members
	addresses *addressBook
	peers     *peers
	cluster   *clusterServer
	transport *raftgroup.Transport
	asking    *fabric.Client
	answering *fabric.Server

	bodies   *budget.Budget // of requests and replies at all ports
	metrics  nodeMetrics
	metadata *metadata.Store
	signer   *signing.Signer // of requests to endpoints, nil: unsigned
	invoker  *invoker.Invoker
	router   *routing.Router
	tending  []sync.Mutex // by partition, held while its replica is opened, closed or changed

	quarantine quarantine // replicas that are not served
	answers    answers    // of all nodes, as they were lately

	provisioning sync.Mutex             // held while mayProvision is set
	looking      atomic.Bool            // for other nodes; members is set
	mayProvision atomic.Bool            // the cluster, if there is none
	waiting      atomic.Pointer[string] // what a node waits for that is part of no cluster
	settledOnce  atomic.Bool            // the leaders of its partitions were known
	draining     atomic.Bool            // the node is about to stop
	inUse        atomic.Bool            // a replica did not end in time, and may use the files
	failed       chan error             // a part that cannot go on says so here
	ending       *ending                // how long the node may take to stop
}

// Run starts a server, serves until ctx ends, and takes it down in order: first
// the callers, then the partitions, then the files.
func Run(ctx context.Context, cfg *config.Config, log *slog.Logger) (err error) {
	limits := &cfg.Networking
	n := &Node{cfg: cfg, log: log, bodies: budget.New(int64(limits.BodyMemoryLimit), int64(limits.ConnectionBodyMemory)), addresses: newAddressBook(), peers: newPeers(), failed: make(chan error, 1)}
	n.ending = newEnding(cfg.ShutdownTimeout.Std(), log)
	defer n.ending.over()
	defer context.AfterFunc(ctx, n.ending.begin)()
	n.mayProvision.Store(cfg.AutoProvision)
	n.metrics = n.newMetrics()
	if n.signer, err = newSigner(cfg, log); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.closeFiles()) }()
	if err := n.openFiles(ctx); err != nil {
		return err
	}
	ready := n.whileStarting()
	err = n.begin(ctx)
	ready()
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil // stopped while it waited for others
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.closeMetadata()) }()
	if err := n.openPartitions(ctx); err != nil {
		return errors.Join(err, n.closePartitions())
	}
	defer func() { err = errors.Join(err, n.closePartitions()) }()
	return n.serve(ctx)
}

// begin opens the files and makes the node part of a cluster.
func (n *Node) begin(ctx context.Context) error {
	if err := n.awaitRoom(ctx); err != nil {
		return err
	}
	if err := n.openStores(); err != nil {
		return err
	}
	if err := n.openPort(ctx); err != nil {
		return err
	}
	return n.openMetadata(ctx)
}

// serve answers requests until ctx ends or a part of the node fails. Then the node
// hands over what others can take before it stops answering.
func (n *Node) serve(ctx context.Context) error {
	defer tuneCollector()()
	stopping, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	g, serving := errgroup.WithContext(stopping)
	n.collectMetrics()
	ingress := n.ingressServer()
	checkpoints := &checkpointer{n.router.Replicas, n.log}
	for _, part := range []func(context.Context) error{
		func(ctx context.Context) error { return ingress.Serve(ctx, n.ingress) },
		n.serveAdmin, n.serveFigures,
		func(ctx context.Context) error { return ignoreCanceled(n.metadata.Run(ctx)) },
		n.keepAddresses, n.keepRegistered, n.watchStanding, n.tendPartitions, n.control, n.settleFlowControl, n.disk.Run,
		checkpoints.Run,
		func(ctx context.Context) error { return returnMemory(ctx, checkpoints.applied) },
	} {
		g.Go(func() error { return part(serving) })
	}
	g.Go(func() error {
		select {
		case err := <-n.failed:
			n.ending.enter("requests in progress")
			return err
		case <-serving.Done():
			return nil
		case <-ctx.Done():
			n.drain(ingress)
			stop()
			return nil
		}
	})
	n.log.Info("server ready",
		"node", n.self.Node, "ingress", n.cfg.Ingress.AdvertisedURL(n.ingress.Addr()),
		"admin", n.cfg.Admin.AdvertisedURL(n.admin.Addr()), "data", n.dir.Path())
	return g.Wait()
}

func ignoreCanceled(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// fail takes the node down because a part cannot go on.
func (n *Node) fail(err error) {
	select {
	case n.failed <- err:
	default:
	}
}

// replica is this node in the configurations of its Raft groups.
func (n *Node) replica() raft.Server {
	return raft.Server{Suffrage: raft.Voter, ID: raft.ServerID(n.self.ReplicaID()), Address: n.transportAddress()}
}

func (n *Node) transportAddress() raft.ServerAddress { return raft.ServerAddress(n.fabricAddress()) }
