package metadata

import (
	"context"

	"github.com/hashicorp/raft"

	"platform/metadata/placement"
)

// Observer provides the controller with the state of the cluster that is not in the
// metadata.
type Observer interface {
	// Liveness returns the liveness of members by ID. A missing member is suspect. Nodes
	// should be reported as lost only after a long time, since their replicas are then
	// replaced.
	Liveness() map[uint32]placement.Liveness
	// Partitions returns the Raft configurations of the partitions by ID, except for those
	// whose leader does not respond.
	Partitions(ctx context.Context) map[uint32]Configuration
	// Applied requests AppliedIndex of a member's Store.
	Applied(ctx context.Context, n Node) (uint64, error)
	// Announcements returns the announcements of members about feature levels by ID, except
	// for members that do not respond.
	Announcements(ctx context.Context) map[uint32]Announcement
	// Changed is readable when the result of the other methods may have changed; it may be
	// nil. The controller also polls every few seconds.
	Changed() <-chan struct{}
}

// Configuration is the configuration of a Raft group according to its leader.
type Configuration struct {
	Leader  raft.ServerID
	Servers []raft.Server
}

// placementInput converts the observations to the input of placement. The records of
// removed nodes are needed for servers that still exist.
func placementInput(l *Layout, records []Node, liveness map[uint32]placement.Liveness, observed map[uint32]Configuration) placement.Cluster {
	c := placement.Cluster{Replication: l.Cluster.Replicas(), MaxMoves: maxMoves}
	for _, n := range l.Nodes {
		c.Nodes = append(c.Nodes, placement.Node{ID: n.ID, Liveness: liveness[n.ID], Draining: n.Draining})
	}
	ids := map[raft.ServerID]uint32{}
	for _, n := range records {
		ids[n.ServerID()] = n.ID
	}
	for _, p := range l.Partitions {
		q := placement.Partition{ID: p.ID, Replicas: p.Replicas, Leader: ids[observed[p.ID].Leader]}
		for _, s := range observed[p.ID].Servers {
			if s.Suffrage == raft.Voter {
				q.Voters = append(q.Voters, ids[s.ID])
			} else {
				q.Others = append(q.Others, ids[s.ID])
			}
		}
		c.Partitions = append(c.Partitions, q)
	}
	return c
}
