package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"

	"platform/internal/fabric"
	"platform/internal/membership"
	"platform/internal/raftgroup"
	"platform/partition"
	nodepb "platform/proto/node"
)

// leaveTimeout bounds how long the others are told that this node stops.
const leaveTimeout = 2 * time.Second

// openPort serves what other nodes ask on the node port, and begins to look for them.
func (n *Node) openPort(ctx context.Context) (err error) {
	n.ports = membership.Split(n.port)
	n.transport, err = raftgroup.NewTransport(raftgroup.TransportConfig{
		ClusterID: n.self.Cluster, NodeID: n.self.Node, Incarnation: n.self.Incarnation,
		Address: n.transportAddress(), AddressOf: n.addresses.of, SnapshotRate: int(n.cfg.Worker.SnapshotTransferRate), Logger: n.log,
	})
	if err != nil {
		return err
	}
	me := n.fabricIdentity()
	n.asking = fabric.NewClient(fabric.ClientConfig{Self: me, Level: n.featureLevel, Bodies: n.bodies, Log: n.log})
	n.answering = fabric.NewServer(fabric.ServerConfig{Self: me, Local: n.localReplica, Seen: n.asking.Seen, Bodies: n.bodies, Log: n.log})
	n.cluster = &clusterServer{
		self: n.self, expect: n.cfg.BootstrapExpect, flow: n.cfg.FlowControl(), hold: n.cfg.FeatureLevelHold, settings: n.cfg.Settings,
		started: time.Now(), draining: &n.draining, log: n.log,
		members: func() *membership.Members { return n.members },
		local:   n.localPartition, quarantine: n.quarantine.reason,
		recoverReplica: n.recoverReplica, disk: n.disk.Shortage,
		replica: func(id uint32) string { return string(n.replicaID(id)) },
	}
	if err := n.openMembers(ctx); err != nil {
		return err
	}
	n.looking.Store(true)
	n.rpc = grpc.NewServer(raftgroup.ServerOptions()...)
	n.transport.Register(n.rpc)
	n.answering.Register(n.rpc)
	nodepb.RegisterNodeClusterServer(n.rpc, n.cluster)
	go func() {
		if err := n.rpc.Serve(n.ports.RPC); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			n.fail(fmt.Errorf("serve node port: %w", err))
		}
	}()
	return nil
}

// closePort ends what openPort began, as far as it got.
func (n *Node) closePort() error {
	var errs []error
	if n.members != nil {
		ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
		defer cancel()
		errs = append(errs, n.leaveMembers(ctx))
	}
	if n.asking != nil {
		errs = append(errs, n.asking.Close())
		n.answering.Close()
	}
	if n.rpc != nil {
		n.rpc.Stop()
	}
	errs = append(errs, n.peers.close())
	if n.transport != nil {
		errs = append(errs, n.transport.Close())
	}
	if n.ports != nil {
		errs = append(errs, n.ports.Close())
	}
	return errors.Join(errs...)
}

// fabricIdentity is what this node says when it asks others about partitions.
func (n *Node) fabricIdentity() fabric.Identity {
	return fabric.Identity{
		ClusterID: func() string {
			store := n.cluster.store.Load()
			if store == nil {
				return ""
			}
			c, _ := store.Cluster()
			return c.ID
		},
		Node: n.self.Node, Incarnation: n.self.Incarnation, ReplicaID: n.self.ReplicaID(), Address: n.fabricAddress(),
	}
}

// routes is how requests reach partitions that other nodes lead.
func (n *Node) routes() fabric.DirectoryConfig {
	return fabric.DirectoryConfig{
		Remote:       func(address string, partition uint32) fabric.Replica { return n.asking.Remote(address, partition) },
		Unresponsive: n.asking.Unresponsive,
		Replicas:     n.addresses.holders, AddressOf: n.addresses.ofLeader, Self: n.fabricAddress(),
		Unserved: n.unserved,
	}
}

// localPartition is this node's replica, nil as long as there is none.
func (n *Node) localPartition(id uint32) *partition.Partition {
	r := n.cluster.router.Load()
	if r == nil || int(id) >= int(r.Count()) {
		return nil
	}
	return r.Replica(id)
}

func (n *Node) localReplica(id uint32) fabric.Local {
	if p := n.localPartition(id); p != nil {
		return p
	}
	return nil
}
