package node

import (
	"context"

	"platform/internal/cluster/fabric"
	"platform/internal/cluster/replicas"
	"platform/internal/cluster/routing"
	"platform/internal/node/lifecycle"
	"platform/internal/process"
	"platform/internal/raftgroup"
	"platform/partition"
)

// connectPartitions connects the router, the invoker and the replicas of partitions with
// each other and with the other nodes.
func (n *Node) connectPartitions() {
	cluster, _ := n.metadata.Cluster()
	p, f := &n.port, &n.files
	n.router = routing.New(cluster.Partitions, fabric.DirectoryConfig{
		Remote:       func(address string, partition uint32) fabric.Replica { return p.client.Remote(address, partition) },
		Unresponsive: p.client.Unresponsive,
		Replicas:     p.addresses.Holders, AddressOf: p.addresses.OfLeader, Self: p.address,
		Unserved: func(id uint32, last bool) error { return n.replicas.Unserved(id, last) },
	})
	n.invoker = n.newInvoker()
	n.kafka, n.census = n.newKafka(), partition.NewCensus(n.router.Replicas, n.stats.Services)
	n.replicas = replicas.New(replicas.Config{
		Self: f.self, Node: n.replica(), DataDir: f.dir.Path(),
		Store: n.metadata, Members: p.members, Nodes: p.nodes, Router: n.router,
		Logs: f.logs, Tables: f.tables, Hard: f.hard, Disk: f.disk,
		Partition: n.partitionConfig(), ShutdownTimeout: n.cfg.ShutdownTimeout.Std(),
		Draining: n.draining.Load, OnFailed: n.fail, Log: n.log,
	})
	p.server.OpenReplicas(n.replicas, cluster.Partitions)
	p.server.OpenStreams(n.kafka)
	n.ready = &lifecycle.Readiness{Started: p.server.Started(), Draining: n.draining.Load, Disk: f.disk, Metadata: n.metadata, Router: n.router}
}

// partitionKey returns the partition key of an invocation that may be in any partition and has
// an input of that many bytes: one of this node's, unless the node is busy or invocations wait
// for its slots for attempts.
func (n *Node) partitionKey(input int) uint64 {
	return n.router.Key(input, n.invoker.Short())
}

// measureUsage measures what this node uses of its machine until ctx ends.
func (n *Node) measureUsage(ctx context.Context) error {
	return n.usage.Run(ctx, func(u process.Usage) {
		if len(n.metadata.Nodes()) > 1 {
			n.router.Balance(u.CPU / float64(u.Cores))
		}
	})
}

// bulkBytes bounds the log entries with large inputs and results that a node has in flight. A
// single one may be larger.
const bulkBytes = 8 << 20

// partitionConfig returns the configuration shared by all partition replicas.
func (n *Node) partitionConfig() partition.Config {
	w := &n.cfg.Worker
	cfg := partition.Config{
		Group: raftgroup.Config{Transport: n.port.transport, Watchdog: n.files.watchdog, Metrics: n.metrics.partitions},
		Proposals: raftgroup.ProposerConfig{
			MaxBatchCommands: w.MaxCommandBatchSize, MaxBatchBytes: int(w.MaxCommandBatchBytes), Bulk: raftgroup.NewBulkGate(bulkBytes),
		},
		Invoker: n.invoker, Streams: n.kafka, OutboxMemory: n.outbox, ListingMemory: partition.NewListingMemory(int(n.cfg.Admin.ListingMemory)),
		Flow:    partition.FlowConfig{Enable: n.cfg.FlowControl(), EnabledEverywhere: n.flowEnabled, Rules: n.rules()},
		Digests: partition.DigestConfig{Metrics: n.metrics.digests},
		Level:   n.metadata.FeatureLevel, Stats: n.stats, Tracer: n.exports.tracer, Clock: n.port.members, Log: n.log,
	}
	if w.DigestInterval > 0 {
		cfg.Digests.Fetch, cfg.Digests.Entries = n.port.nodes.Digest, uint64(w.DigestInterval)
	}
	return cfg
}

// flowEnabled reports whether flow control was enabled on all partitions of the cluster.
func (n *Node) flowEnabled() bool {
	cluster, _ := n.metadata.Cluster()
	return cluster.FlowControl
}

// rules returns the source of the rule book of partitions; nil without flow control.
func (n *Node) rules() partition.RuleSource {
	if !n.cfg.FlowControl() {
		return nil
	}
	return n.metadata
}

// awaitRules waits until the partitions led by this node have the given version of the rule
// book, or until ctx ends. Other partitions get it when their nodes apply the change of the
// metadata.
func (n *Node) awaitRules(ctx context.Context, version uint32) {
	for p := range n.router.Replicas() {
		p.AwaitRules(ctx, version)
	}
}

// closePartitions hands over and stops the replicas, within the shutdown timeout.
func (n *Node) closePartitions() error {
	n.shutdown.Enter("the replicas of partitions")
	ctx, cancel := n.shutdown.Context()
	defer cancel()
	err := n.replicas.Close(ctx)
	n.inUse.Store(err != nil)
	n.invoker.Close()
	n.shutdown.Enter("the flush of the tables")
	n.replicas.Flush(ctx)
	return err
}
