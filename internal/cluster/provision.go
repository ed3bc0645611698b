package cluster

import (
	"errors"
	"fmt"
	"net/http"
	"sync"

	"platform/internal/cluster/membership"
	"platform/metadata"
)

// Provisioning is whether this node may create a cluster, and with how many partitions and
// replicas. It is safe for concurrent use.
type Provisioning struct {
	expect int // bootstrap-expect

	mu          sync.Mutex // covers the fields below
	allowed     bool
	partitions  int
	replication int
	members     *membership.Members // nil until gossip has started
}

// NewProvisioning returns a Provisioning with the values of the configuration.
func NewProvisioning(allowed bool, partitions, replication, expect int) *Provisioning {
	return &Provisioning{allowed: allowed, partitions: partitions, replication: replication, expect: expect}
}

// OpenMembers provides the nodes known by gossip. Until then requests are rejected.
func (p *Provisioning) OpenMembers(members *membership.Members) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.members = members
}

// Allowed reports whether this node may create the cluster.
func (p *Provisioning) Allowed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.allowed
}

// shape returns the number of partitions and replicas of a new cluster.
func (p *Provisioning) shape() (partitions, replication int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.partitions, p.replication
}

// ProvisionRequest is the settings of a new cluster that an operator may choose.
type ProvisionRequest struct {
	NumPartitions *int `json:"num_partitions"`
	Replication   *int `json:"replication"`
}

// ProvisionRefusal is why a ProvisionRequest is refused.
type ProvisionRefusal struct {
	Status int // of HTTP
	reason string
}

// Error returns the reason.
func (r *ProvisionRefusal) Error() string { return r.reason }

func refuseProvision(status int, format string, args ...any) error {
	return &ProvisionRefusal{Status: status, reason: fmt.Sprintf(format, args...)}
}

// errGossipNotStarted means that the node does not know any other nodes yet.
var errGossipNotStarted = errors.New("the node has not started gossip with other nodes yet")

// Request allows this node to create the cluster, which it does once the expected nodes
// respond. The error is errGossipNotStarted or a *ProvisionRefusal.
func (p *Provisioning) Request(req ProvisionRequest) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.members == nil {
		return errGossipNotStarted
	}
	partitions, replication := p.partitions, p.replication
	if req.NumPartitions != nil {
		partitions = *req.NumPartitions
	}
	if req.Replication != nil {
		replication = *req.Replication
	}
	candidate, there := membership.Candidate(p.members.Nodes(), p.expect)
	switch {
	case partitions < 1 || partitions > metadata.MaxPartitions:
		return refuseProvision(http.StatusUnprocessableEntity, "num_partitions is 1 to %d", metadata.MaxPartitions)
	case replication < 1 || replication > metadata.MaxReplication:
		return refuseProvision(http.StatusUnprocessableEntity, "replication is 1 to %d", metadata.MaxReplication)
	case p.expect > 1 && there && !candidate.Self:
		return refuseProvision(http.StatusConflict, "send the request to node %s (%s): the first node by name creates the cluster", candidate.Name, candidate.Address)
	case p.allowed:
		return refuseProvision(http.StatusConflict, "the cluster is already being created")
	}
	p.partitions, p.replication, p.allowed = partitions, replication, true
	return nil
}
