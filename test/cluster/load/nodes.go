package load

import (
	"context"
	"math/rand/v2"
	"sync"

	"platform/test/harness"
)

// Nodes is what clients know of the nodes of a cluster.
type Nodes struct {
	Clients []*harness.Client // of the ingress of each node

	mu     sync.Mutex // covers what follows
	states []nodeState
	outage bool // no majority: nobody need be answered
	epoch  int  // of outage
}

type nodeState struct {
	trouble bool
	epoch   int             // grows whenever trouble begins or ends
	ctx     context.Context // ends when those who roam give up their requests here
	abandon context.CancelFunc
}

// NewNodes returns the view of a cluster without trouble.
func NewNodes(clients []*harness.Client) *Nodes {
	n := &Nodes{Clients: clients, states: make([]nodeState, len(clients))}
	for i := range n.states {
		n.states[i].renew()
	}
	return n
}

func (s *nodeState) renew() { s.ctx, s.abandon = context.WithCancel(context.Background()) }

// Trouble says that something will happen to a node: clients that roam leave it, and
// requests to it may fail.
func (n *Nodes) Trouble(i int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.states[i].trouble = true
	n.states[i].epoch++
}

// Abandon makes clients that roam give up the requests that a node in trouble has
// not answered.
func (n *Nodes) Abandon(i int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.states[i].abandon()
}

// Well says that a node is as good as the others again, if it was not.
func (n *Nodes) Well(i int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.states[i].trouble {
		return
	}
	n.states[i].abandon()
	n.states[i].renew()
	n.states[i].trouble = false
	n.states[i].epoch++
}

// Outage says whether so many nodes are in trouble that no answer can be expected.
func (n *Nodes) Outage(outage bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.outage != outage {
		n.outage = outage
		n.epoch++
	}
}

// visit is one request's view of the node that it goes to.
type visit struct {
	nodes      *Nodes
	node       int
	trouble    bool
	node0, all int // epochs at the beginning
	ctx        context.Context
}

// visit chooses a node: home, or for clients without one any that is not in trouble.
func (n *Nodes) visit(home int) visit {
	n.mu.Lock()
	defer n.mu.Unlock()
	at := home
	if home < 0 {
		at = n.choose()
	}
	s := n.states[at]
	v := visit{nodes: n, node: at, trouble: s.trouble || n.outage, node0: s.epoch, all: n.epoch, ctx: context.Background()}
	if home < 0 {
		v.ctx = s.ctx
	}
	return v
}

// choose returns a node for those who roam; the caller holds the lock.
func (n *Nodes) choose() int {
	var well []int
	for i, s := range n.states {
		if !s.trouble {
			well = append(well, i)
		}
	}
	if len(well) == 0 {
		return rand.IntN(len(n.states))
	}
	return well[rand.IntN(len(well))]
}

// excused reports whether there was trouble at any time since the visit began.
func (v visit) excused() bool {
	v.nodes.mu.Lock()
	defer v.nodes.mu.Unlock()
	return v.trouble || v.nodes.states[v.node].epoch != v.node0 || v.nodes.epoch != v.all
}
