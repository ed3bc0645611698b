package admin

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"platform/admin/rest"
	"platform/metadata"
)

// clusterConfigView is the configuration of the cluster.
type clusterConfigView struct {
	Name          string         `json:"name"`
	ID            string         `json:"id"`
	Partitions    uint32         `json:"num_partitions"`
	Replication   int            `json:"replication"`
	ProvisionedAt rest.Timestamp `json:"provisioned_at"`
	// FlowControl reports whether flow control is enabled on all partitions.
	FlowControl bool `json:"flow_control"`
	// FeatureLevel is the feature level of the cluster; it never decreases.
	FeatureLevel uint32 `json:"feature_level"`
	// LossesSurvived is the number of arbitrary nodes that can be lost once all replicas exist.
	LossesSurvived int `json:"losses_survived"`
}

func (s *Server) viewClusterConfig(c metadata.Cluster) clusterConfigView {
	return clusterConfigView{
		c.Name, c.ID, c.Partitions, c.Replicas(), rest.TimestampOf(c.ProvisionedAt), c.FlowControl, uint32(c.Level()), metadata.LossesSurvived(s.placeableNodes(), c.Replicas()),
	}
}

func (s *Server) getClusterConfig(c echo.Context) error {
	cluster, provisioned := s.registry.Cluster()
	if !provisioned {
		return &rest.Error{Status: http.StatusServiceUnavailable, Message: notProvisioned}
	}
	return rest.Respond(c, http.StatusOK, s.viewClusterConfig(cluster))
}

// clusterChange contains the settings that can be changed. Nil fields stay unchanged.
type clusterChange struct {
	Replication *int `json:"replication"`
	// Partitions cannot be changed; the current value is accepted.
	Partitions *int `json:"num_partitions"`
	// FeatureLevel can be raised to a level that all members support.
	FeatureLevel *uint32 `json:"feature_level"`
}

func (s *Server) setClusterConfig(c echo.Context) error {
	var change clusterChange
	if err := s.bodies.ReadJSON(c, &change); err != nil {
		return err
	}
	cluster, provisioned := s.registry.Cluster()
	if !provisioned {
		return &rest.Error{Status: http.StatusServiceUnavailable, Message: notProvisioned}
	}
	if err := samePartitions(cluster, change.Partitions); err != nil {
		return err
	}
	if change.Replication == nil && change.FeatureLevel == nil {
		return rest.BadRequest("nothing to change: set 'replication' or 'feature_level'")
	}
	if change.Replication != nil { // before the level is raised, which cannot be undone
		if err := s.checkReplication(c, *change.Replication); err != nil {
			return err
		}
	}
	ctx := c.Request().Context()
	var err error
	if change.FeatureLevel != nil {
		if cluster, err = s.cluster.RaiseFeatureLevel(ctx, *change.FeatureLevel); err != nil {
			return err
		}
	}
	if change.Replication != nil {
		if cluster, err = s.registry.SetReplication(ctx, *change.Replication); err != nil {
			if change.FeatureLevel != nil {
				return s.afterRaise(c, *change.FeatureLevel, err)
			}
			return err
		}
	}
	return rest.Respond(c, http.StatusOK, s.viewClusterConfig(cluster))
}

// afterRaise returns the error of a change of the replication, before which the feature level was raised.
func (s *Server) afterRaise(c echo.Context, level uint32, err error) error {
	f := *s.explain(c.Request(), err)
	if errors.Is(err, metadata.ErrUnavailable) { // whose text says that nothing was changed
		f.Message = "the metadata has no leader at the moment; retry later"
	}
	f.Message = fmt.Sprintf("the cluster is at feature level %d, which cannot be lowered, but the replication was not set: %s", level, f.Message)
	if errors.Is(err, metadata.ErrUnknownOutcome) {
		f.Message = fmt.Sprintf("the cluster is at feature level %d, which cannot be lowered, but it is unknown whether the replication was set; check before you repeat it", level)
	}
	return &f
}

// checkReplication returns an error for a replication that the cluster cannot have, or that leaves a
// cluster which tolerates no node loss, or, unless force is given, that needs more nodes than there are.
func (s *Server) checkReplication(c echo.Context, replicas int) error {
	if err := metadata.CheckReplication(replicas); err != nil {
		return err
	}
	nodes := s.placeableNodes()
	if err := s.checkSurvival(c, fmt.Sprintf("replication %d", replicas), nodes, replicas); err != nil {
		return err
	}
	if force, err := rest.QueryBool(c, "force"); err != nil || force || replicas <= nodes {
		return err
	}
	return &rest.Error{
		Status: http.StatusConflict,
		Message: fmt.Sprintf("replication %d needs %d nodes that accept replicas, and there %s: each partition would have %d, which survives %s; "+
			"start more nodes first; to proceed anyway, repeat it with --force (in the admin API force=true)",
			replicas, replicas, isOrAre(nodes), nodes, losses(metadata.LossesSurvived(nodes, replicas))),
	}
}

func losses(n int) string {
	if n == 0 {
		return "no loss of a node"
	}
	return fmt.Sprintf("the loss of %d", n)
}

func isOrAre(n int) string {
	if n == 1 {
		return "is 1"
	}
	return fmt.Sprintf("are %d", n)
}

// samePartitions returns an error if another number of partitions is requested.
func samePartitions(cluster metadata.Cluster, wanted *int) error {
	if wanted == nil || *wanted == int(cluster.Partitions) {
		return nil
	}
	return &rest.Error{
		Status:  http.StatusConflict,
		Message: fmt.Sprintf("the cluster has %d partitions, which cannot be changed once it is provisioned", cluster.Partitions),
	}
}

// provisioning is a request to provision the cluster.
type provisioning struct {
	Name        string `json:"cluster_name"`
	Partitions  *int   `json:"num_partitions"`
	Replication *int   `json:"replication"`
}

// provision responds to a request to provision a cluster that already exists: it succeeds if the
// cluster has the requested configuration. A node without a cluster handles the request elsewhere:
// it does not serve the admin API yet.
func (s *Server) provision(c echo.Context) error {
	var asked provisioning
	if err := s.bodies.ReadJSON(c, &asked); err != nil {
		return err
	}
	cluster, provisioned := s.registry.Cluster()
	if !provisioned {
		return &rest.Error{Status: http.StatusServiceUnavailable, Message: notProvisioned}
	}
	if err := asked.checkMatches(cluster); err != nil {
		return err
	}
	return rest.Respond(c, http.StatusOK, s.viewClusterConfig(cluster))
}

// checkMatches returns an error if the request differs from the configuration of the cluster.
func (p provisioning) checkMatches(cluster metadata.Cluster) error {
	if err := samePartitions(cluster, p.Partitions); err != nil {
		return err
	}
	switch {
	case p.Name != "" && p.Name != cluster.Name:
		return &rest.Error{Status: http.StatusConflict, Message: fmt.Sprintf("this node belongs to the cluster %q", cluster.Name)}
	case p.Replication != nil && *p.Replication != cluster.Replicas():
		return &rest.Error{
			Status:  http.StatusConflict,
			Message: fmt.Sprintf("the cluster is provisioned, with replication %d; change it with PATCH /cluster/config", cluster.Replicas()),
		}
	}
	return nil
}
