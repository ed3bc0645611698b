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

// Cluster is what is decided when a cluster is created. Only Replication, FlowControl and
// FeatureLevel change later.
type Cluster struct {
	Name          string
	ID            string // unlike the name, unique
	Partitions    uint32
	ProvisionedAt time.Time
	// Replication is the desired number of replicas per partition, as far as there are
	// nodes. Use Replicas to read it: legacy clusters have 0.
	Replication uint32
	// FlowControl means that flow control is enabled on all partitions. It is never
	// disabled.
	FlowControl bool
	// FeatureLevel is the level that all members support; it only rises. Use Level to read
	// it: clusters at the first level have 0.
	FeatureLevel feature.Level
	// FeatureLevelAt is when the cluster reached it, zero for the first level.
	FeatureLevelAt time.Time
}

// Level returns the cluster's feature level.
func (c Cluster) Level() feature.Level { return max(c.FeatureLevel, feature.Level1) }

// Replicas returns the desired number of replicas per partition, at least 1.
func (c Cluster) Replicas() int { return int(max(c.Replication, 1)) }

// Node is one member of the cluster, identified by its name.
type Node struct {
	Name string
	ID   uint32 // assigned in order of registration, from 1
	// Incarnation changes when the node's data directory is lost, and with it the Raft term
	// and vote.
	Incarnation string
	// The addresses at which other nodes and clients reach it.
	FabricAddress  string
	IngressAddress string
	AdminAddress   string
	RegisteredAt   time.Time // first registration of the name
	// Draining means that the node's replicas are to be moved away.
	Draining bool
	// Removed nodes are no longer members.
	Removed bool
	// FeatureLevel is the highest level that the node's server supports, as of its last
	// start; 0 for nodes that registered while the cluster was at the first level.
	FeatureLevel feature.Level
}

// ServerID identifies the node's replicas in the configurations of Raft groups.
func (n Node) ServerID() raft.ServerID { return raft.ServerID(n.Name + "/" + n.Incarnation) }

// ReplicaID identifies the node's replica of a partition. The first replica has the node's
// server ID; each later one, whose predecessor's data was removed, has a number
// appended, so that it cannot be confused with its predecessor.
func (n Node) ReplicaID(replica uint32) raft.ServerID { return ReplicaID(n.ServerID(), replica) }

// ReplicaID returns the server ID of the replica with that number on a node.
func ReplicaID(node raft.ServerID, replica uint32) raft.ServerID {
	if replica == 0 {
		return node
	}
	return raft.ServerID(fmt.Sprintf("%s#%d", node, replica))
}

// ReplicaNode returns the node of a replica and the replica's number.
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

// RaftAddress returns where other nodes reach the node's replicas: host and port of its
// fabric address.
func (n Node) RaftAddress() raft.ServerAddress {
	address := n.FabricAddress
	if _, rest, ok := strings.Cut(address, "://"); ok {
		address = rest
	}
	address, _, _ = strings.Cut(address, "/")
	return raft.ServerAddress(address)
}

// Partition is an entry of the partition table.
type Partition struct {
	ID uint32
	// Version grows with each change, from 1. 0 means that the entry was never stored: the
	// partition is on the only node.
	Version uint64
	// Replicas are the IDs of the nodes that should have a replica. The first one should
	// lead. It is empty only while there are no nodes.
	Replicas []uint32
}

// Layout is the members of the cluster and the partition table at one moment. It is
// immutable.
type Layout struct {
	Cluster    Cluster
	Nodes      []Node      // by ID; none until the cluster is provisioned
	Partitions []Partition // by id; none until the cluster is provisioned
}

// Node returns the member with that ID; false if there is none.
func (l *Layout) Node(id uint32) (Node, bool) {
	at := slices.IndexFunc(l.Nodes, func(n Node) bool { return n.ID == id })
	if at < 0 {
		return Node{}, false
	}
	return l.Nodes[at], true
}

// layout returns the layout of the state, including entries that are not stored.
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

// members returns the nodes that were not removed.
func (s *state) members() []Node {
	if !slices.ContainsFunc(s.nodes, func(n Node) bool { return n.Removed }) {
		return s.nodes
	}
	return slices.DeleteFunc(slices.Clone(s.nodes), func(n Node) bool { return n.Removed })
}

// partition returns the table entry of a partition. If it is not stored, the partition is
// on the oldest member, which is the only one: the table is stored when a second one joins.
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
