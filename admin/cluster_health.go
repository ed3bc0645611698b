package admin

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"platform/admin/rest"
	"platform/internal/ids"
	"platform/metadata"
)

// Health is the overall state of a cluster.
type Health string

// The overall states.
const (
	Healthy     Health = "healthy"
	Degraded    Health = "degraded"    // everything is served, with less redundancy than configured
	Unavailable Health = "unavailable" // a partition or the metadata is not served
)

// clusterHealthView is the response to GET /cluster-health. Legacy clients read the first two
// fields only.
type clusterHealthView struct {
	Name     string              `json:"cluster_name"`
	Metadata *metadataHealthView `json:"metadata_cluster_health"` // null until provisioned
	Status   Health              `json:"status"`
	Problems []string            `json:"problems"`

	Survives   Survival         `json:"losses_survived"`
	Feature    FeatureState     `json:"feature_level"`
	Nodes      []NodeState      `json:"nodes"`
	Partitions []PartitionState `json:"partitions"`
	// Message is for clients that decode a response with status 503 as an error.
	Message string `json:"message,omitempty"`
}

type metadataHealthView struct {
	Members  []uint32   `json:"members"` // numbers, which legacy clients read
	Voters   []ids.Node `json:"voters"`
	Learners []ids.Node `json:"learners"`
	Leader   ids.Node   `json:"leader,omitempty"`
	Quorum   bool       `json:"quorum"`
}

func viewMetadataHealth(m MetadataState) *metadataHealthView {
	members := make([]uint32, 0, len(m.Voters)+len(m.Learners))
	for _, id := range slices.Concat(m.Voters, m.Learners) {
		members = append(members, uint32(id))
	}
	slices.Sort(members)
	return &metadataHealthView{
		Members: members,
		Voters:  m.Voters, Learners: m.Learners, Leader: m.Leader, Quorum: m.Quorum,
	}
}

// clusterHealth responds with the health of the cluster. The status is 503 only if the metadata
// cannot be changed, or with strict=true if the cluster is unavailable. Other problems are only
// reported in the body: a supervisor that restarts nodes because of a 503 would make them worse.
func (s *Server) clusterHealth(c echo.Context) error {
	strict, err := rest.QueryBool(c, "strict")
	if err != nil {
		return err
	}
	cluster, provisioned := s.registry.Cluster()
	if !provisioned {
		return &rest.Error{Status: http.StatusServiceUnavailable, Message: notProvisioned}
	}
	state, err := s.clusterState(c.Request().Context())
	if err != nil {
		return err
	}
	view := clusterHealthView{
		Name: cluster.Name, Feature: state.Feature, Nodes: state.Nodes, Partitions: state.Partitions,
		Metadata: viewMetadataHealth(state.Metadata),
	}
	view.Survives = survives(state, cluster.Replicas())
	view.Status, view.Problems = assess(state, cluster, s.registry.Secrets().Used)
	status := http.StatusOK
	if !state.Metadata.Quorum || strict && view.Status == Unavailable {
		status = http.StatusServiceUnavailable
		view.Message = "the cluster is unavailable: " + view.Problems[0]
	}
	return rest.Respond(c, status, view)
}

const notProvisioned = "the cluster has not been provisioned yet; 'platform cluster provision' does it where nodes do not do it themselves"

// clusterState returns the state of the cluster, with empty lists instead of nil ones.
func (s *Server) clusterState(ctx context.Context) (*ClusterState, error) {
	ctx, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	state, err := s.cluster.State(ctx)
	if err != nil {
		return nil, fmt.Errorf("state of the cluster: %w", err)
	}
	return state, nil
}

// assess returns the health of a cluster and its problems, the most severe first. secrets has the
// number of stored secrets by key.
func assess(state *ClusterState, cluster metadata.Cluster, secrets map[string]int) (Health, []string) {
	down, less := []string{}, []string{}
	if !state.Metadata.Quorum {
		down = append(down, "the metadata has no leader that most of its voters follow: deployments and nodes cannot be changed")
	}
	if state.Metadata.Unreachable {
		less = append(less, fmt.Sprintf("this node does not reach node %s, which leads the metadata: change deployments and nodes at another one", state.nameOf(state.Metadata.Leader)))
	}
	for i := range state.Partitions {
		unserved, lacking := state.Partitions[i].problems(state)
		down, less = append(down, unserved...), append(less, lacking...)
	}
	for _, n := range state.Nodes {
		if n.Disk != "" && n.Answers {
			less = append(less, fmt.Sprintf("the disk of node %s (%s) %s", n.Name, n.ID, n.Disk))
		}
		switch {
		case n.State == NodeDead || n.State == NodeLeft:
			less = append(less, fmt.Sprintf("node %s (%s) is down", n.Name, n.ID))
		case n.State == NodeUnknown:
			less = append(less, fmt.Sprintf("node %s (%s) has not sent anything yet", n.Name, n.ID))
		case n.Stopping:
			less = append(less, fmt.Sprintf("node %s (%s) is stopping", n.Name, n.ID))
		case !n.Answers && state.relayed(n.ID):
			less = append(less, fmt.Sprintf("node %s (%s) does not respond to this node; others relay requests to it: repair the network between the two", n.Name, n.ID))
		case !n.Answers:
			less = append(less, fmt.Sprintf("node %s (%s) does not respond", n.Name, n.ID))
		}
	}
	if wanted := metadata.Voters(state.placeableNodes()); state.Metadata.Quorum && len(state.Metadata.Voters) < wanted {
		less = append(less, fmt.Sprintf("%s on the metadata, and %d should; the others are catching up", counted(len(state.Metadata.Voters), "node votes", "nodes vote"), wanted))
	}
	less = append(less, missingKeys(state, secrets)...)
	less = append(less, tooFewReplicas(state, cluster.Replicas())...)
	switch {
	case len(down) > 0:
		return Unavailable, append(down, less...)
	case len(less) > 0:
		return Degraded, less
	}
	return Healthy, less
}

// relayed reports whether a node that does not respond to this one serves partitions through others.
func (s *ClusterState) relayed(id ids.Node) bool {
	return slices.ContainsFunc(s.Partitions, func(p PartitionState) bool {
		r := p.replica(id)
		return r != nil && p.Leader == id && r.Serving
	})
}

// placeableNodes returns the number of nodes that accept replicas: those that are not being drained.
func (s *ClusterState) placeableNodes() int {
	count := 0
	for _, n := range s.Nodes {
		if !n.Draining {
			count++
		}
	}
	return count
}

// tooFewReplicas describes partitions that should have more replicas, and a shortage of nodes.
func tooFewReplicas(state *ClusterState, wanted int) (lacking []string) {
	nodes := state.placeableNodes()
	if wanted > nodes {
		lacking = append(lacking, fmt.Sprintf("each partition should have %d replicas, but only %s replicas", wanted, counted(nodes, "node accepts", "nodes accept")))
	}
	few := 0
	for _, p := range state.Partitions {
		if len(p.Placed) < min(wanted, nodes) {
			few++
		}
	}
	if few > 0 {
		lacking = append(lacking, fmt.Sprintf("%s yet to get another replica", counted(few, "partition has", "partitions have")))
	}
	return lacking
}

// problems describes the problems of one partition: unserved if it is not served, lacking if
// redundancy is reduced.
func (p *PartitionState) problems(state *ClusterState) (unserved, lacking []string) {
	leader := p.replica(p.Leader)
	removed := 0
	for _, id := range p.Placed {
		if state.node(id) == nil {
			removed++
		}
	}
	switch {
	case p.Leader == 0 && removed > 0 && 2*(len(p.Placed)-removed) <= len(p.Placed):
		unserved = append(unserved, fmt.Sprintf("partition %d has no leader: %d of its %d replicas were on nodes that were removed; 'platform cluster partitions recover' continues from the remaining ones", p.ID, removed, len(p.Placed)))
	case p.Leader == 0:
		unserved = append(unserved, fmt.Sprintf("partition %d has no leader", p.ID))
	case leader == nil || !leader.Answers && !leader.Serving:
		unserved = append(unserved, fmt.Sprintf("partition %d is led by node %s, which does not respond", p.ID, state.nameOf(p.Leader)))
	case !leader.Serving:
		unserved = append(unserved, fmt.Sprintf("partition %d has a new leader, node %s, which is not ready yet", p.ID, state.nameOf(p.Leader)))
	}
	for _, id := range p.Placed {
		replica := p.replica(id)
		node := state.node(id)
		switch {
		case node != nil && (node.State != NodeAlive || !node.Answers):
			// reported as a problem of the node
		case replica != nil && replica.Quarantine != "":
			lacking = append(lacking, fmt.Sprintf("partition %d: the replica on node %s is quarantined: %s", p.ID, state.nameOf(id), replica.Quarantine))
		case node == nil:
			lacking = append(lacking, fmt.Sprintf("partition %d: node %s, which had a replica, was removed", p.ID, state.nameOf(id)))
		case replica == nil || replica.Role == RoleNone:
			lacking = append(lacking, fmt.Sprintf("partition %d is getting a replica on node %s", p.ID, state.nameOf(id)))
		case !replica.Answers:
			lacking = append(lacking, fmt.Sprintf("partition %d: node %s has not opened its replica", p.ID, state.nameOf(id)))
		case replica.Role == RoleLearner:
			lacking = append(lacking, fmt.Sprintf("partition %d: the replica on node %s has no vote yet", p.ID, state.nameOf(id)))
		case id != p.Leader && replica.LagKnown && !replica.CaughtUp && replica.Lag == 0:
			lacking = append(lacking, fmt.Sprintf("partition %d: the replica on node %s does not respond to the leader, node %s", p.ID, state.nameOf(id), state.nameOf(p.Leader)))
		case id != p.Leader && replica.LagKnown && !replica.CaughtUp:
			lacking = append(lacking, fmt.Sprintf("partition %d: the replica on node %s is %s behind", p.ID, state.nameOf(id), counted(replica.Lag, "entry", "entries")))
		}
	}
	for _, r := range p.Replicas {
		if r.Role != RoleNone && !slices.Contains(p.Placed, r.Node) {
			lacking = append(lacking, fmt.Sprintf("partition %d is leaving node %s", p.ID, state.nameOf(r.Node)))
		}
	}
	return unserved, lacking
}

// nameOf returns the name and ID of a node for messages.
func (s *ClusterState) nameOf(id ids.Node) string {
	if n := s.node(id); n != nil {
		return fmt.Sprintf("%s (%s)", n.Name, id)
	}
	return id.String()
}

// counted formats a number with its noun.
func counted[N int | uint64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
