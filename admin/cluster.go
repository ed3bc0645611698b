package admin

import (
	"context"
	"time"

	"platform/internal/stats"
	"platform/metadata"
)

// Cluster is what a node finds out about the others, and what only the nodes that it
// concerns can do. The methods may be called concurrently.
type Cluster interface {
	// State is the cluster as this node sees it. Nodes that do not answer in time are
	// in it with what is known without them; an error says that not even this node
	// knows anything.
	State(ctx context.Context) (*ClusterState, error)
	// Activity is a number that grows with everything that happens to invocations, at least if
	// all nodes answer.
	Activity(ctx context.Context) (uint64, error)
	// Stats returns the time series of invocations of all nodes.
	Stats(ctx context.Context, q stats.Query) []NodeStats
	// LogLevels returns the log levels of nodes, in their order, after changing them unless
	// change is nil.
	LogLevels(ctx context.Context, nodes []metadata.Node, change *LogLevelsChange) []NodeLogLevels
	// Transfer lets a node lead a partition, for now and as long as leaders need not
	// be spread anew. It returns when the node leads. The error can be a *Refusal, also
	// when the node does not take over in time.
	Transfer(ctx context.Context, partition, node uint32) error
	// RecoverPartitions makes the newest replica of each partition that has lost its
	// majority the only one, without ids of all of them. What only the lost ones had is
	// lost. With dryRun it only says what it would do. The error can be a *Refusal.
	RecoverPartitions(ctx context.Context, ids []uint32, dryRun bool) ([]PartitionRecovery, error)
	// RaiseFeatureLevel raises the cluster's feature level to a higher one that all
	// members support, also if nodes hold it. The error can be a *Refusal.
	RaiseFeatureLevel(ctx context.Context, level uint32) (metadata.Cluster, error)
}

// NodeStats are the time series of one node.
type NodeStats struct {
	ID     uint32
	Name   string
	Result stats.Result
	Reason string // why there are none; empty if there are
}

// ClusterState is the cluster as one node sees it.
type ClusterState struct {
	Metadata   MetadataState
	Feature    FeatureState
	Nodes      []NodeState      // by id
	Partitions []PartitionState // by id
}

// MetadataState is the Raft group that holds the metadata. Nodes are named by id.
type MetadataState struct {
	Leader uint32 // 0: none is known
	// Quorum says that changes can be made: there is a leader, and most voters follow
	// it.
	Quorum   bool
	Voters   []uint32
	Learners []uint32 // replicas without a vote
}

// FeatureState is the cluster's feature level and what it could be.
type FeatureState struct {
	Level uint32    `json:"level"`
	Since Timestamp `json:"since,omitzero"` // absent for the first level
	// Supported is what all members support, as far as they answer, Highest the highest
	// level that any of them supports.
	Supported uint32 `json:"supported"`
	Highest   uint32 `json:"highest"`
	// Held says that a node keeps the level from rising by itself.
	Held bool `json:"held"`
	// Waiting says in words why the level is not the highest.
	Waiting []string `json:"waiting"`
}

// NodeState is one member of the cluster.
type NodeState struct {
	ID   uint32 `json:"id"`
	Name string `json:"name"`
	// State is what is believed of the process.
	State Liveness `json:"state"`
	// Draining says that an operator has the replicas moved away, Stopping that the
	// process is about to end.
	Draining bool `json:"draining"`
	Stopping bool `json:"stopping"`
	// Answers says that the node told about its replicas, Self that this is the node
	// that was asked.
	Answers bool `json:"answers"`
	Self    bool `json:"self"`
	// Disk says that the node's disk is short of room and what follows, empty if it is
	// not.
	Disk string `json:"disk,omitempty"`
	// Metadata is the part in the metadata group.
	Metadata Role `json:"metadata_role"`
	// Leaders and Replicas count the partitions that the node leads, and those that
	// it has a replica of.
	Leaders  int `json:"leaders"`
	Replicas int `json:"replicas"`

	Address        string `json:"address"` // host and port for other nodes
	IngressAddress string `json:"ingress_address"`
	AdminAddress   string `json:"admin_address"`
	Version        string `json:"version,omitempty"`
	// FeatureLevel is the highest that the server supports, 0 if that is not known;
	// FeatureHold says that its settings hold the cluster's.
	FeatureLevel uint32    `json:"feature_level,omitempty"`
	FeatureHold  bool      `json:"feature_level_hold,omitempty"`
	Incarnation  string    `json:"incarnation"`
	RegisteredAt Timestamp `json:"registered_at"`
	StartedAt    Timestamp `json:"started_at,omitzero"` // of the process
	StateSince   Timestamp `json:"state_since,omitzero"`
}

// Liveness is what is believed of a node's process.
type Liveness string

// The kinds of liveness.
const (
	NodeAlive   Liveness = "alive"
	NodeDead    Liveness = "dead" // it stopped answering
	NodeLeft    Liveness = "left" // it said that it stops
	NodeUnknown Liveness = "unknown"
)

// Role is the part of a replica in its Raft group.
type Role string

// The roles.
const (
	RoleLeader  Role = "leader"
	RoleVoter   Role = "voter"
	RoleLearner Role = "learner" // without a vote: new, or spare
	RoleNone    Role = "none"
	RoleUnknown Role = "unknown"
)

// PartitionState is one partition.
type PartitionState struct {
	ID     uint32 `json:"id"`
	Leader uint32 `json:"leader,omitempty"` // node; 0: none is known
	Term   uint64 `json:"term"`
	// Placed are the nodes that should have a replica; the first should lead. Version
	// is that of this place.
	Placed  []uint32 `json:"placed"`
	Version uint64   `json:"placement_version"`
	// Replicas are those of the Raft group and those that nodes have, by node.
	Replicas []ReplicaState `json:"replicas"`
}

// PartitionRecovery is the recovery of a partition that has lost its majority.
type PartitionRecovery struct {
	Partition uint32 `json:"partition"`
	// Needed says that the partition cannot go on by itself, Recovered that it was
	// recovered, and Refused why it was not or could not be.
	Needed    bool   `json:"needed"`
	Recovered bool   `json:"recovered"`
	Refused   string `json:"refused,omitempty"`
	// From is the node whose replica becomes the only one; its log has Last entries.
	From     uint32 `json:"from,omitempty"`
	Replica  string `json:"replica,omitempty"`
	Applied  uint64 `json:"applied"`
	Last     uint64 `json:"last"`
	LastTerm uint64 `json:"last_term"`
	// Discarded are the nodes whose older replicas are copied anew, Missing the voters
	// that are gone.
	Discarded []uint32 `json:"discarded"`
	Missing   []string `json:"missing"`
}

// ReplicaState is one replica of a partition. The indexes are of log entries.
type ReplicaState struct {
	Node uint32 `json:"node"`
	Role Role   `json:"role"`
	// Serving says that the replica leads and takes requests.
	Serving bool `json:"serving,omitempty"`
	// Answers says that its node told the indexes.
	Answers   bool   `json:"answers"`
	Applied   uint64 `json:"applied"`
	Committed uint64 `json:"committed"`
	Last      uint64 `json:"last"`
	Snapshot  uint64 `json:"snapshot"`
	// Lag is by how many entries the log is behind the leader's. LagKnown says whether
	// that is known.
	Lag      uint64 `json:"lag"`
	LagKnown bool   `json:"lag_known"`
	// CaughtUp is what the leader says: the replica answers and has all but what is
	// under way.
	CaughtUp bool `json:"caught_up"`
	// Quarantine is why the node does not serve its replica, empty if it does.
	Quarantine string `json:"quarantine,omitempty"`
}

// node finds a member by id.
func (s *ClusterState) node(id uint32) *NodeState {
	for i := range s.Nodes {
		if s.Nodes[i].ID == id {
			return &s.Nodes[i]
		}
	}
	return nil
}

// replica finds the replica on a node.
func (p *PartitionState) replica(node uint32) *ReplicaState {
	for i := range p.Replicas {
		if p.Replicas[i].Node == node {
			return &p.Replicas[i]
		}
	}
	return nil
}

// stateTimeout bounds how long a node looks around before it answers.
const stateTimeout = 2 * time.Second
