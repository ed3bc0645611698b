package metadata

import (
	"context"

	"github.com/hashicorp/raft"

	"platform/metadata/placement"
)

// Observer is what the controller sees of the cluster beside the metadata.
type Observer interface {
	// Liveness says how the members are, by id. Who is missing is suspect. Nodes should
	// be called lost only after a long time, since their replicas are given up then.
	Liveness() map[uint32]placement.Liveness
	// Partitions are the Raft configurations of the partitions, by id. Those whose
	// leader does not answer are left out.
	Partitions(ctx context.Context) map[uint32]Configuration
	// Applied asks a member for AppliedIndex of its Store.
	Applied(ctx context.Context, n Node) (uint64, error)
	// Announcements are what members say about feature levels, by id. Those that do not
	// answer are left out.
	Announcements(ctx context.Context) map[uint32]Announcement
	// Changed is readable when the others would answer differently than before; nil
	// if that is not known. The controller looks every few seconds in any case.
	Changed() <-chan struct{}
}

// Configuration is the configuration of a Raft group as its leader has it.
type Configuration struct {
	Leader  raft.ServerID
	Servers []raft.Server
}

// placed translates what leaders say into what placement decides on. The records of
// removed nodes are needed for servers that are still there.
func placed(l *Layout, records []Node, liveness map[uint32]placement.Liveness, observed map[uint32]Configuration) placement.Cluster {
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
