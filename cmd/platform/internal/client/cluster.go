package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// ClusterHealth is how a cluster is.
type ClusterHealth struct {
	Name       string           `json:"cluster_name"`
	Status     string           `json:"status"` // healthy, degraded or unavailable
	Problems   []string         `json:"problems"`
	Metadata   *MetadataHealth  `json:"metadata_cluster_health"`
	Feature    *FeatureLevel    `json:"feature_level"` // nil: the server is of the first release
	Nodes      []Node           `json:"nodes"`
	Partitions []PartitionState `json:"partitions"`
}

// MetadataHealth is the Raft group of the metadata; nodes by id.
type MetadataHealth struct {
	Voters   []uint32 `json:"voters"`
	Learners []uint32 `json:"learners"`
	Leader   uint32   `json:"leader"` // 0: none is known
	Quorum   bool     `json:"quorum"`
}

// FeatureLevel is the cluster's feature level and what it could be.
type FeatureLevel struct {
	Level     uint32    `json:"level"`
	Since     time.Time `json:"since"` // zero for the first level
	Supported uint32    `json:"supported"`
	Highest   uint32    `json:"highest"`
	Held      bool      `json:"held"`
	Waiting   []string  `json:"waiting"`
}

// Node is one member of the cluster.
type Node struct {
	ID             uint32    `json:"id"`
	Name           string    `json:"name"`
	State          string    `json:"state"` // alive, dead, left or unknown
	Draining       bool      `json:"draining"`
	Stopping       bool      `json:"stopping"`
	Answers        bool      `json:"answers"`
	Self           bool      `json:"self"`
	Metadata       string    `json:"metadata_role"`
	Leaders        int       `json:"leaders"`
	Replicas       int       `json:"replicas"`
	Address        string    `json:"address"`
	IngressAddress string    `json:"ingress_address"`
	AdminAddress   string    `json:"admin_address"`
	Version        string    `json:"version"`
	FeatureLevel   uint32    `json:"feature_level"` // 0: not known
	FeatureHold    bool      `json:"feature_level_hold"`
	Incarnation    string    `json:"incarnation"`
	RegisteredAt   time.Time `json:"registered_at"`
	StartedAt      time.Time `json:"started_at"`
	StateSince     time.Time `json:"state_since"`
}

// PartitionState is one partition.
type PartitionState struct {
	ID       uint32    `json:"id"`
	Leader   uint32    `json:"leader"` // 0: none is known
	Term     uint64    `json:"term"`
	Placed   []uint32  `json:"placed"`
	Version  uint64    `json:"placement_version"`
	Replicas []Replica `json:"replicas"`
}

// Replica is one replica of a partition.
type Replica struct {
	Node      uint32 `json:"node"`
	Role      string `json:"role"` // leader, voter, learner or none
	Serving   bool   `json:"serving"`
	Answers   bool   `json:"answers"`
	Applied   uint64 `json:"applied"`
	Committed uint64 `json:"committed"`
	Last      uint64 `json:"last"`
	Snapshot  uint64 `json:"snapshot"`
	Lag       uint64 `json:"lag"`
	LagKnown  bool   `json:"lag_known"`
	CaughtUp  bool   `json:"caught_up"`
	// Quarantine is why the node does not serve its replica, empty if it does.
	Quarantine string `json:"quarantine"`
}

// ClusterConfig is what holds for the whole cluster.
type ClusterConfig struct {
	Name          string    `json:"name"`
	ID            string    `json:"id"`
	Partitions    int       `json:"num_partitions"`
	Replication   int       `json:"replication"`
	ProvisionedAt time.Time `json:"provisioned_at"`
	FlowControl   bool      `json:"flow_control"`  // was enabled on all partitions
	FeatureLevel  uint32    `json:"feature_level"` // 0: the server is of the first release
}

// ClusterHealth asks how the cluster is. One that is unavailable is no error.
func (c *Client) ClusterHealth(ctx context.Context) (h ClusterHealth, body []byte, err error) {
	answer, err := c.adminJSON(ctx, http.MethodGet, "/cluster-health", nil, &h)
	if refusal, ok := errors.AsType[*APIError](err); ok && json.Unmarshal(refusal.Body, &h) == nil && h.Name != "" {
		return h, refusal.Body, nil
	}
	if err != nil {
		return h, nil, err
	}
	return h, answer.Body, nil
}

// Nodes lists the members of the cluster.
func (c *Client) Nodes(ctx context.Context) (nodes []Node, answer *Response, err error) {
	var list struct{ Nodes []Node }
	answer, err = c.adminJSON(ctx, http.MethodGet, "/cluster/nodes", nil, &list)
	return list.Nodes, answer, err
}

// Node shows a member, by name or id.
func (c *Client) Node(ctx context.Context, node string) (n Node, answer *Response, err error) {
	answer, err = c.adminJSON(ctx, http.MethodGet, "/cluster/nodes/"+url.PathEscape(node), nil, &n)
	return n, answer, err
}

// DrainNode has a node's replicas moved away, or, with draining false, uses it again.
func (c *Client) DrainNode(ctx context.Context, node string, draining bool) (n Node, err error) {
	verb := "/undrain"
	if draining {
		verb = "/drain"
	}
	_, err = c.adminJSON(ctx, http.MethodPatch, "/cluster/nodes/"+url.PathEscape(node)+verb, nil, &n)
	return n, err
}

// RemoveNode takes a node out of the cluster.
func (c *Client) RemoveNode(ctx context.Context, node string, force bool) error {
	path := "/cluster/nodes/" + url.PathEscape(node)
	if force {
		path += "?force=true"
	}
	_, err := c.adminJSON(ctx, http.MethodDelete, path, nil, nil)
	return err
}

// Partitions lists the partitions.
func (c *Client) Partitions(ctx context.Context) (partitions []PartitionState, answer *Response, err error) {
	var list struct{ Partitions []PartitionState }
	answer, err = c.adminJSON(ctx, http.MethodGet, "/cluster/partitions", nil, &list)
	return list.Partitions, answer, err
}

// Partition shows a partition.
func (c *Client) Partition(ctx context.Context, id uint32) (p PartitionState, answer *Response, err error) {
	answer, err = c.adminJSON(ctx, http.MethodGet, "/cluster/partitions/"+strconv.FormatUint(uint64(id), 10), nil, &p)
	return p, answer, err
}

// TransferPartition lets a node lead a partition.
func (c *Client) TransferPartition(ctx context.Context, id uint32, to string) error {
	path := "/cluster/partitions/" + strconv.FormatUint(uint64(id), 10) + "/transfer?" + url.Values{"to": {to}}.Encode()
	_, err := c.adminJSON(ctx, http.MethodPatch, path, nil, nil)
	return err
}

// ClusterConfig reads what holds for the whole cluster.
func (c *Client) ClusterConfig(ctx context.Context) (config ClusterConfig, answer *Response, err error) {
	answer, err = c.adminJSON(ctx, http.MethodGet, "/cluster/config", nil, &config)
	return config, answer, err
}

// ClusterChange is what of the cluster's configuration is to be changed; nil stays as it
// is.
type ClusterChange struct {
	Replication  *int    `json:"replication,omitempty"`
	FeatureLevel *uint32 `json:"feature_level,omitempty"`
}

// SetClusterConfig changes what holds for the whole cluster.
func (c *Client) SetClusterConfig(ctx context.Context, change ClusterChange) (config ClusterConfig, answer *Response, err error) {
	answer, err = c.adminJSON(ctx, http.MethodPatch, "/cluster/config", change, &config)
	return config, answer, err
}

// Provisioning asks for a cluster; nil is what the node is configured for.
type Provisioning struct {
	Partitions  *int `json:"num_partitions,omitempty"`
	Replication *int `json:"replication,omitempty"`
}

// Provision creates the cluster. existed says that there is one, which is as asked
// for; otherwise it will come into being in a moment.
func (c *Client) Provision(ctx context.Context, p Provisioning) (existed bool, err error) {
	answer, err := c.adminJSON(ctx, http.MethodPost, "/cluster/provision", p, nil)
	return err == nil && answer.Status == http.StatusOK, err
}
