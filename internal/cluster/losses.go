package cluster

import (
	"github.com/hashicorp/raft"

	"platform/internal/cluster/membership"
	"platform/metadata"
)

// gossipState returns the state of a node according to gossip; node self is alive.
func gossipState(members *membership.Members, self raft.ServerID, node metadata.Node) membership.State {
	if node.ServerID() == self {
		return membership.Alive
	}
	return members.State(node.Name, node.Incarnation)
}

// lossesSurvived returns how many nodes, whichever they are, can fail while all partitions
// and the metadata keep a majority: now, according to gossip, and once all replicas are
// complete.
func lossesSurvived(store *metadata.Store, members *membership.Members, self raft.ServerID) (now, whole int) {
	layout, _ := store.Layout()
	alive := map[uint32]bool{}
	taking := 0
	for _, node := range layout.Nodes {
		alive[node.ID] = gossipState(members, self, node) == membership.Alive
		if !node.Draining {
			taking++
		}
	}
	whole = metadata.LossesSurvived(taking, layout.Cluster.Replicas())
	voters, well := 0, 0
	for _, s := range store.Group().Servers() {
		if s.Suffrage != raft.Voter {
			continue
		}
		voters++
		for _, node := range layout.Nodes {
			if node.ServerID() == s.ID && alive[node.ID] {
				well++
			}
		}
	}
	now = metadata.SpareVoters(voters, well)
	for _, p := range layout.Partitions {
		well := 0
		for _, id := range p.Replicas {
			if alive[id] {
				well++
			}
		}
		now = min(now, metadata.SpareVoters(len(p.Replicas), well))
	}
	return now, whole
}
