package cluster

import (
	"slices"

	"github.com/hashicorp/raft"

	"platform/internal/cluster/membership"
	"platform/internal/raftgroup"
	"platform/metadata"
	"platform/partition"
)

// gossipState returns the state of a node according to gossip; node self is alive.
func gossipState(members *membership.Members, self raft.ServerID, node metadata.Node) membership.State {
	if node.ServerID() == self {
		return membership.Alive
	}
	return members.State(node.Name, node.Incarnation)
}

// lossesSurvived returns how many nodes, whichever they are, can fail while all partitions
// and the metadata keep a majority: now, and once all replicas are complete. voters are those of
// the metadata, and leads are the partitions that this node leads: their leader knows which replicas
// vote and have the log. Of other partitions all replicas in the layout count.
func lossesSurvived(layout *metadata.Layout, voters []raft.Server, leads map[uint32]partition.Status, alive func(node raft.ServerID) bool) (now, whole int) {
	taking := 0
	for _, node := range layout.Nodes {
		if !node.Draining {
			taking++
		}
	}
	whole = metadata.LossesSurvived(taking, layout.Cluster.Replicas())
	now = spare(voters, alive)
	for _, p := range layout.Partitions {
		if st, leading := leads[p.ID]; leading {
			now = min(now, spare(st.Members.Servers, func(id raft.ServerID) bool {
				node, _ := metadata.ReplicaNode(id)
				return alive(node) && !behind(st, id)
			}))
			continue
		}
		well := 0
		for _, id := range p.Replicas {
			if node, known := layout.Node(id); known && alive(node.ServerID()) {
				well++
			}
		}
		now = min(now, metadata.SpareVoters(len(p.Replicas), well))
	}
	return now, whole
}

// spare returns how many voters of a group can be lost before it loses its majority.
func spare(servers []raft.Server, healthy func(raft.ServerID) bool) int {
	voters, well := 0, 0
	for _, s := range servers {
		if s.Suffrage != raft.Voter {
			continue
		}
		voters++
		if healthy(s.ID) {
			well++
		}
	}
	return metadata.SpareVoters(voters, well)
}

// behind reports whether the leader knows that a replica lacks a part of the log.
func behind(st partition.Status, id raft.ServerID) bool {
	return slices.ContainsFunc(st.Followers, func(f raftgroup.Follower) bool { return f.ID == id && !f.CaughtUp })
}
