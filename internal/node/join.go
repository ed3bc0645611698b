package node

import (
	"context"
	"errors"

	"github.com/hashicorp/raft"

	"platform/internal/cluster"
	"platform/internal/cluster/datadir"
	"platform/internal/diskspace"
	"platform/internal/feature"
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
		if err := n.removalCheck().Check(ctx, layout, n.port.seeds(n.cfg)); err != nil {
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
	if err := n.joining().Run(ctx); err != nil {
		return errors.Join(err, n.metadata.Close())
	}
	return nil
}

// bootstrap makes a fresh node part of a cluster, or reports that it must create one.
func (n *Node) bootstrap(ctx context.Context) (provision bool, err error) {
	b := &cluster.Bootstrap{
		Record: n.record(), Expect: n.cfg.BootstrapExpect, Seeds: n.port.seeds(n.cfg), Addresses: n.cfg.MetadataClient.Addresses,
		Timeout: n.cfg.InitializationTimeout, Server: n.port.server, Peers: n.port.peers, Members: n.port.members,
		Provisioning: n.provisioning, Report: n.startup.Report, Log: n.log,
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
		Ballast: f.dir.In(ballastFile), OnFailed: n.fail, Logger: n.log, Now: n.port.members.Now,
		Keys: n.keys.secrets.keys, RoutingHeaders: n.cfg.Admin.DeploymentRoutingHeaders,
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

// joining returns what makes the node part of the cluster of its metadata.
func (n *Node) joining() *cluster.Joining {
	j := &cluster.Joining{
		Registration: n.registration(), Provisioning: n.provisioning, Cluster: n.files.self.Cluster, HoldFeatureLevel: n.cfg.FeatureLevelHold,
		Addresses: n.port.addresses, Members: n.port.members, Address: n.port.address,
		Draining: func() bool { return n.files.disk.Level() >= diskspace.Short }, // the disk may have been short before this could be announced
	}
	if n.files.self.Sole {
		j.Recovered = func() error { return n.files.saveIdentity(func(id *datadir.Identity) { id.Sole = false }) }
	}
	return j
}

func (n *Node) removalCheck() *cluster.RemovalCheck {
	return &cluster.RemovalCheck{Self: n.files.self, DataDir: n.files.dir.Path(), Peers: n.port.peers}
}

func (n *Node) registration() *cluster.Registration {
	return &cluster.Registration{Record: n.record(), Store: n.metadata, Removal: n.removalCheck(), Log: n.log}
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
