package node

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"platform/internal/feature"
	"platform/metadata"
)

// featureLevel is the cluster's feature level, the first one until this node is part of
// a cluster.
func (n *Node) featureLevel() feature.Level {
	if store := n.cluster.store.Load(); store != nil {
		return store.FeatureLevel()
	}
	return feature.Level1
}

// RaiseFeatureLevel implements admin.Cluster.
func (c clusterAdmin) RaiseFeatureLevel(ctx context.Context, level uint32) (metadata.Cluster, error) {
	layout, _ := c.n.metadata.Layout()
	plan := metadata.PlanLevel(layout, announcements(c.n.statuses(ctx)))
	switch wanted := feature.Level(level); {
	case wanted == plan.Level:
		return layout.Cluster, nil
	case wanted < plan.Level:
		return metadata.Cluster{}, refuse(http.StatusConflict, "the cluster is at feature level %d, which cannot be lowered", plan.Level)
	case wanted > plan.Highest:
		return metadata.Cluster{}, refuse(http.StatusConflict, "no node supports feature level %d; the highest is %d", level, plan.Highest)
	case wanted > plan.Next:
		return metadata.Cluster{}, refuse(http.StatusConflict, "feature level %d is not supported by all nodes: %s", level, strings.Join(plan.Waiting, "; "))
	default:
		plan.Next = wanted
	}
	cluster, err := c.n.metadata.RaiseFeatureLevel(ctx, plan)
	if errors.Is(err, metadata.ErrMembersChanged) {
		return cluster, refuse(http.StatusConflict, "nodes joined or left meanwhile; try again")
	}
	return cluster, err
}
