package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"platform/internal/feature"
	"platform/metadata"
)

// Registration maintains the record of this node in the metadata.
type Registration struct {
	Record  metadata.Node // the desired record
	Store   *metadata.Store
	Removal *RemovalCheck
	Log     *slog.Logger
}

// listed returns this node's record in the metadata; false if there is none.
func (r *Registration) listed() (metadata.Node, bool) {
	for _, known := range r.Store.Nodes() {
		if known.ServerID() == r.Record.ServerID() {
			return known, true
		}
	}
	return metadata.Node{}, false
}

// upToDate reports whether the metadata has the node's current addresses and feature level.
func (r *Registration) upToDate() bool {
	known, listed := r.listed()
	me := r.Record
	if r.Store.FeatureLevel() >= feature.Level2 && known.FeatureLevel != me.FeatureLevel {
		return false
	}
	return listed && known.FabricAddress == me.FabricAddress && known.IngressAddress == me.IngressAddress && known.AdminAddress == me.AdminAddress
}

// register adds the node to the metadata. A record with former addresses is sufficient to
// serve: Run updates it.
func (r *Registration) register(ctx context.Context) error {
	if _, listed := r.listed(); listed && (!r.First() || r.upToDate()) {
		return nil
	}
	_, err := r.Store.RegisterNode(ctx, r.Record)
	if errors.Is(err, metadata.ErrNodeRemoved) {
		return r.Removal.removed("it was removed by an operator")
	}
	if err != nil {
		return fmt.Errorf("register node: %w", err)
	}
	return nil
}

// registerPause is the delay between two attempts to update the record.
const registerPause = time.Second

// Run updates the record, with any number of retries, and returns an error when the node is
// removed from the cluster.
func (r *Registration) Run(ctx context.Context) error {
	for registered := false; ; {
		_, moved := r.Store.Layout()
		if _, listed := r.listed(); !listed {
			return r.Removal.removed("it was removed by an operator")
		}
		var again <-chan time.Time
		if !r.upToDate() || !registered && len(r.Store.Nodes()) > 1 {
			// Only other nodes know whether this one was removed while it was down.
			_, err := r.Store.RegisterNode(ctx, r.Record)
			switch {
			case errors.Is(err, metadata.ErrNodeRemoved):
				return r.Removal.removed("it was removed by an operator")
			case errors.Is(err, metadata.ErrNodeConflict), errors.Is(err, metadata.ErrNodeTooOld):
				return err
			case err != nil && ctx.Err() == nil:
				r.Log.Warn("could not register the node, retrying", "err", err)
				again = time.After(registerPause)
			default:
				registered = true
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

// First reports whether this node is the only member of the metadata group.
func (r *Registration) First() bool {
	servers := r.Store.Group().Servers()
	return len(servers) == 1 && servers[0].ID == r.Record.ServerID()
}

// removeOthers removes all other nodes from the cluster and returns their names. It
// completes an offline recovery before any partition is opened, so that none gets a
// replica of a former member.
func (r *Registration) removeOthers(ctx context.Context) ([]string, error) {
	removed := map[string]bool{}
	for _, node := range r.Store.Nodes() {
		if node.ServerID() == r.Record.ServerID() {
			continue
		}
		if _, err := r.Store.RemoveNode(ctx, node.ID, true); err != nil {
			return nil, fmt.Errorf("remove node %s after the recovery: %w", node.Name, err)
		}
		removed[node.Name] = true
	}
	return slices.Sorted(maps.Keys(removed)), nil
}
