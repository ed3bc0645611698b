package admin

import (
	"context"
	"time"

	"platform/admin/rest"
	"platform/internal/ids"
	"platform/internal/stats"
	"platform/metadata"
)

// Cluster provides the state of all nodes, and the operations that only certain nodes can execute.
// Its methods may be called concurrently.
type Cluster interface {
	// State returns the cluster as seen by this node. It includes nodes that do not respond in
	// time, with the data that is known without them. It returns an error if not even the state of
	// this node is available.
	State(ctx context.Context) (*ClusterState, error)
	// Activity returns a number that increases with every event of an invocation, provided that all
	// nodes respond.
	Activity(ctx context.Context) (uint64, error)
	// Stats returns the time series of invocations of all nodes.
	Stats(ctx context.Context, q stats.Query) []NodeStats
	// Events returns the changes of the cluster that all nodes have observed.
	Events(ctx context.Context) []NodeEvents
	// LogLevels returns the log levels of nodes, in the order given. It applies change first unless
	// change is nil.
	LogLevels(ctx context.Context, nodes []metadata.Node, change *LogLevelsChange) []NodeLogLevels
	// Transfer moves the leadership of a partition to a node and returns when the node leads. The
	// leader may move again when leaders are rebalanced. The error can be a *Rejection, including
	// when the node does not become leader in time.
	Transfer(ctx context.Context, partition uint32, node ids.Node) error
	// RecoverPartitions recovers partitions that have lost their majority, all of them if ids is
	// empty: the most recent replica becomes the only one. Entries that only lost replicas had are
	// lost. With dryRun it returns what it would do. wait has it wait until leaders that have lost their
	// majority have stepped down; otherwise it uses what is known at the moment. The error can be a *Rejection.
	RecoverPartitions(ctx context.Context, ids []uint32, dryRun, wait bool) ([]PartitionRecovery, error)
	// RaiseFeatureLevel raises the cluster's feature level to one that all members support, even if
	// the configuration of a node holds the level. The error can be a *Rejection.
	RaiseFeatureLevel(ctx context.Context, level uint32) (metadata.Cluster, error)
}

// NodeStats are the time series of one node.
type NodeStats struct {
	ID     ids.Node
	Name   string
	Result stats.Result
	Reason string // why there is no series; empty if there is
}

// ClusterState is the cluster as one node sees it.
type ClusterState struct {
	Metadata   MetadataState
	Feature    FeatureState
	Nodes      []NodeState      // by id
	Partitions []PartitionState // by id
}

// MetadataState is the Raft group of the metadata.
type MetadataState struct {
	Leader ids.Node // 0 if unknown
	// Quorum reports whether changes are possible: there is a leader that a majority of the voters
	// follows.
	Quorum bool
	// Unreachable reports that only other nodes follow the leader: this one cannot make changes.
	Unreachable bool
	Voters      []ids.Node
	Learners    []ids.Node // replicas without a vote
}

// FeatureState is the cluster's feature level and the levels it could have.
type FeatureState struct {
	Level uint32         `json:"level"`
	Since rest.Timestamp `json:"since,omitzero"` // absent for the first level
	// Supported is the highest level that all responding members support; Highest is the highest
	// level that any of them supports.
	Supported uint32 `json:"supported"`
	Highest   uint32 `json:"highest"`
	// Held reports whether the configuration of a node prevents automatic raises.
	Held bool `json:"held"`
	// Waiting lists the reasons why the level is not the highest.
	Waiting []string `json:"waiting"`
}

// NodeState is one member of the cluster.
type NodeState struct {
	ID   ids.Node `json:"id"`
	Name string   `json:"name"`
	// State is the liveness of the process as seen by this node.
	State Liveness `json:"state"`
	// Draining reports that an operator has requested to move the replicas away; Stopping that the
	// process is shutting down.
	Draining bool `json:"draining"`
	Stopping bool `json:"stopping"`
	// Answers reports that the node returned the state of its replicas; Self that it is the node
	// that handles the request.
	Answers bool `json:"answers"`
	Self    bool `json:"self"`
	// Disk describes a shortage of disk space and its consequence; empty if there is none.
	Disk string `json:"disk,omitempty"`
	// Usage is what the process uses of its machine; nil if the node does not respond.
	Usage *NodeUsage `json:"usage,omitempty"`
	// Metadata is the role in the metadata group.
	Metadata Role `json:"metadata_role"`
	// Leaders is the number of partitions that the node leads, Replicas the number of its replicas.
	Leaders  int `json:"leaders"`
	Replicas int `json:"replicas"`

	Address        string `json:"address"` // host and port for other nodes
	IngressAddress string `json:"ingress_address"`
	AdminAddress   string `json:"admin_address"`
	Version        string `json:"version,omitempty"`
	// FeatureLevel is the highest level that the server supports, 0 if unknown. FeatureHold reports
	// that its configuration holds the cluster's level.
	FeatureLevel uint32         `json:"feature_level,omitempty"`
	FeatureHold  bool           `json:"feature_level_hold,omitempty"`
	SecretKeys   []string       `json:"secret_keys,omitempty"` // IDs, the newest first
	Incarnation  string         `json:"incarnation"`
	RegisteredAt rest.Timestamp `json:"registered_at"`
	StartedAt    rest.Timestamp `json:"started_at,omitzero"` // of the process
	StateSince   rest.Timestamp `json:"state_since,omitzero"`
}

// NodeUsage is what the process of a node uses of its machine.
type NodeUsage struct {
	CPU         float64 `json:"cpu_cores"` // busy cores, on average over some seconds
	Cores       uint32  `json:"cores"`     // that the process may use
	Memory      uint64  `json:"memory_bytes"`
	MemoryLimit uint64  `json:"memory_limit_bytes,omitempty"` // of the machine or container
	DiskFree    uint64  `json:"disk_free_bytes,omitempty"`    // of the disk with the data
	DiskTotal   uint64  `json:"disk_total_bytes,omitempty"`
}

// Liveness is the state of a node's process as seen by other nodes.
type Liveness string

// The kinds of liveness.
const (
	NodeAlive   Liveness = "alive"
	NodeDead    Liveness = "dead" // stopped responding
	NodeLeft    Liveness = "left" // announced its shutdown
	NodeUnknown Liveness = "unknown"
)

// Role is the role of a replica in its Raft group.
type Role string

// The roles.
const (
	RoleLeader  Role = "leader"
	RoleVoter   Role = "voter"
	RoleLearner Role = "learner" // non-voting: new, or spare
	RoleNone    Role = "none"
	RoleUnknown Role = "unknown"
)

// PartitionState is one partition.
type PartitionState struct {
	ID     uint32   `json:"id"`
	Leader ids.Node `json:"leader,omitempty"` // 0 if unknown
	Term   uint64   `json:"term"`
	// Placed lists the nodes of the placement; the first one is the preferred leader. Version is
	// the version of the placement.
	Placed  []ids.Node `json:"placed"`
	Version uint64     `json:"placement_version"`
	// Replicas lists the members of the Raft group and the replicas on nodes, sorted by node.
	Replicas []ReplicaState `json:"replicas"`
}

// PartitionRecovery is the result of recovering a partition that has lost its majority.
type PartitionRecovery struct {
	Partition uint32 `json:"partition"`
	// Needed reports that the partition cannot elect a leader by itself, Recovered that it was
	// recovered. Refused is the reason why it was not or cannot be recovered.
	Needed    bool   `json:"needed"`
	Recovered bool   `json:"recovered"`
	Refused   string `json:"refused,omitempty"`
	// From is the node whose replica becomes the only one; its log ends at index Last.
	From     ids.Node `json:"from,omitempty"`
	Replica  string   `json:"replica,omitempty"`
	Applied  uint64   `json:"applied"`
	Last     uint64   `json:"last"`
	LastTerm uint64   `json:"last_term"`
	// Discarded lists the nodes whose outdated replicas are replaced by copies, Missing the lost
	// voters.
	Discarded []ids.Node `json:"discarded"`
	Missing   []string   `json:"missing"`
}

// ReplicaState is a replica of a partition. Indexes are those of Raft log entries.
type ReplicaState struct {
	Node ids.Node `json:"node"`
	Role Role     `json:"role"`
	// Serving reports that the replica leads and accepts requests, possibly through other nodes only.
	Serving bool `json:"serving,omitempty"`
	// Answers reports that the node returned the indexes.
	Answers   bool   `json:"answers"`
	Applied   uint64 `json:"applied"`
	Committed uint64 `json:"committed"`
	Last      uint64 `json:"last"`
	Snapshot  uint64 `json:"snapshot"`
	// Lag is the number of entries that the log is behind the leader's; 0 unless LagKnown. A new
	// leader does not know that of a replica that has not responded to it yet.
	Lag      uint64 `json:"lag"`
	LagKnown bool   `json:"lag_known"`
	// CaughtUp is reported by the leader: the replica responds and lacks only entries in flight.
	// False if the replica is quarantined, which the leader may not have noticed yet.
	CaughtUp bool `json:"caught_up"`
	// Quarantine is the reason why the node does not serve the replica; empty if it does.
	Quarantine string `json:"quarantine,omitempty"`
}

// node returns a member by ID, nil if there is none.
func (s *ClusterState) node(id ids.Node) *NodeState {
	for i := range s.Nodes {
		if s.Nodes[i].ID == id {
			return &s.Nodes[i]
		}
	}
	return nil
}

// replica returns the replica on a node, nil if there is none.
func (p *PartitionState) replica(node ids.Node) *ReplicaState {
	for i := range p.Replicas {
		if p.Replicas[i].Node == node {
			return &p.Replicas[i]
		}
	}
	return nil
}

// stateTimeout limits the collection of the cluster state.
const stateTimeout = 2 * time.Second
