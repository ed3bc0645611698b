package admin

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"platform/admin/rest"
	"platform/internal/ids"
)

func (s *Server) listPartitions(c echo.Context) error {
	state, err := s.clusterState(c.Request().Context())
	if err != nil {
		return err
	}
	return rest.Respond(c, http.StatusOK, map[string]any{"partitions": state.Partitions})
}

func (s *Server) getPartition(c echo.Context) error {
	id, err := s.partition(c)
	if err != nil {
		return err
	}
	return s.showPartition(c, id)
}

// showPartition responds with the current state of a partition.
func (s *Server) showPartition(c echo.Context, id uint32) error {
	state, err := s.clusterState(c.Request().Context())
	if err != nil {
		return err
	}
	at := slices.IndexFunc(state.Partitions, func(p PartitionState) bool { return p.ID == id })
	if at < 0 {
		return &rest.Error{Status: http.StatusNotFound, Message: fmt.Sprintf("The requested partition %d does not exist", id)}
	}
	return rest.Respond(c, http.StatusOK, state.Partitions[at])
}

// transferPartition moves the leadership of a partition to another node.
func (s *Server) transferPartition(c echo.Context) error {
	id, err := s.partition(c)
	if err != nil {
		return err
	}
	to := c.QueryParam("to")
	if to == "" {
		return rest.BadRequest("The query parameter 'to' is missing: the name or id of the node that is to lead")
	}
	node, err := s.member(to)
	if err != nil {
		return err
	}
	err = s.cluster.Transfer(c.Request().Context(), id, ids.Node(node.ID))
	if err != nil {
		return fmt.Errorf("transfer partition %d: %w", id, err)
	}
	return s.showPartition(c, id)
}

// recovery is the body of a request to recover partitions.
type recovery struct {
	// Partitions lists partition IDs; if empty, all that have lost their majority are recovered.
	Partitions []uint32 `json:"partitions"`
	DryRun     bool     `json:"dry_run"`
}

// recoverPartitions recovers partitions that have lost their majority. With dry_run it responds
// with what it would do according to what is known at the moment; with the header "Prefer: wait" only
// once leaders that have lost their majority have stepped down, as it does otherwise.
func (s *Server) recoverPartitions(c echo.Context) error {
	var asked recovery
	if err := s.bodies.ReadJSON(c, &asked); err != nil {
		return err
	}
	if asked.DryRun {
		rest.OnlyDryRun(c)
		rest.ChangedNothing(c)
	}
	cluster, provisioned := s.registry.Cluster()
	if !provisioned {
		return &rest.Error{Status: http.StatusServiceUnavailable, Message: notProvisioned}
	}
	for _, id := range asked.Partitions {
		if id >= cluster.Partitions {
			return noPartition(id, cluster.Partitions)
		}
	}
	recoveries, err := s.cluster.RecoverPartitions(c.Request().Context(), asked.Partitions, asked.DryRun, !asked.DryRun || prefersWait(c.Request()))
	if err != nil {
		return fmt.Errorf("recover partitions: %w", err)
	}
	return rest.Respond(c, http.StatusOK, map[string]any{"partitions": recoveries})
}

// prefersWait reports whether the client would rather wait than get a preliminary response.
func prefersWait(r *http.Request) bool {
	for _, line := range r.Header.Values("Prefer") {
		for preference := range strings.SplitSeq(line, ",") {
			name, _, _ := strings.Cut(preference, "=")
			if strings.EqualFold(strings.TrimSpace(name), "wait") {
				return true
			}
		}
	}
	return false
}

func noPartition[N uint32 | uint64](id N, count uint32) error {
	return &rest.Error{
		Status:  http.StatusNotFound,
		Message: fmt.Sprintf("The requested partition %d does not exist; there are 0 to %d", id, count-1),
	}
}

// partition returns the partition ID in the path.
func (s *Server) partition(c echo.Context) (uint32, error) {
	cluster, provisioned := s.registry.Cluster()
	if !provisioned {
		return 0, &rest.Error{Status: http.StatusServiceUnavailable, Message: notProvisioned}
	}
	id, err := strconv.ParseUint(c.Param("partition"), 10, 32)
	if err != nil {
		return 0, rest.InvalidField("partition", fmt.Errorf("%q is not a number", c.Param("partition")))
	}
	if uint32(id) >= cluster.Partitions {
		return 0, noPartition(id, cluster.Partitions)
	}
	return uint32(id), nil
}
