package harness

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"platform/internal/ids"
)

// ClusterState is a node's view of the cluster.
type ClusterState struct {
	Name       string           `json:"cluster_name"`
	Status     string           `json:"status"`
	Problems   []string         `json:"problems"`
	Feature    FeatureState     `json:"feature_level"`
	Nodes      []NodeState      `json:"nodes"`
	Partitions []PartitionState `json:"partitions"`
}

// FeatureState is the cluster's feature level, zero if the server does not report it.
type FeatureState struct {
	Level   int      `json:"level"`
	Highest int      `json:"highest"`
	Held    bool     `json:"held"`
	Waiting []string `json:"waiting"`
}

// NodeState is one node of a ClusterState.
type NodeState struct {
	ID   ids.Node `json:"id"`
	Name string   `json:"name"`
}

// PartitionState is one partition of a ClusterState.
type PartitionState struct {
	ID       int            `json:"id"`
	Leader   ids.Node       `json:"leader"` // 0: none
	Term     int            `json:"term"`
	Replicas []ReplicaState `json:"replicas"`
}

// ReplicaState is one replica of a partition.
type ReplicaState struct {
	Node     ids.Node `json:"node"`
	Role     string   `json:"role"`
	Answers  bool     `json:"answers"` // the node has opened it
	CaughtUp bool     `json:"caught_up"`
}

// State returns the node's view of the cluster.
func (s *Server) State(ctx context.Context) (ClusterState, error) {
	var state ClusterState
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	resp, err := s.Client.do(ctx, http.MethodGet, s.Client.admin+"/cluster-health", nil)
	if err == nil {
		err = resp.Decode(&state)
	}
	return state, err
}

// CheckReplicated returns an error unless every partition has a leader and exactly the
// given number of voters that have caught up and are open. The leader reports a replica as caught up
// for a moment after its node was killed, also if the node starts again with a damaged disk.
func (c ClusterState) CheckReplicated(replicas int) error {
	if len(c.Partitions) == 0 {
		return errors.New("no partitions")
	}
	for _, p := range c.Partitions {
		if p.Leader == 0 {
			return fmt.Errorf("partition %d has no leader", p.ID)
		}
		voters := 0
		for _, r := range p.Replicas {
			if r.Answers && r.CaughtUp && (r.Role == "voter" || r.Role == "leader") {
				voters++
			}
		}
		if voters != replicas {
			return fmt.Errorf("partition %d has %d caught-up voters, want %d: %+v", p.ID, voters, replicas, p.Replicas)
		}
	}
	return nil
}

// PartitionsLed returns how many partitions the named node leads.
func (c ClusterState) PartitionsLed(name string) int {
	id := ids.Node(0)
	for _, n := range c.Nodes {
		if n.Name == name {
			id = n.ID // the last node with this name is the live one
		}
	}
	count := 0
	for _, p := range c.Partitions {
		if p.Leader == id && id != 0 {
			count++
		}
	}
	return count
}

// AwaitReplicated waits until CheckReplicated succeeds on every node with three
// replicas, or one per node in smaller clusters.
func (c *Cluster) AwaitReplicated(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return c.each(func(n *Server) error {
		for {
			state, err := n.State(ctx)
			if err == nil {
				if err = state.CheckReplicated(min(3, len(c.Nodes))); err == nil {
					return nil
				}
			}
			if !Sleep(ctx, 20*time.Millisecond) {
				return fmt.Errorf("not fully replicated within %s: %w", timeout, err)
			}
		}
	})
}
