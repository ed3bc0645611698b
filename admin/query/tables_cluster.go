package query

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"platform/internal/ids"
)

// Cluster provides the rows of the cluster tables.
type Cluster interface {
	// State returns the cluster as seen by this node, including what reachable nodes report about
	// themselves.
	State(context.Context) (*ClusterState, error)
}

// ClusterState is the cluster as seen by one node.
type ClusterState struct {
	At         time.Time
	Level      uint32 // feature level of the cluster
	Nodes      []Node
	Partitions []Partition
	Replicas   []Replica
}

// Node is a member of the cluster.
type Node struct {
	ID               ids.Node
	Name             string
	Incarnation      string
	State            string // alive, dead, left or unknown
	Address          string // for other nodes
	Ingress, Admin   string // addresses
	Draining         bool
	MetadataRole     string // leader, voter, learner, none or unknown
	Leaders          int    // partitions that it leads
	Replicas         int    // partitions that it has a replica of
	Version          string
	FeatureLevel     uint32    // highest that its server supports, 0 if unknown
	StartedAt, Since time.Time // of the process; of the state

	// The fields below are empty for a node that does not respond.
	Metadata uint64    // applied position in the metadata log
	Storage  uint32    // version of the format of its data directory
	Features []string  // enabled by its configuration
	Settings []Setting // its running configuration, without secrets
}

// Partition is a partition.
type Partition struct {
	ID, Count           uint32 // Count: of all partitions
	FirstKey, LastKey   uint64
	Group               uint32   // of Raft
	Leader              ids.Node // 0 if unknown
	Term, PlacedVersion uint64
	Placed              []ids.Node
}

// Replica is a replica of a partition, or a node that should have one.
type Replica struct {
	Partition                          uint32
	Node                               ids.Node
	Group                              uint32
	Role                               string // leader, voter, learner, none or unknown
	Answers, Serving                   bool
	Term                               uint64
	Applied, Committed, Last, Snapshot uint64 // log entries
	Placed                             bool   // the placement includes the node
	PlacedVersion                      uint64
	Rules                              uint64 // version of the rule book in its tables
	Quarantine                         string // why it is not served, empty if it is
}

// Setting is a key of a configuration.
type Setting struct {
	Key, Value string
}

// clusterRow is a row with the state of the cluster.
type clusterRow[R any] struct {
	*ClusterState
	row *R
}

// node returns a node; an empty one if unknown.
func (s *ClusterState) node(id ids.Node) Node {
	for _, n := range s.Nodes {
		if n.ID == id {
			return n
		}
	}
	return Node{ID: id}
}

// plainID returns the id of a node in the form N1, NULL for no node.
func plainID(id ids.Node) value {
	if id == 0 {
		return nil
	}
	return id.String()
}

func plainIDs(nodes []ids.Node) []string {
	out := make([]string, len(nodes))
	for i, id := range nodes {
		out[i] = id.String()
	}
	return out
}

// generation returns the id of a node with a number that grows with each start of its process:
// the time of the start in seconds since 1970, 0 if unknown.
func (n Node) generation() value {
	if n.ID == 0 {
		return nil
	}
	since := int64(0)
	if !n.StartedAt.IsZero() {
		since = n.StartedAt.Unix()
	}
	return fmt.Sprintf("%s:%d", n.ID, since)
}

// partition returns a partition.
func (s *ClusterState) partition(id uint32) Partition {
	for _, p := range s.Partitions {
		if p.ID == id {
			return p
		}
	}
	return Partition{ID: id}
}

// clusterRows returns the source of a table of the cluster.
func clusterRows[R any](list func(*ClusterState) []R, identity func(*R, []byte) []byte) source[clusterRow[R]] {
	return fixed(func(ctx context.Context, s *session) ([]clusterRow[R], error) {
		if s.engine.cfg.Cluster == nil {
			return nil, nil
		}
		state, err := s.engine.cfg.Cluster.State(ctx)
		if err != nil {
			return nil, err
		}
		var rows []clusterRow[R]
		all := list(state)
		for i := range all {
			rows = append(rows, clusterRow[R]{state, &all[i]})
		}
		return rows, nil
	}, func(r *clusterRow[R], b []byte) []byte { return identity(r.row, b) })
}

// numbered is the identity of rows that are identified by numbers.
func numbered[R any](numbers func(*R) []uint32) func(*R, []byte) []byte {
	return func(r *R, b []byte) []byte {
		for _, n := range numbers(r) {
			b = binary.BigEndian.AppendUint32(b, n)
		}
		return b
	}
}

func clusterTables() []*Table {
	return []*Table{
		partitionState(), nodesTable(), partitionsTable(), partitionReplicaSet(), logsTable(), logsTailSegments(),
		logletWorkers(), bifrostReadStreams(), configTable(),
	}
}

// always returns a column with a constant value.
func always[R any](name string, typ Type, about string, v value) column[R] {
	return plain(name, typ, about, func(*R) value { return v })
}

// nodeSetting is a setting of a node.
type nodeSetting struct {
	node *Node
	Setting
}

func configTable() *Table {
	type row = clusterRow[nodeSetting]
	settings := clusterRows(func(s *ClusterState) (all []nodeSetting) {
		for i := range s.Nodes {
			for _, set := range s.Nodes[i].Settings {
				all = append(all, nodeSetting{&s.Nodes[i], set})
			}
		}
		return all
	}, func(r *nodeSetting, b []byte) []byte {
		return append(binary.BigEndian.AppendUint32(b, uint32(r.node.ID)), r.Key...)
	})
	return define("config", "The running configuration of each node that responds, without secrets. A node that does not respond is omitted; its nodes_configuration_version in nodes is NULL then.", settings, []column[row]{
		plain("plain_node_id", Text, "node, such as N1", func(r *row) value { return plainID(r.row.node.ID) }),
		plain("gen_node_id", Text, "node and when it was started, such as N1:1795168807", func(r *row) value { return r.row.node.generation() }),
		plain("node", Text, "name of the node", func(r *row) value { return text(r.row.node.Name) }),
		plain("key", Text, "dotted key", func(r *row) value { return r.row.Key }),
		plain("value", Text, "value; *** for a secret", func(r *row) value { return text(r.row.Value) }),
	})
}
