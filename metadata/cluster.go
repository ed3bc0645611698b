package metadata

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/raft"

	"platform/internal/feature"
)

// Cluster is what is decided when a cluster comes into being. Only Replication,
// FlowControl and FeatureLevel change after.
type Cluster struct {
	Name          string
	ID            string // unlike the name, no two clusters share it
	Partitions    uint32
	ProvisionedAt time.Time
	// Replication is how many replicas each partition should have, as far as there
	// are nodes. Read it with Replicas: clusters of old have 0.
	Replication uint32
	// FlowControl says that flow control was enabled on all partitions. It stays so.
	FlowControl bool
	// FeatureLevel is what all members can read; it only rises. Read it with Level:
	// clusters at the first level have 0.
	FeatureLevel feature.Level
	// FeatureLevelAt is when the cluster reached it, zero for the first level.
	FeatureLevelAt time.Time
}

// Level is the cluster's feature level.
func (c Cluster) Level() feature.Level { return max(c.FeatureLevel, feature.Level1) }

// Replicas is how many replicas each partition should have, at least 1.
func (c Cluster) Replicas() int { return int(max(c.Replication, 1)) }

// Node is one member of the cluster, known by its name.
type Node struct {
	Name string
	ID   uint32 // given out in order of registration, from 1
	// Incarnation changes when the node's data directory is lost: what the node
	// promised as a Raft voter went with it.
	Incarnation string
	// The addresses under which other nodes and users reach it.
	FabricAddress  string
	IngressAddress string
	AdminAddress   string
	RegisteredAt   time.Time // first registration of the name
	// Draining says that the node's replicas are to be moved away.
	Draining bool
	// Removed nodes are no members any more.
	Removed bool
	// FeatureLevel is the highest level that the node's server supports, as of its last
	// start; 0 for nodes that registered while the cluster was at the first level.
	FeatureLevel feature.Level
}

// ServerID names the node's replicas in the configurations of Raft groups.
func (n Node) ServerID() raft.ServerID { return raft.ServerID(n.Name + "/" + n.Incarnation) }

// ReplicaID names the node's replica of a partition. The first replica has the node's
// server id; each one that replaced it after its data had become unusable has a number
// behind it, so that it cannot be taken for a former self.
func (n Node) ReplicaID(replica uint32) raft.ServerID { return ReplicaID(n.ServerID(), replica) }

// ReplicaID is the server id of the replica with that number on a node.
func ReplicaID(node raft.ServerID, replica uint32) raft.ServerID {
	if replica == 0 {
		return node
	}
	return raft.ServerID(fmt.Sprintf("%s#%d", node, replica))
}

// ReplicaNode is the node of a replica and the replica's number.
func ReplicaNode(id raft.ServerID) (node raft.ServerID, replica uint32) {
	at := strings.LastIndexByte(string(id), '#')
	if at < 0 {
		return id, 0
	}
	n, err := strconv.ParseUint(string(id[at+1:]), 10, 32)
	if err != nil {
		return id, 0
	}
	return id[:at], uint32(n)
}

// RaftAddress is where other nodes reach the node's replicas: host and port of its
// fabric address.
func (n Node) RaftAddress() raft.ServerAddress {
	address := n.FabricAddress
	if _, rest, ok := strings.Cut(address, "://"); ok {
		address = rest
	}
	address, _, _ = strings.Cut(address, "/")
	return raft.ServerAddress(address)
}

// Partition is a partition's place in the partition table.
type Partition struct {
	ID uint32
	// Version grows with each change, from 1. 0 says that the place was never
	// stored: the partition is on the only node there is.
	Version uint64
	// Replicas are the ids of the nodes that should have a replica. The first one
	// should lead. It is empty only as long as there is no node.
	Replicas []uint32
}

// Layout is who belongs to the cluster and which node has what, at one moment. It
// is immutable.
type Layout struct {
	Cluster    Cluster
	Nodes      []Node      // members, sorted by name
	Partitions []Partition // by id; none until the cluster is provisioned
}

// Node is the member with that id; false if there is none.
func (l *Layout) Node(id uint32) (Node, bool) {
	at := slices.IndexFunc(l.Nodes, func(n Node) bool { return n.ID == id })
	if at < 0 {
		return Node{}, false
	}
	return l.Nodes[at], true
}

// layout is the state's, with the places that are not stored.
func (s *state) layout() *Layout {
	l := &Layout{Cluster: s.cluster, Nodes: s.members()}
	if s.cluster.ID == "" {
		return l
	}
	l.Partitions = make([]Partition, s.cluster.Partitions)
	for id := range l.Partitions {
		l.Partitions[id] = s.partition(uint32(id))
	}
	return l
}

// members are the nodes that were not removed.
func (s *state) members() []Node {
	if !slices.ContainsFunc(s.nodes, func(n Node) bool { return n.Removed }) {
		return s.nodes
	}
	return slices.DeleteFunc(slices.Clone(s.nodes), func(n Node) bool { return n.Removed })
}

// partition is the place of a partition. Those that are not stored are on the
// oldest member, which is the only one: the table is stored when a second one
// comes.
func (s *state) partition(id uint32) Partition {
	at, stored := slices.BinarySearchFunc(s.partitions, id, comparePartition)
	if stored {
		return s.partitions[at]
	}
	p := Partition{ID: id}
	if members := s.members(); len(members) > 0 {
		oldest := members[0].ID
		for _, n := range members {
			oldest = min(oldest, n.ID)
		}
		p.Replicas = []uint32{oldest}
	}
	return p
}
