package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/hashicorp/raft"
	"google.golang.org/grpc"

	"platform/internal/cluster"
	"platform/internal/cluster/enroll"
	"platform/internal/cluster/fabric"
	"platform/internal/cluster/membership"
	"platform/internal/config"
	"platform/internal/nodelink"
	"platform/internal/raftgroup"
	nodepb "platform/proto/node"
)

// leaveTimeout limits the announcement to the other nodes that this node stops.
const leaveTimeout = 2 * time.Second

// nodePort serves requests of other nodes and holds the clients for requests to them.
type nodePort struct {
	address   string // host:port for other nodes
	ports     *membership.Ports
	members   *membership.Members
	addresses *cluster.Addresses
	peers     *cluster.Peers
	issuer    *enroll.Issuer
	server    *cluster.Server
	nodes     *cluster.Nodes
	transport *raftgroup.Transport
	client    *fabric.Client
	fabric    *fabric.Server
	rpc       *grpc.Server
}

// openPort serves the requests of other nodes, and starts their discovery. The port must be
// closed even after an error.
func (n *Node) openPort(ctx context.Context) (err error) {
	p, self := &n.port, n.files.self
	p.peers, p.issuer = cluster.NewPeers(n.keys.nodes), n.newIssuer()
	p.ports = membership.Split(n.listeners.node, n.keys.nodes, n.connections.Pending)
	p.transport, err = raftgroup.NewTransport(raftgroup.TransportConfig{
		ClusterID: self.Cluster, NodeID: self.Node, Incarnation: self.Incarnation,
		Address: raft.ServerAddress(p.address), AddressOf: p.addresses.Of, SnapshotRate: int(n.cfg.Worker.SnapshotTransferRate), Stopping: n.draining.Load, Logger: n.log,
		Security: n.keys.nodes, Authorize: func(node, incarnation string) error { return p.server.Authorize(node, incarnation) },
		MayServe: func(group uint32, node string, leaderless bool) bool {
			return p.server.MayServe(group, node, leaderless)
		},
	})
	if err != nil {
		return err
	}
	p.server = cluster.NewServer(cluster.ServerConfig{
		Self: self, Expect: n.cfg.BootstrapExpect, FlowControl: n.cfg.FlowControl(), HoldFeatureLevel: n.cfg.FeatureLevelHold, Settings: n.cfg.Settings,
		Members: func() *membership.Members { return p.members }, Disk: n.files.disk.Shortage, Usage: n.resources, Draining: n.draining.Load, FailedAttempts: n.stats.FailedAttempts, Stats: n.history, LogLevels: n.logLevels,
		Renew: p.issuer.Renew, Nodes: n.files.knownNodes(), Log: n.log,
	})
	p.nodes = cluster.NewNodes(p.server, p.peers, p.addresses)
	me := fabric.Identity{
		Identity:  nodelink.Identity{ClusterID: p.server.ClusterID, Node: self.Node, Incarnation: self.Incarnation, Address: p.address},
		ReplicaID: self.ReplicaID(),
	}
	p.client = fabric.NewClient(fabric.ClientConfig{Self: me, Level: p.server.FeatureLevel, Bodies: n.bodies, Security: n.keys.nodes, Log: n.log})
	p.fabric = fabric.NewServer(fabric.ServerConfig{
		Self: me, Local: p.replica, Authorize: p.server.AuthorizeMember, Seen: p.client.Seen, Bodies: n.bodies,
		Relay: p.client, AddressOf: p.addresses.OfLeader, Log: n.log,
	})
	p.members, err = cluster.OpenGossip(ctx, cluster.GossipConfig{
		Self: self, Port: n.listeners.node.Addr(), Address: p.address, Streams: p.ports.Gossip, Seeds: p.seeds(n.cfg),
		KeyFile: n.cfg.Networking.GossipKeyFile, Open: n.cfg.Security.Mode == config.SecurityOpen, Security: n.keys.nodes, Server: p.server, OnFailed: n.fail, Log: n.log,
	})
	if err != nil {
		return err
	}
	n.provisioning.OpenMembers(p.members)
	p.rpc = grpc.NewServer(append(nodelink.ServerOptions(), p.server.ServerOptions()...)...)
	p.transport.Register(p.rpc)
	p.fabric.Register(p.rpc)
	nodepb.RegisterNodeClusterServer(p.rpc, p.server)
	go func() {
		if err := p.rpc.Serve(p.ports.RPC); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			n.fail(fmt.Errorf("serve node port: %w", err))
		}
	}()
	return nil
}

// resources returns what this node uses of its machine.
func (n *Node) resources() cluster.Usage {
	u := cluster.Usage{Usage: n.usage.Usage()}
	u.DiskFree, u.DiskTotal = n.files.disk.Space()
	return u
}

// close stops what openPort has started. ctx limits the announcement to the other nodes, without which
// they detect that this node has stopped.
func (p *nodePort) close(ctx context.Context, log *slog.Logger) error {
	var errs []error
	if p.members != nil {
		ctx, cancel := context.WithTimeout(ctx, leaveTimeout)
		defer cancel()
		if err := p.members.Leave(ctx); err != nil {
			log.Info("stop could not be announced to the other nodes", "err", err)
		}
		errs = append(errs, p.members.Close())
	}
	if p.client != nil {
		errs = append(errs, p.client.Close())
		p.fabric.Close()
	}
	if p.rpc != nil {
		p.rpc.Stop()
	}
	if p.peers != nil {
		errs = append(errs, p.peers.Close())
	}
	if p.transport != nil {
		errs = append(errs, p.transport.Close())
	}
	if p.ports != nil {
		errs = append(errs, p.ports.Close())
	}
	return errors.Join(errs...)
}

// seeds returns the configured addresses of other nodes.
func (p *nodePort) seeds(cfg *config.Config) []string {
	var seeds []string
	for _, address := range cfg.MetadataClient.Addresses {
		if address = config.HostPort(address); address != p.address {
			seeds = append(seeds, address)
		}
	}
	return seeds
}

// replica returns the replica of a partition on this node, nil if there is none.
func (p *nodePort) replica(id uint32) fabric.Local {
	if r := p.server.Replica(id); r != nil {
		return r
	}
	return nil
}

// drained announces to the other nodes whether this one accepts leaderships and replicas.
func (p *nodePort) drained(drained bool, log *slog.Logger) {
	if p.members == nil {
		return // it gets none before that
	}
	if err := p.members.UpdateMeta(func(m *membership.Meta) { m.Draining = drained }); err != nil {
		log.Warn("could not announce whether this node accepts leaderships and replicas", "err", err)
	}
}
