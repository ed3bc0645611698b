package load

import (
	"context"
	"math/rand/v2"
	"sync"

	"platform/test/harness"
)

// Nodes is the clients' view of the nodes of a cluster.
type Nodes struct {
	Clients []*harness.Client // one per node

	mu         sync.Mutex // covers the fields below
	states     []nodeState
	quorumLost bool // no majority: any request may fail
	epoch      int  // incremented when quorumLost changes
}

type nodeState struct {
	faulty bool
	epoch  int             // incremented when faulty changes
	ctx    context.Context // of the requests of load-balanced clients
	cancel context.CancelFunc
}

// NewNodes returns the view of a healthy cluster.
func NewNodes(clients []*harness.Client) *Nodes {
	n := &Nodes{Clients: clients, states: make([]nodeState, len(clients))}
	for i := range n.states {
		n.states[i].reset()
	}
	return n
}

func (s *nodeState) reset() { s.ctx, s.cancel = context.WithCancel(context.Background()) }

// MarkFaulty marks a node before a fault: load-balanced clients avoid it, and requests to
// it may fail.
func (n *Nodes) MarkFaulty(i int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.states[i].faulty = true
	n.states[i].epoch++
}

// CancelRequests cancels the pending requests of load-balanced clients to a faulty node.
func (n *Nodes) CancelRequests(i int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.states[i].cancel()
}

// MarkHealthy marks a node healthy again. It does nothing if the node is healthy.
func (n *Nodes) MarkHealthy(i int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.states[i].faulty {
		return
	}
	n.states[i].cancel()
	n.states[i].reset()
	n.states[i].faulty = false
	n.states[i].epoch++
}

// SetQuorumLost sets whether requests may fail at any node.
func (n *Nodes) SetQuorumLost(lost bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.quorumLost != lost {
		n.quorumLost = lost
		n.epoch++
	}
}

// target is the node of one request, with its state when the request started.
type target struct {
	nodes                   *Nodes
	node                    int
	faulty                  bool
	nodeEpoch, clusterEpoch int // at the start
	ctx                     context.Context
}

// pick returns the fixed node, or with anyNode a random healthy one.
func (n *Nodes) pick(fixed int) target {
	n.mu.Lock()
	defer n.mu.Unlock()
	i := fixed
	if fixed < 0 {
		i = n.randomHealthy()
	}
	s := n.states[i]
	v := target{nodes: n, node: i, faulty: s.faulty || n.quorumLost, nodeEpoch: s.epoch, clusterEpoch: n.epoch, ctx: context.Background()}
	if fixed < 0 {
		v.ctx = s.ctx
	}
	return v
}

// randomHealthy returns a random healthy node, or any if none is; the caller holds the lock.
func (n *Nodes) randomHealthy() int {
	var healthy []int
	for i, s := range n.states {
		if !s.faulty {
			healthy = append(healthy, i)
		}
	}
	if len(healthy) == 0 {
		return rand.IntN(len(n.states))
	}
	return healthy[rand.IntN(len(healthy))]
}

// mayFail reports whether the node was faulty at any time since the request started.
func (v target) mayFail() bool {
	v.nodes.mu.Lock()
	defer v.nodes.mu.Unlock()
	return v.faulty || v.nodes.states[v.node].epoch != v.nodeEpoch || v.nodes.epoch != v.clusterEpoch
}
