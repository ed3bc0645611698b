package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"platform/internal/datadir"
	"platform/internal/feature"
	"platform/metadata"
	nodepb "platform/proto/node"
)

// openMetadata starts this node's replica of the metadata and makes sure that the
// node is part of a cluster, which may mean to create one.
func (n *Node) openMetadata(ctx context.Context) error {
	if err := n.dir.CheckMetadata(n.hard, n.logs); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, n.cfg.InitializationTimeout.Std())
	defer cancel()
	found := false
	if n.dir.Holds(datadir.MetadataLog) != "" {
		if err := n.checkStanding(ctx); err != nil {
			return err
		}
		if err := n.openStore(false); err != nil {
			return err
		}
		if len(n.metadata.Group().Servers()) == 0 { // the start that made it got no further
			if err := n.metadata.Close(); err != nil {
				return err
			}
			n.metadata = nil
			n.cluster.store.Store(nil)
		}
	}
	if n.metadata == nil {
		var err error
		if found, err = n.bootstrap(ctx); err != nil {
			return err
		}
		if found {
			n.self.Founder = true
			if err := n.dir.SaveIdentity(n.self); err != nil {
				return err
			}
		}
		if err := n.openStore(found); err != nil {
			return err
		}
	}
	if err := n.belong(ctx); err != nil {
		return errors.Join(err, n.metadata.Close())
	}
	return nil
}

// openStore opens the replica of the metadata; found says that it is the first.
func (n *Node) openStore(found bool) (err error) {
	if err := n.dir.Own(n.self, datadir.MetadataDir, datadir.RemedyRejoin); err != nil {
		return err
	}
	hard, err := n.hard.Group(metadata.GroupID)
	if err != nil {
		return n.dir.MetadataError(err)
	}
	cfg := metadata.Config{
		Dir: n.dir.In(datadir.MetadataDir), HardState: hard, LocalID: n.replica().ID, Transport: n.transport, Join: !found,
		Forward: n.forward, Spread: n.spread, Watchdog: n.watchdog, Metrics: n.metrics.metadata, Ballast: n.dir.In(ballastFile), OnFailed: n.fail, Logger: n.log,
	}
	if found {
		cfg.Voters = []raft.Server{n.replica()}
	}
	if n.metadata, err = metadata.Open(cfg); err != nil {
		return n.dir.MetadataError(err)
	}
	n.cluster.store.Store(n.metadata)
	return nil
}

// belong waits until the cluster is known here, having created it if that is what
// the node is about, and makes the node known.
func (n *Node) belong(ctx context.Context) error {
	if _, known := n.metadata.Cluster(); !known && n.first() {
		// A new cluster has no other members that would have to read what it writes.
		level := feature.Supported()
		if n.cfg.FeatureLevelHold {
			level = feature.Oldest
		}
		c := metadata.Cluster{FeatureLevel: level, Name: n.self.Cluster, Partitions: uint32(n.cfg.DefaultNumPartitions), Replication: uint32(n.cfg.DefaultReplication)}
		if _, err := n.metadata.Provision(ctx, c); err != nil {
			return fmt.Errorf("provision cluster: %w", err)
		}
	}
	for {
		layout, moved := n.metadata.Layout()
		n.addresses.update(layout, n.members.Nodes())
		if c, known := n.metadata.Cluster(); known {
			n.cluster.partitions.Store(c.Partitions)
			break
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return errors.New("the cluster has taken this node in but does not send the metadata; check that its nodes reach " + n.fabricAddress() + " (advertised-address)")
		}
	}
	if err := n.register(ctx); err != nil {
		return err
	}
	if err := n.finishRecovery(ctx); err != nil {
		return err
	}
	return n.introduce()
}

// first reports whether this node alone makes up the metadata group.
func (n *Node) first() bool {
	servers := n.metadata.Group().Servers()
	return len(servers) == 1 && servers[0].ID == n.replica().ID
}

// record is this node as the metadata should have it.
func (n *Node) record() metadata.Node {
	return metadata.Node{
		Name: n.self.Node, Incarnation: n.self.Incarnation,
		FabricAddress:  n.cfg.AdvertisedURL(n.port.Addr()),
		IngressAddress: n.cfg.Ingress.AdvertisedURL(n.ingress.Addr()),
		AdminAddress:   n.cfg.Admin.AdvertisedURL(n.admin.Addr()),
		FeatureLevel:   feature.Supported(),
	}
}

// listed is this node as the metadata have it; false if they do not.
func (n *Node) listed() (metadata.Node, bool) {
	for _, known := range n.metadata.Nodes() {
		if known.ServerID() == n.replica().ID {
			return known, true
		}
	}
	return metadata.Node{}, false
}

// upToDate reports whether the metadata have the node with its addresses and feature
// level.
func (n *Node) upToDate() bool {
	known, listed := n.listed()
	me := n.record()
	if n.metadata.FeatureLevel() >= feature.Level2 && known.FeatureLevel != me.FeatureLevel {
		return false
	}
	return listed && known.FabricAddress == me.FabricAddress && known.IngressAddress == me.IngressAddress && known.AdminAddress == me.AdminAddress
}

// register makes the node known. If it is, under former addresses, that does not keep
// it from serving: see keepRegistered.
func (n *Node) register(ctx context.Context) error {
	if _, listed := n.listed(); listed && (!n.first() || n.upToDate()) {
		return nil
	}
	_, err := n.metadata.RegisterNode(ctx, n.record())
	if errors.Is(err, metadata.ErrNodeRemoved) {
		return n.removed("it was removed by an operator")
	}
	if err != nil {
		return fmt.Errorf("register node: %w", err)
	}
	return nil
}

// registerPause is the time between two tries to make new addresses known.
const registerPause = time.Second

// keepRegistered makes new addresses of the node known, however long that takes, and
// ends with an error when the node is removed from the cluster.
func (n *Node) keepRegistered(ctx context.Context) error {
	for asked := false; ; {
		_, moved := n.metadata.Layout()
		if _, listed := n.listed(); !listed {
			return n.removed("it was removed by an operator")
		}
		var again <-chan time.Time
		if !n.upToDate() || !asked && len(n.metadata.Nodes()) > 1 {
			// A node that was removed while it was away hears of it only by asking.
			_, err := n.metadata.RegisterNode(ctx, n.record())
			switch {
			case errors.Is(err, metadata.ErrNodeRemoved):
				return n.removed("it was removed by an operator")
			case errors.Is(err, metadata.ErrNodeConflict), errors.Is(err, metadata.ErrNodeTooOld):
				return err
			case err != nil && ctx.Err() == nil:
				n.log.Warn("node not registered yet, it is tried again", "err", err)
				again = time.After(registerPause)
			default:
				asked = true
			}
		}
		select {
		case <-moved:
		case <-again:
		case <-ctx.Done():
			return nil
		}
	}
}

// forward is how changes of the metadata reach the node that leads them.
func (n *Node) forward(ctx context.Context, leader raft.ServerAddress, entry []byte) ([]byte, uint64, error) {
	if address := n.addresses.of(n.cluster.store.Load().Group().Leader().ID); address != "" {
		leader = address
	}
	peer, err := n.peers.at(string(leader))
	if err != nil {
		return nil, 0, fmt.Errorf("%w: %w", metadata.ErrUnavailable, err)
	}
	cluster, _ := n.cluster.store.Load().Cluster()
	resp, err := peer.Propose(ctx, &nodepb.ProposeRequest{ClusterId: cluster.ID, Entry: entry})
	switch {
	case err != nil:
		return nil, 0, err
	case resp.NotLeader:
		return nil, 0, metadata.ErrNotLeader
	case resp.Unavailable:
		return nil, 0, metadata.ErrUnavailable
	case resp.Error != "":
		return nil, 0, errors.New(resp.Error)
	}
	return resp.Result, resp.Index, nil
}

// finishRecovery removes all other nodes from the cluster if this node was made the only
// one. It comes before any partition is opened, so that none of them gets a replica of
// a former member.
func (n *Node) finishRecovery(ctx context.Context) error {
	if !n.self.Sole {
		return nil
	}
	removed := map[string]bool{}
	for _, node := range n.metadata.Nodes() {
		if node.ServerID() == n.replica().ID {
			continue
		}
		if _, err := n.metadata.RemoveNode(ctx, node.ID, true); err != nil {
			return fmt.Errorf("remove node %s after the recovery: %w", node.Name, err)
		}
		removed[node.Name] = true
	}
	n.self.Sole = false
	if err := n.dir.SaveIdentity(n.self); err != nil {
		return err
	}
	n.log.Info("cluster recovered from this node alone", "removed_nodes", slices.Sorted(maps.Keys(removed)))
	return nil
}
