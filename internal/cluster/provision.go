package cluster

import (
	"errors"
	"fmt"
	"net/http"
	"sync"

	"platform/internal/membership"
	"platform/metadata"
)

// Provisioning is whether, and with what shape, this node may create a cluster. It is safe
// for concurrent use.
type Provisioning struct {
	expect int // bootstrap-expect

	mu          sync.Mutex // covers the fields below
	allowed     bool
	partitions  int
	replication int
	members     *membership.Members // nil until the node looks for others
}

// NewProvisioning returns a Provisioning with the values of the configuration.
func NewProvisioning(allowed bool, partitions, replication, expect int) *Provisioning {
	return &Provisioning{allowed: allowed, partitions: partitions, replication: replication, expect: expect}
}

// OpenMembers provides the nodes known by gossip; before, requests are refused.
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

// Shape returns the number of partitions and replicas of a new cluster.
func (p *Provisioning) Shape() (partitions, replication int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.partitions, p.replication
}

// ProvisionRequest is what an operator may decide about a new cluster.
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

// ErrNotLooking means that the node does not look for other nodes yet.
var ErrNotLooking = errors.New("the node does not look for other nodes yet")

// Request allows this node to create the cluster, which it does once the expected nodes
// are there. The error is ErrNotLooking or a *ProvisionRefusal.
func (p *Provisioning) Request(req ProvisionRequest) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.members == nil {
		return ErrNotLooking
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
		return refuseProvision(http.StatusConflict, "ask node %s (%s): the first node by name creates the cluster", candidate.Name, candidate.Address)
	case p.allowed:
		return refuseProvision(http.StatusConflict, "the cluster is being created already")
	}
	p.partitions, p.replication, p.allowed = partitions, replication, true
	return nil
}
