package admin

import (
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"platform/admin/rest"
	"platform/internal/errcode"
	"platform/internal/ids"
	"platform/metadata"
)

// Survival is the number of arbitrary nodes that can be lost while every partition and the metadata
// keep a majority.
type Survival struct {
	// now is the number in the current state, Whole with all nodes up and all replicas complete.
	Now   int `json:"now"`
	Whole int `json:"whole"`
}

// survives returns the survival of a cluster.
func survives(state *ClusterState, replication int) Survival {
	s := Survival{Whole: metadata.LossesSurvived(state.placeableNodes(), replication)}
	s.Now = spare(state.Metadata.Voters, func(id ids.Node) bool { return up(state.node(id)) })
	if !state.Metadata.Quorum {
		s.Now = 0
	}
	for i := range state.Partitions {
		s.Now = min(s.Now, state.Partitions[i].spare(state))
	}
	return s
}

// spare returns how many voters of a group can be lost before it loses its majority. healthy
// reports whether a voter is healthy.
func spare(voters []ids.Node, healthy func(ids.Node) bool) int {
	alive := 0
	for _, id := range voters {
		if healthy(id) {
			alive++
		}
	}
	return metadata.SpareVoters(len(voters), alive)
}

// spare returns how many voters of the partition can be lost.
func (p *PartitionState) spare(state *ClusterState) int {
	if p.Leader == 0 {
		return 0
	}
	var voters []ids.Node
	for _, r := range p.Replicas {
		if r.Role == RoleLeader || r.Role == RoleVoter {
			voters = append(voters, r.Node)
		}
	}
	return spare(voters, func(id ids.Node) bool {
		r := p.replica(id)
		return up(state.node(id)) && r.Answers && r.Quarantine == "" && (!r.LagKnown || r.CaughtUp)
	})
}

func up(n *NodeState) bool { return n != nil && n.State == NodeAlive && n.Answers }

// checkSurvival returns an error if a change leaves a cluster that tolerates no node loss, unless
// force is given. nodes and replication are the values after the change.
func (s *Server) checkSurvival(c echo.Context, change string, nodes, replication int) error {
	force, err := rest.QueryBool(c, "force")
	if err != nil || force {
		return err
	}
	cluster, _ := s.registry.Cluster()
	before, after := metadata.LossesSurvived(s.placeableNodes(), cluster.Replicas()), metadata.LossesSurvived(nodes, replication)
	if after > 0 || before == 0 {
		return nil
	}
	return &rest.Error{
		Status: http.StatusConflict, Code: errcode.META0019,
		Message: fmt.Sprintf("%s leaves a cluster that survives no node failure (now: %d): %s; to proceed anyway, repeat it with --force (in the admin API force=true)",
			change, before, noToleranceReason(nodes, replication)),
	}
}

// noToleranceReason describes why a cluster tolerates no node loss.
func noToleranceReason(nodes, replication int) string {
	switch replicas := min(nodes, replication); {
	case replicas == 1 && nodes > 1:
		return "each partition is on one node only"
	case replicas == 1:
		return "there is one node only"
	default:
		return fmt.Sprintf("with %d replicas, each write needs both", replicas)
	}
}

// placeableNodes returns the number of nodes that accept replicas: those that are not being drained.
func (s *Server) placeableNodes() int {
	count := 0
	for _, n := range s.registry.Nodes() {
		if !n.Draining {
			count++
		}
	}
	return count
}
