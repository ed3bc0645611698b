package node

import "platform/internal/feature"

// featureLevel is the cluster's feature level, the first one until this node is part of
// a cluster.
func (n *Node) featureLevel() feature.Level {
	if store := n.cluster.store.Load(); store != nil {
		return store.FeatureLevel()
	}
	return feature.Level1
}
