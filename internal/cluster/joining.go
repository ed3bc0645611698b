package cluster

import (
	"context"
	"errors"
	"fmt"

	"platform/internal/cluster/membership"
	"platform/internal/feature"
	"platform/metadata"
)

// Joining makes this node, whose replica of the metadata is open, part of the cluster. All fields
// except Recovered are required.
type Joining struct {
	Registration *Registration
	Provisioning *Provisioning
	Cluster      string // name of the cluster
	// HoldFeatureLevel creates a cluster at the oldest feature level.
	HoldFeatureLevel bool
	Addresses        *Addresses
	Members          *membership.Members
	Address          string // of this node, for messages
	// Draining reports whether this node accepts no leaderships and replicas.
	Draining func() bool
	// Recovered is set if the cluster was recovered from this node alone. It is called when the other
	// nodes have been removed.
	Recovered func() error
}

// Run creates the cluster if this node must do so, waits until its metadata is known here,
// registers the node, and announces it to the other nodes.
func (j *Joining) Run(ctx context.Context) error {
	if err := j.provision(ctx); err != nil {
		return err
	}
	if err := j.awaitMetadata(ctx); err != nil {
		return err
	}
	if err := j.Registration.register(ctx); err != nil {
		return err
	}
	if j.Recovered != nil {
		removed, err := j.Registration.removeOthers(ctx)
		if err != nil {
			return err
		}
		if err := j.Registration.Store.RenewRules(ctx); err != nil {
			return fmt.Errorf("renew the rules after the recovery: %w", err)
		}
		if err := j.Recovered(); err != nil {
			return err
		}
		j.Registration.Log.Info("cluster recovered from this node alone", "removed_nodes", removed)
	}
	return j.announce()
}

// provision creates the cluster if this node is the only one and there is none yet.
func (j *Joining) provision(ctx context.Context) error {
	store := j.Registration.Store
	if _, known := store.Cluster(); known || !j.Registration.First() {
		return nil
	}
	// A new cluster has no other members that must be able to read its entries.
	level := feature.Supported()
	if j.HoldFeatureLevel {
		level = feature.Oldest
	}
	partitions, replication := j.Provisioning.shape()
	c := metadata.Cluster{FeatureLevel: level, Name: j.Cluster, Partitions: uint32(partitions), Replication: uint32(replication)}
	if _, err := store.Provision(ctx, c); err != nil {
		return fmt.Errorf("provision cluster: %w", err)
	}
	return nil
}

// awaitMetadata waits until the metadata of the cluster is known here.
func (j *Joining) awaitMetadata(ctx context.Context) error {
	for {
		layout, moved := j.Registration.Store.Layout()
		j.Addresses.update(layout, j.Members.Nodes())
		if _, known := j.Registration.Store.Cluster(); known {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return errors.New("the cluster has admitted this node but does not send the metadata; check that its nodes reach " + j.Address + " (advertised-address)")
		}
	}
}

// announce announces to the other nodes that this node is part of the cluster.
func (j *Joining) announce() error {
	cluster, _ := j.Registration.Store.Cluster()
	me, _ := j.Registration.listed()
	return j.Members.UpdateMeta(func(m *membership.Meta) {
		m.ClusterID, m.NodeID = cluster.ID, me.ID
		m.Draining = j.Draining()
	})
}
