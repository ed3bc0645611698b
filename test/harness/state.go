package harness

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// ClusterState is what a node says about the cluster.
type ClusterState struct {
	Name       string           `json:"cluster_name"`
	Status     string           `json:"status"`
	Problems   []string         `json:"problems"`
	Feature    FeatureState     `json:"feature_level"`
	Nodes      []NodeState      `json:"nodes"`
	Partitions []PartitionState `json:"partitions"`
}

// FeatureState is the cluster's feature level, zero from servers that do not tell.
type FeatureState struct {
	Level   int      `json:"level"`
	Highest int      `json:"highest"`
	Held    bool     `json:"held"`
	Waiting []string `json:"waiting"`
}

// NodeState is one node of a ClusterState.
type NodeState struct {
	ID   int    `json:"id"`
	Name string `json:"name"`
}

// PartitionState is one partition of a ClusterState.
type PartitionState struct {
	ID       int            `json:"id"`
	Leader   int            `json:"leader"` // node id, 0: none
	Term     int            `json:"term"`
	Replicas []ReplicaState `json:"replicas"`
}

// ReplicaState is one replica of a partition.
type ReplicaState struct {
	Node     int    `json:"node"`
	Role     string `json:"role"`
	CaughtUp bool   `json:"caught_up"`
}

// State asks a node how the cluster is.
func (s *Server) State(ctx context.Context) (ClusterState, error) {
	var state ClusterState
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	answer, err := s.Client.do(ctx, http.MethodGet, s.Client.admin+"/cluster-health", nil)
	if err == nil {
		err = answer.Decode(&state)
	}
	return state, err
}

// Whole tells what keeps every partition from having a leader and all its replicas
// up to date on this many nodes.
func (c ClusterState) Whole(replicas int) error {
	if len(c.Partitions) == 0 {
		return errors.New("no partitions are known")
	}
	for _, p := range c.Partitions {
		if p.Leader == 0 {
			return fmt.Errorf("partition %d has no leader", p.ID)
		}
		voters := 0
		for _, r := range p.Replicas {
			if r.CaughtUp && (r.Role == "voter" || r.Role == "leader") {
				voters++
			}
		}
		if voters != replicas {
			return fmt.Errorf("partition %d has %d voters up to date instead of %d: %+v", p.ID, voters, replicas, p.Replicas)
		}
	}
	return nil
}

// Leads returns how many partitions the named node leads.
func (c ClusterState) Leads(name string) int {
	id := 0
	for _, n := range c.Nodes {
		if n.Name == name {
			id = n.ID // the last of this name is the one that lives
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

// AwaitWhole waits until every partition has a leader and all replicas are up to
// date, as each node sees it.
func (c *Cluster) AwaitWhole(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return c.each(func(n *Server) error {
		for {
			state, err := n.State(ctx)
			if err == nil {
				if err = state.Whole(min(3, len(c.Nodes))); err == nil {
					return nil
				}
			}
			if !sleep(ctx, 20*time.Millisecond) {
				return fmt.Errorf("not whole within %s: %w", limit, err)
			}
		}
	})
}

// sleep waits; false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
