package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/raft"

	"platform/internal/cluster"
	"platform/internal/datadir"
	"platform/internal/diskspace"
	"platform/internal/feature"
	"platform/internal/membership"
	"platform/metadata"
)

// openMetadata starts the replica of the metadata on this node and makes the node part of a
// cluster, which it creates if necessary.
func (n *Node) openMetadata(ctx context.Context) error {
	f := &n.files
	if err := f.dir.CheckMetadata(f.hard, f.logs); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, n.cfg.InitializationTimeout.Std())
	defer cancel()
	if f.dir.Holds(datadir.MetadataLog) != "" {
		layout, err := metadata.ReadLayout(f.dir.In(datadir.MetadataDir))
		if err != nil {
			return f.dir.MetadataError(err)
		}
		if err := n.standing().Check(ctx, layout, n.port.seeds(n.cfg)); err != nil {
			return err
		}
		if err := n.openStore(false); err != nil {
			return err
		}
		if len(n.metadata.Group().Servers()) == 0 { // the start that created it was interrupted
			if err := n.metadata.Close(); err != nil {
				return err
			}
			n.metadata = nil
			n.port.server.OpenMetadata(nil)
		}
	}
	if n.metadata == nil {
		provision, err := n.bootstrap(ctx)
		if err != nil {
			return err
		}
		if provision {
			if err := f.saveIdentity(func(id *datadir.Identity) { id.Founder = true }); err != nil {
				return err
			}
		}
		if err := n.openStore(provision); err != nil {
			return err
		}
	}
	if err := n.belong(ctx); err != nil {
		return errors.Join(err, n.metadata.Close())
	}
	return nil
}

// bootstrap makes a fresh node part of a cluster, or reports that it must create one.
func (n *Node) bootstrap(ctx context.Context) (provision bool, err error) {
	b := &cluster.Bootstrap{
		Record: n.record(), Expect: n.cfg.BootstrapExpect, Seeds: n.port.seeds(n.cfg), Addresses: n.cfg.MetadataClient.Addresses,
		Timeout: n.cfg.InitializationTimeout, Server: n.port.server, Peers: n.port.peers, Members: n.port.members,
		Provisioning: n.startup.provisioning, Report: n.startup.wait, Log: n.log,
	}
	return b.Run(ctx)
}

// openStore opens the replica of the metadata; provision is set for the first replica.
func (n *Node) openStore(provision bool) (err error) {
	f, self := &n.files, n.replica()
	if err := f.dir.Own(f.self, datadir.MetadataDir, datadir.RemedyRejoin); err != nil {
		return err
	}
	hard, err := f.hard.Group(metadata.GroupID)
	if err != nil {
		return f.dir.MetadataError(err)
	}
	cfg := metadata.Config{
		Dir: f.dir.In(datadir.MetadataDir), HardState: hard, LocalID: self.ID, Transport: n.port.transport, Join: !provision,
		Forward: n.port.nodes.Propose, AwaitNodes: n.port.nodes.AwaitFollowers, Watchdog: f.watchdog, Metrics: n.metrics.metadata,
		Ballast: f.dir.In(ballastFile), OnFailed: n.fail, Logger: n.log,
		Keys: n.secrets.keys, RoutingHeaders: n.cfg.Admin.DeploymentRoutingHeaders,
	}
	if provision {
		cfg.Voters = []raft.Server{self}
	}
	if n.metadata, err = metadata.Open(cfg); err != nil {
		return f.dir.MetadataError(err)
	}
	n.port.server.OpenMetadata(n.metadata)
	return nil
}

// belong creates the cluster if this node must do so, waits until its metadata is known here, and
// announces the node.
func (n *Node) belong(ctx context.Context) error {
	registration := n.registration()
	if _, known := n.metadata.Cluster(); !known && registration.First() {
		// A new cluster has no other members that must be able to read its entries.
		level := feature.Supported()
		if n.cfg.FeatureLevelHold {
			level = feature.Oldest
		}
		partitions, replication := n.startup.provisioning.Shape()
		c := metadata.Cluster{FeatureLevel: level, Name: n.files.self.Cluster, Partitions: uint32(partitions), Replication: uint32(replication)}
		if _, err := n.metadata.Provision(ctx, c); err != nil {
			return fmt.Errorf("provision cluster: %w", err)
		}
	}
	for {
		layout, moved := n.metadata.Layout()
		n.port.addresses.Update(layout, n.port.members.Nodes())
		if _, known := n.metadata.Cluster(); known {
			break
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return errors.New("the cluster has admitted this node but does not send the metadata; check that its nodes reach " + n.port.address + " (advertised-address)")
		}
	}
	if err := registration.Register(ctx); err != nil {
		return err
	}
	if n.files.self.Sole {
		removed, err := registration.RemoveOthers(ctx)
		if err != nil {
			return err
		}
		if err := n.files.saveIdentity(func(id *datadir.Identity) { id.Sole = false }); err != nil {
			return err
		}
		n.log.Info("cluster recovered from this node alone", "removed_nodes", removed)
	}
	return n.publishMembership()
}

// publishMembership announces to the other nodes that this node is part of the cluster.
func (n *Node) publishMembership() error {
	cluster, _ := n.metadata.Cluster()
	me, _ := n.registration().Listed()
	return n.port.members.UpdateMeta(func(m *membership.Meta) {
		m.ClusterID, m.NodeID = cluster.ID, me.ID
		m.Draining = n.files.disk.Level() >= diskspace.Short // the disk may have been short before this could be announced
	})
}

func (n *Node) standing() *cluster.Standing {
	return &cluster.Standing{Self: n.files.self, DataDir: n.files.dir.Path(), Peers: n.port.peers}
}

func (n *Node) registration() *cluster.Registration {
	return &cluster.Registration{Record: n.record(), Store: n.metadata, Standing: n.standing(), Log: n.log}
}

// record returns the record of this node for the metadata.
func (n *Node) record() metadata.Node {
	return metadata.Node{
		Name: n.files.self.Node, Incarnation: n.files.self.Incarnation,
		FabricAddress:  n.cfg.AdvertisedURL(n.listeners.node.Addr()),
		IngressAddress: n.cfg.Ingress.AdvertisedURL(n.listeners.ingress.Addr()),
		AdminAddress:   n.cfg.Admin.AdvertisedURL(n.listeners.admin.Addr()),
		FeatureLevel:   feature.Supported(),
	}
}
