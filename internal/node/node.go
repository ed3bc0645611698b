package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/hashicorp/raft"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"platform/internal/config"
	"platform/internal/raftgroup"
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
	dir  *dataDir
	self identity

	fabric, ingress, admin net.Listener

	logs      *raftgroup.LogDB
	tables    *store.DB
	watchdog  *raftgroup.Watchdog
	transport *raftgroup.Transport
	rpc       *grpc.Server
	metadata  *metadata.Store
	signer    *signing.Signer // of requests to endpoints, nil: unsigned
	invoker   *invoker.Invoker
	router    *router

	failed chan error // a part that cannot go on says so here
}

// Run starts a server, serves until ctx ends, and takes it down in order: first
// the callers, then the partitions, then the files.
func Run(ctx context.Context, cfg *config.Config, log *slog.Logger) (err error) {
	n := &Node{cfg: cfg, log: log, failed: make(chan error, 1)}
	if n.signer, err = newSigner(cfg, log); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.closeFiles()) }()
	if err := n.openFiles(ctx); err != nil {
		return err
	}
	if err := n.openMetadata(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.metadata.Close()) }()
	if err := n.openPartitions(); err != nil {
		return errors.Join(err, n.closePartitions())
	}
	defer func() { err = errors.Join(err, n.closePartitions()) }()
	return n.serve(ctx)
}

// serve answers requests until ctx ends or a part of the node fails.
func (n *Node) serve(ctx context.Context) error {
	defer tuneCollector()()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return n.ingressServer().Serve(ctx, n.ingress) })
	g.Go(func() error { return n.serveAdmin(ctx) })
	g.Go(func() error { return ignoreCanceled(n.metadata.Run(ctx)) })
	checkpoints := &checkpointer{n.router.partitions, n.log}
	g.Go(func() error { return checkpoints.Run(ctx) })
	g.Go(func() error { return returnMemory(ctx, checkpoints.applied) })
	g.Go(func() error {
		select {
		case err := <-n.failed:
			return err
		case <-ctx.Done():
			return nil
		}
	})
	n.log.Info("server ready",
		"node", n.cfg.NodeName, "ingress", n.cfg.Ingress.AdvertisedURL(n.ingress.Addr()),
		"admin", n.cfg.Admin.AdvertisedURL(n.admin.Addr()), "data", n.dir.path)
	g.Go(func() error {
		<-ctx.Done()
		n.log.Info("server stopping")
		return nil
	})
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

// openMetadata starts the metadata group and makes sure that the cluster exists.
func (n *Node) openMetadata(ctx context.Context) error {
	err := n.checkMetadata()
	if err != nil {
		return err
	}
	n.metadata, err = metadata.Open(metadata.Config{
		Dir: n.dir.in("metadata"), LocalID: n.replica().ID, Transport: n.transport, Voters: n.voters(),
		Watchdog: n.watchdog, Ballast: n.dir.in(ballastFile), OnFailed: n.fail, Logger: n.log,
	})
	if err != nil {
		return err
	}
	if err := n.join(ctx); err != nil {
		return errors.Join(err, n.metadata.Close())
	}
	return nil
}

// joinTimeout bounds how long a start waits for the metadata group.
const joinTimeout = 5 * time.Minute

func (n *Node) join(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	if _, known := n.metadata.Cluster(); !known {
		if !n.cfg.AutoProvision {
			return errors.New("the cluster is not provisioned; start once with auto-provision")
		}
		c := metadata.Cluster{Name: n.cfg.ClusterName, Partitions: uint32(n.cfg.DefaultNumPartitions)}
		if _, err := n.metadata.Provision(ctx, c); err != nil {
			return fmt.Errorf("provision cluster: %w", err)
		}
	}
	me := metadata.Node{
		Name: n.cfg.NodeName, Incarnation: n.self.Incarnation,
		FabricAddress:  n.cfg.AdvertisedURL(n.fabric.Addr()),
		IngressAddress: n.cfg.Ingress.AdvertisedURL(n.ingress.Addr()),
		AdminAddress:   n.cfg.Admin.AdvertisedURL(n.admin.Addr()),
	}
	if _, err := n.metadata.RegisterNode(ctx, me); err != nil {
		return fmt.Errorf("register node: %w", err)
	}
	return nil
}

// openPartitions starts this node's replicas.
func (n *Node) openPartitions() error {
	cluster, _ := n.metadata.Cluster()
	n.router = newRouter(cluster.Partitions)
	n.invoker = n.newInvoker()
	var g errgroup.Group
	for i := range n.router.partitions {
		g.Go(func() (err error) {
			n.router.partitions[i], err = n.openPartition(uint32(i), cluster.Partitions)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	close(n.router.opened)
	return nil
}

func (n *Node) openPartition(id, count uint32) (*partition.Partition, error) {
	logs, err := n.logs.Storage(partition.GroupID(id))
	if err != nil {
		return nil, fmt.Errorf("open log of partition %d: %w", id, err)
	}
	tables, err := n.tables.Partition(id)
	if err != nil {
		return nil, fmt.Errorf("open tables of partition %d: %w", id, err)
	}
	return partition.Open(partition.Config{
		ID: id, Count: count, Node: n.cfg.NodeName,
		Tables: tables, Flush: n.tables.Flush, Storage: logs, Invoker: n.invoker, Deliver: n.router.Deliver,
		Transport: n.transport, LocalID: n.replica().ID, Voters: n.voters(),
		Watchdog: n.watchdog, OnFailed: n.fail, Log: n.log,
		MaxBatchCommands: n.cfg.Worker.MaxCommandBatchSize, MaxBatchBytes: int(n.cfg.Worker.MaxCommandBatchBytes),
	})
}

// closePartitions hands over and stops the replicas, within the time that the
// configuration gives a shutdown.
func (n *Node) closePartitions() error {
	ctx, cancel := context.WithTimeout(context.Background(), n.cfg.ShutdownTimeout.Std())
	defer cancel()
	var g errgroup.Group
	for _, p := range n.router.partitions {
		if p != nil {
			g.Go(func() error { return p.Close(ctx) })
		}
	}
	err := g.Wait()
	n.invoker.Close()
	return errors.Join(err, n.flush(ctx))
}

// flush makes the tables durable, so that the next start replays nothing.
func (n *Node) flush(ctx context.Context) error {
	wait, err := n.tables.Flush()
	if err != nil {
		return err
	}
	return wait(ctx)
}

// replica is this node in the configurations of its Raft groups.
func (n *Node) replica() raft.Server {
	return raft.Server{Suffrage: raft.Voter, ID: raft.ServerID(n.self.replicaID()), Address: n.transportAddress()}
}

// voters are the first voters of each group: this node, as long as there is one.
func (n *Node) voters() []raft.Server { return []raft.Server{n.replica()} }

func (n *Node) transportAddress() raft.ServerAddress {
	return raft.ServerAddress(n.fabric.Addr().String())
}
