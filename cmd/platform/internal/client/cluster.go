package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"platform/internal/ids"
)

// ClusterHealth is the health of a cluster.
type ClusterHealth struct {
	Name       string           `json:"cluster_name"`
	Status     string           `json:"status"` // healthy, degraded or unavailable
	Problems   []string         `json:"problems"`
	Metadata   *MetadataHealth  `json:"metadata_cluster_health"`
	Survives   *Survival        `json:"losses_survived"` // nil: the server does not report it
	Feature    *FeatureLevel    `json:"feature_level"`   // nil: the server is of the first release
	Nodes      []Node           `json:"nodes"`
	Partitions []PartitionState `json:"partitions"`
}

// Survival is how many nodes, whichever they are, can fail while everything stays
// available: now, and once all replicas are complete.
type Survival struct {
	Now   int `json:"now"`
	Whole int `json:"whole"`
}

// MetadataHealth is the Raft group of the metadata.
type MetadataHealth struct {
	Voters   []ids.Node `json:"voters"`
	Learners []ids.Node `json:"learners"`
	Leader   ids.Node   `json:"leader"` // 0: none is known
	Quorum   bool       `json:"quorum"`
}

// FeatureLevel is the cluster's feature level and the highest that it could have.
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
	ID             ids.Node  `json:"id"`
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
	Disk           string    `json:"disk"` // consequences of a disk that is nearly full
	// Usage is what the process uses of its machine; nil if the node does not report it.
	Usage *NodeUsage `json:"usage"`
}

// NodeUsage is what the process of a node uses of its machine. Unknown sizes are 0.
type NodeUsage struct {
	CPU         float64 `json:"cpu_cores"`
	Cores       int     `json:"cores"`
	Memory      int64   `json:"memory_bytes"`
	MemoryLimit int64   `json:"memory_limit_bytes"`
	DiskFree    int64   `json:"disk_free_bytes"`
	DiskTotal   int64   `json:"disk_total_bytes"`
}

// ClusterEvents are changes of the cluster, the latest first.
type ClusterEvents struct {
	Events []ClusterEvent
	Nodes  []struct {
		Name   string
		Reason string // why its events are missing; empty if they are not
	}
}

// ClusterEvent is a change of the cluster.
type ClusterEvent struct {
	At        time.Time
	Kind      string
	Node      string
	Partition *int
	Detail    string
}

// PartitionState is one partition.
type PartitionState struct {
	ID       uint32     `json:"id"`
	Leader   ids.Node   `json:"leader"` // 0: none is known
	Term     uint64     `json:"term"`
	Placed   []ids.Node `json:"placed"`
	Version  uint64     `json:"placement_version"`
	Replicas []Replica  `json:"replicas"`
}

// Replica is one replica of a partition.
type Replica struct {
	Node      ids.Node `json:"node"`
	Role      string   `json:"role"` // leader, voter, learner or none
	Serving   bool     `json:"serving"`
	Answers   bool     `json:"answers"`
	Applied   uint64   `json:"applied"`
	Committed uint64   `json:"committed"`
	Last      uint64   `json:"last"`
	Snapshot  uint64   `json:"snapshot"`
	Lag       uint64   `json:"lag"`
	LagKnown  bool     `json:"lag_known"`
	CaughtUp  bool     `json:"caught_up"`
	// Quarantine is the reason of the replica's quarantine, empty if there is none.
	Quarantine string `json:"quarantine"`
}

// ClusterConfig is the configuration of the cluster.
type ClusterConfig struct {
	Name          string    `json:"name"`
	ID            string    `json:"id"`
	Partitions    int       `json:"num_partitions"`
	Replication   int       `json:"replication"`
	ProvisionedAt time.Time `json:"provisioned_at"`
	FlowControl   bool      `json:"flow_control"`  // was enabled on all partitions
	FeatureLevel  uint32    `json:"feature_level"` // 0: the server is of the first release
	// LossesSurvived is how many nodes can fail once all replicas are complete; nil if the
	// server does not report it.
	LossesSurvived *int `json:"losses_survived"`
}

// ClusterHealth returns the health of the cluster. Unavailability is not an error.
func (c *Client) ClusterHealth(ctx context.Context) (h ClusterHealth, body []byte, err error) {
	response, err := c.adminJSON(ctx, http.MethodGet, "/cluster-health", nil, &h)
	if refusal, ok := errors.AsType[*APIError](err); ok && json.Unmarshal(refusal.Body, &h) == nil && h.Name != "" {
		return h, refusal.Body, nil
	}
	if err != nil {
		return h, nil, err
	}
	return h, response.Body, nil
}

// Nodes lists the members of the cluster.
func (c *Client) Nodes(ctx context.Context) (nodes []Node, response *Response, err error) {
	var list struct{ Nodes []Node }
	response, err = c.adminJSON(ctx, http.MethodGet, "/cluster/nodes", nil, &list)
	return list.Nodes, response, err
}

// ClusterEvents lists the latest changes of the cluster.
func (c *Client) ClusterEvents(ctx context.Context, filter url.Values) (list ClusterEvents, response *Response, err error) {
	path := "/cluster/events"
	if len(filter) > 0 {
		path += "?" + filter.Encode()
	}
	response, err = c.adminJSON(ctx, http.MethodGet, path, nil, &list)
	return list, response, err
}

// Node returns a member by name or id.
func (c *Client) Node(ctx context.Context, node string) (n Node, response *Response, err error) {
	response, err = c.adminJSON(ctx, http.MethodGet, "/cluster/nodes/"+url.PathEscape(node), nil, &n)
	return n, response, err
}

// DrainNode drains a node, with force even if the cluster then survives no node failure.
func (c *Client) DrainNode(ctx context.Context, node string, force bool) (n Node, err error) {
	_, err = c.adminJSON(ctx, http.MethodPatch, forced("/cluster/nodes/"+url.PathEscape(node)+"/drain", force), nil, &n)
	return n, err
}

// UndrainNode returns a node to service.
func (c *Client) UndrainNode(ctx context.Context, node string) (n Node, err error) {
	_, err = c.adminJSON(ctx, http.MethodPatch, "/cluster/nodes/"+url.PathEscape(node)+"/undrain", nil, &n)
	return n, err
}

// RemoveNode removes a node from the cluster.
func (c *Client) RemoveNode(ctx context.Context, node string, force bool) error {
	_, err := c.adminJSON(ctx, http.MethodDelete, forced("/cluster/nodes/"+url.PathEscape(node), force), nil, nil)
	return err
}

// forced adds the parameter force to a path.
func forced(path string, force bool) string {
	if force {
		return path + "?force=true"
	}
	return path
}

// Partitions lists the partitions.
func (c *Client) Partitions(ctx context.Context) (partitions []PartitionState, response *Response, err error) {
	var list struct{ Partitions []PartitionState }
	response, err = c.adminJSON(ctx, http.MethodGet, "/cluster/partitions", nil, &list)
	return list.Partitions, response, err
}

// Partition returns a partition.
func (c *Client) Partition(ctx context.Context, id uint32) (p PartitionState, response *Response, err error) {
	response, err = c.adminJSON(ctx, http.MethodGet, "/cluster/partitions/"+strconv.FormatUint(uint64(id), 10), nil, &p)
	return p, response, err
}

// TransferPartition transfers the leadership of a partition to a node.
func (c *Client) TransferPartition(ctx context.Context, id uint32, to string) error {
	path := "/cluster/partitions/" + strconv.FormatUint(uint64(id), 10) + "/transfer?" + url.Values{"to": {to}}.Encode()
	_, err := c.adminJSON(ctx, http.MethodPatch, path, nil, nil)
	return err
}

// PartitionRecovery is the recovery of a partition that has lost its majority.
type PartitionRecovery struct {
	Partition uint32     `json:"partition"`
	Needed    bool       `json:"needed"`
	Recovered bool       `json:"recovered"`
	Refused   string     `json:"refused"`
	From      ids.Node   `json:"from"`
	Last      uint64     `json:"last"` // entry of its log
	LastTerm  uint64     `json:"last_term"`
	Discarded []ids.Node `json:"discarded"`
	Missing   []string   `json:"missing"`
}

// recoverTimeout is longer than a recovery takes: the server waits until leaders that have
// lost their majority have stepped down, and recovers one partition at a time.
const recoverTimeout = 5 * time.Minute

// RecoverPartitions recovers partitions from the remaining replicas, or returns the plan of
// a recovery, according to what is known at the moment.
func (c *Client) RecoverPartitions(ctx context.Context, ids []uint32, dryRun bool) (list []PartitionRecovery, response *Response, err error) {
	return c.recoverPartitions(ctx, ids, dryRun)
}

// PlanRecovery is RecoverPartitions with dryRun, but waits until leaders without a majority have stepped down.
func (c *Client) PlanRecovery(ctx context.Context, ids []uint32) (list []PartitionRecovery, response *Response, err error) {
	return c.recoverPartitions(ctx, ids, true, "Prefer", "wait")
}

func (c *Client) recoverPartitions(ctx context.Context, ids []uint32, dryRun bool, header ...string) (list []PartitionRecovery, response *Response, err error) {
	body := struct {
		Partitions []uint32 `json:"partitions,omitempty"`
		DryRun     bool     `json:"dry_run"`
	}{ids, dryRun}
	var out struct{ Partitions []PartitionRecovery }
	response, err = c.adminJSONWithin(ctx, max(recoverTimeout, c.opts.RequestTimeout), http.MethodPost, "/cluster/partitions/recover", body, &out, header...)
	return out.Partitions, response, err
}

// ClusterConfig returns the configuration of the cluster.
func (c *Client) ClusterConfig(ctx context.Context) (config ClusterConfig, response *Response, err error) {
	response, err = c.adminJSON(ctx, http.MethodGet, "/cluster/config", nil, &config)
	return config, response, err
}

// ClusterChange is a change of the cluster's configuration; nil fields are unchanged.
type ClusterChange struct {
	Replication  *int    `json:"replication,omitempty"`
	FeatureLevel *uint32 `json:"feature_level,omitempty"`
}

// SetClusterConfig changes the configuration of the cluster; with force even if the cluster
// then survives no node failure.
func (c *Client) SetClusterConfig(ctx context.Context, change ClusterChange, force bool) (config ClusterConfig, response *Response, err error) {
	response, err = c.adminJSON(ctx, http.MethodPatch, forced("/cluster/config", force), change, &config)
	return config, response, err
}

// Provisioning is a request to create a cluster; nil selects the node's configured value.
type Provisioning struct {
	Partitions  *int `json:"num_partitions,omitempty"`
	Replication *int `json:"replication,omitempty"`
}

// Provision creates the cluster. existed reports that there already is one with these
// settings; otherwise it will soon exist.
func (c *Client) Provision(ctx context.Context, p Provisioning) (existed bool, err error) {
	response, err := c.adminJSON(ctx, http.MethodPost, "/cluster/provision", p, nil)
	return err == nil && response.Status == http.StatusOK, err
}
