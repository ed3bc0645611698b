package placement

import (
	"cmp"
	"slices"
)

// Liveness is the observed state of a node's process.
type Liveness uint8

// Values of Liveness.
const (
	// Suspect nodes may be unavailable temporarily: they get no replicas and keep theirs.
	Suspect Liveness = iota
	// Alive nodes respond.
	Alive
	// Lost nodes are not expected to return: their replicas are replaced.
	Lost
)

// Node is a member of the cluster. Nodes that are not listed have been removed.
type Node struct {
	ID       uint32 // not 0
	Liveness Liveness
	Draining bool // its replicas are moved to other nodes
}

// Partition is the desired state (table) and the actual state (Raft group) of a partition.
type Partition struct {
	ID uint32
	// Replicas are the nodes that should have a replica; the first is the preferred
	// leader. It is empty for a new partition.
	Replicas []uint32
	// Leader is the node that leads the Raft group, 0 if unknown.
	Leader uint32
	// Voters and Others are the nodes of the leader's Raft configuration; 0 stands for a
	// server whose node was removed.
	Voters, Others []uint32
}

// Cluster is the input of placement.
type Cluster struct {
	Nodes       []Node
	Partitions  []Partition
	Replication int // desired number of replicas per partition
	// MaxMoves limits how many partitions add or remove a replica concurrently, including
	// moves in progress; 0 means no limit.
	MaxMoves int
}

// Step is a new set of replicas for one partition.
type Step struct {
	Partition uint32
	Replicas  []uint32
	Reason    Reason
}

// Reason is the human-readable reason for a step.
type Reason string

// Reasons for steps.
const (
	Assign  Reason = "assign a new partition"
	Retry   Reason = "another node instead of one that is gone"
	Replace Reason = "replace a replica"
	Grow    Reason = "more replicas"
	Shrink  Reason = "one replica less"
	Balance Reason = "spread replicas"
	Lead    Reason = "spread leaders"
)

// Next returns the next steps, at most one per partition, in order of priority. It returns
// none if the placement is final, or if earlier steps must complete first.
func (c Cluster) Next() []Step {
	p := newPlan(c)
	p.assign()
	p.retry()
	p.repair()
	p.resize()
	p.balance()
	p.preferUsable()
	if len(p.steps) == 0 && p.moving == 0 {
		p.spreadLeaders()
	}
	return p.steps
}

// plan is the working state of Next.
type plan struct {
	nodes  []Node // sorted by id
	parts  []*part
	factor int // replicas per partition, limited by the number of nodes
	limit  int // maximum of moving, 0 for none
	moving int // partitions with a move in progress
	load   map[uint32]int
	steps  []Step
}

// part is a partition and whether a step was decided for it.
type part struct {
	Partition
	settled bool // the Raft configuration matches the table
	done    bool // a step was decided
}

func newPlan(c Cluster) *plan {
	p := &plan{nodes: slices.Clone(c.Nodes), limit: c.MaxMoves, load: map[uint32]int{}}
	slices.SortFunc(p.nodes, func(a, b Node) int { return cmp.Compare(a.ID, b.ID) })
	staying := 0
	for _, n := range p.nodes {
		if !n.Draining {
			staying++
		}
	}
	p.factor = max(1, min(c.Replication, staying))
	for _, q := range c.Partitions {
		settled := q.Leader != 0 && len(q.Others) == 0 && same(q.Voters, q.Replicas)
		p.parts = append(p.parts, &part{Partition: q, settled: settled})
		p.count(q.Replicas, 1)
		if !settled && q.Leader != 0 && p.all(q.Replicas, p.alive) {
			p.moving++ // a stuck move must not block others
		}
	}
	slices.SortFunc(p.parts, func(a, b *part) int { return cmp.Compare(a.ID, b.ID) })
	return p
}

func (p *plan) count(replicas []uint32, by int) {
	for _, id := range replicas {
		p.load[id] += by
	}
}

// step adds a step that assigns replicas to q.
func (p *plan) step(q *part, replicas []uint32, reason Reason) {
	p.count(q.Replicas, -1)
	p.count(replicas, 1)
	if !same(q.Replicas, replicas) && q.settled {
		p.moving++
	}
	q.Replicas, q.done = replicas, true
	p.steps = append(p.steps, Step{Partition: q.ID, Replicas: replicas, Reason: reason})
}

// move is like step if the change is safe and within the limit of moves.
func (p *plan) move(q *part, replicas []uint32, reason Reason) bool {
	if p.full() || !p.safe(q, replicas) {
		return false
	}
	p.step(q, replicas, reason)
	return true
}

func (p *plan) full() bool { return p.limit > 0 && p.moving >= p.limit }

// safe reports whether changing the voters to replicas is a single change that majorities
// before and after can commit. A single voter can add any number.
func (p *plan) safe(q *part, replicas []uint32) bool {
	in, out := len(without(replicas, q.Voters)), len(without(q.Voters, replicas))
	return q.Leader != 0 && len(replicas) > 0 &&
		(in <= 1 || len(q.Voters) == 1 && out == 0) && out <= 1 &&
		p.majority(q.Voters) && p.majority(replicas)
}

// majority reports whether most of the nodes are alive.
func (p *plan) majority(ids []uint32) bool {
	alive := 0
	for _, id := range ids {
		if p.alive(id) {
			alive++
		}
	}
	return alive > len(ids)/2
}

func (p *plan) node(id uint32) (Node, bool) {
	at, ok := slices.BinarySearchFunc(p.nodes, id, func(n Node, id uint32) int { return cmp.Compare(n.ID, id) })
	if !ok {
		return Node{}, false
	}
	return p.nodes[at], true
}

func (p *plan) alive(id uint32) bool {
	n, member := p.node(id)
	return member && n.Liveness == Alive
}

// usable reports whether a node can get replicas and leaders.
func (p *plan) usable(id uint32) bool {
	n, member := p.node(id)
	return member && n.Liveness == Alive && !n.Draining
}

// leaving reports whether the replicas of a node must be moved away.
func (p *plan) leaving(id uint32) bool {
	n, member := p.node(id)
	return !member || n.Draining || n.Liveness == Lost
}

func (p *plan) all(ids []uint32, is func(uint32) bool) bool {
	return !slices.ContainsFunc(ids, func(id uint32) bool { return !is(id) })
}

// candidate returns the least loaded usable node that is not excluded; 0 if there is none.
func (p *plan) candidate(exclude []uint32) (best uint32) {
	for _, n := range p.nodes {
		if p.usable(n.ID) && !slices.Contains(exclude, n.ID) && (best == 0 || p.load[n.ID] < p.load[best]) {
			best = n.ID
		}
	}
	return best
}

// without returns the elements of a that are not in b.
func without(a, b []uint32) []uint32 {
	return slices.DeleteFunc(slices.Clone(a), func(id uint32) bool { return slices.Contains(b, id) })
}

// same reports whether a and b have the same elements.
func same(a, b []uint32) bool {
	return len(a) == len(b) && len(without(a, b)) == 0
}

// Moving reports whether a known move is in progress.
func (c Cluster) Moving() bool {
	return slices.ContainsFunc(c.Partitions, func(q Partition) bool {
		return q.Leader != 0 && (len(q.Others) > 0 || !same(q.Voters, q.Replicas))
	})
}
