package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"platform/admin/rest"
	"platform/internal/ids"
	"platform/metadata"
)

// memberRegistry stores the members of the cluster.
type memberRegistry interface {
	Cluster() (metadata.Cluster, bool)
	Nodes() []metadata.Node
	SetReplication(ctx context.Context, replicas int) (metadata.Cluster, error)
	DrainNode(ctx context.Context, id uint32, draining bool) (metadata.Node, error)
	RemoveNode(ctx context.Context, id uint32, force bool) (metadata.Node, error)
}

func (s *Server) listNodes(c echo.Context) error {
	state, err := s.clusterState(c.Request().Context())
	if err != nil {
		return err
	}
	return rest.Respond(c, http.StatusOK, map[string]any{"nodes": state.Nodes})
}

func (s *Server) getNode(c echo.Context) error {
	node, err := s.member(c.Param("node"))
	if err != nil {
		return err
	}
	return s.showNode(c, ids.Node(node.ID))
}

// showNode responds with the current state of a node.
func (s *Server) showNode(c echo.Context, id ids.Node) error {
	state, err := s.clusterState(c.Request().Context())
	if err != nil {
		return err
	}
	node := state.node(id)
	if node == nil {
		return &metadata.NotFoundError{Node: uint32(id)}
	}
	return rest.Respond(c, http.StatusOK, node)
}

// drainNode starts or cancels moving the replicas of a node away.
func (s *Server) drainNode(draining bool) echo.HandlerFunc {
	return func(c echo.Context) error {
		node, err := s.member(c.Param("node"))
		if err != nil {
			return err
		}
		if draining && !node.Draining {
			if err := s.checkDrainable(node); err != nil {
				return err
			}
			cluster, _ := s.registry.Cluster()
			if err := s.checkSurvival(c, "draining node "+node.Name, s.placeableNodes()-1, cluster.Replicas()); err != nil {
				return err
			}
		}
		if _, err := s.registry.DrainNode(c.Request().Context(), node.ID, draining); err != nil {
			return err
		}
		return s.showNode(c, ids.Node(node.ID))
	}
}

// checkDrainable returns an error if no other node can take the replicas of a node that is to be
// drained.
func (s *Server) checkDrainable(node metadata.Node) error {
	for _, n := range s.registry.Nodes() {
		if n.ID != node.ID && !n.Draining {
			return nil
		}
	}
	return &rest.Error{
		Status:  http.StatusConflict,
		Message: fmt.Sprintf("node %s is the only one that accepts replicas; add or undrain another node before draining it", node.Name),
	}
}

// removalTimeout limits the wait for a metadata leader, so that the server reports the reason
// before clients time out.
const removalTimeout = 8 * time.Second

// removeNode removes a node from the cluster.
func (s *Server) removeNode(c echo.Context) error {
	force, err := rest.QueryBool(c, "force")
	if err != nil {
		return err
	}
	node, err := s.member(c.Param("node"))
	if err != nil {
		return err
	}
	if err := s.checkRemovable(c, node, force); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), removalTimeout)
	defer cancel()
	if _, err := s.registry.RemoveNode(ctx, node.ID, force); err != nil {
		return removalError(node, err)
	}
	return rest.Done(c, http.StatusOK)
}

// checkRemovable returns an error, unless force is set, if a partition still needs the node or the
// cluster would tolerate no node failure after the removal. It does not check a node with replicas
// according to the placement or the last node: RemoveNode rejects these with a more specific error.
func (s *Server) checkRemovable(c echo.Context, node metadata.Node, force bool) error {
	if force || len(s.registry.Nodes()) == 1 {
		return nil
	}
	state, err := s.clusterState(c.Request().Context())
	if err != nil {
		return err
	}
	for i := range state.Partitions {
		if slices.Contains(state.Partitions[i].Placed, ids.Node(node.ID)) {
			return nil
		}
	}
	for i := range state.Partitions {
		// It has left the placement, but its replica votes until the one that replaces it has caught up.
		p, votes := &state.Partitions[i], func(r ReplicaState) bool { return r.Role == RoleLeader || r.Role == RoleVoter }
		if !slices.ContainsFunc(p.Replicas, votes) {
			return &rest.Error{Status: http.StatusConflict, Message: fmt.Sprintf(
				"no replica of partition %d reports whether node %s still votes on it; retry when 'platform cluster status' shows its leader, or use force if the node is lost for good",
				p.ID, node.Name)}
		}
		if r := p.replica(ids.Node(node.ID)); r != nil && votes(*r) {
			return &rest.Error{Status: http.StatusConflict, Message: fmt.Sprintf(
				"node %s still votes on partition %d; wait until 'platform cluster status' shows that it has no replicas, or use force if it is lost for good",
				node.Name, p.ID)}
		}
	}
	if node.Draining {
		return nil
	}
	cluster, _ := s.registry.Cluster()
	return s.checkSurvival(c, "removing node "+node.Name, s.placeableNodes()-1, cluster.Replicas())
}

// removalError adds the required next step to an error.
func removalError(node metadata.Node, err error) error {
	switch {
	case errors.Is(err, metadata.ErrUnavailable):
		return &rest.Error{
			Status: http.StatusServiceUnavailable,
			Message: "the metadata has no leader, so nodes cannot be removed; nothing was changed. Retry later, or, if most of its voters are lost for good, " +
				"recover the cluster with `platform-server recover` on a remaining node",
		}
	case errors.Is(err, metadata.ErrNodeHoldsData):
		return &rest.Error{Status: http.StatusConflict, Message: err.Error() +
			" ('platform cluster nodes drain " + node.Name + "') and wait until it has no replicas, or use force if it is lost for good"}
	case errors.Is(err, metadata.ErrLastNode):
		return &rest.Error{Status: http.StatusConflict, Message: err.Error()}
	}
	return err
}

// member returns a member by name or ID. A number is an ID; so is N1 if no member has that name.
func (s *Server) member(text string) (metadata.Node, error) {
	nodes := s.registry.Nodes()
	id, malformed := ids.ParseNode(text)
	at := slices.IndexFunc(nodes, func(n metadata.Node) bool { return n.Name == text })
	if _, notNumber := strconv.ParseUint(text, 10, 32); malformed == nil && (at < 0 || notNumber == nil) {
		at = slices.IndexFunc(nodes, func(n metadata.Node) bool { return ids.Node(n.ID) == id })
	}
	if at >= 0 {
		return nodes[at], nil
	}
	known := make([]string, len(nodes))
	for i, n := range nodes {
		known[i] = fmt.Sprintf("%s (%s)", n.Name, ids.Node(n.ID))
	}
	return metadata.Node{}, &rest.Error{
		Status:  http.StatusNotFound,
		Message: fmt.Sprintf("The requested node '%s' does not exist; the cluster has %s", text, strings.Join(known, ", ")),
	}
}
