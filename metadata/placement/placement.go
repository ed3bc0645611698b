package placement

import (
	"cmp"
	"slices"
)

// Liveness is what is known of a node's process.
type Liveness uint8

// The possible kinds of liveness.
const (
	// Suspect nodes may be away for a moment: they get nothing new and lose nothing.
	Suspect Liveness = iota
	// Alive nodes answer.
	Alive
	// Lost nodes are not expected to come back: they are replaced.
	Lost
)

// Node is a member of the cluster. A node that is no member was removed.
type Node struct {
	ID       uint32 // not 0
	Liveness Liveness
	Draining bool // has to give its replicas away
}

// Partition is what the table and the Raft group say of a partition.
type Partition struct {
	ID uint32
	// Replicas are the nodes that should have a replica; the first should lead. None:
	// the partition is new.
	Replicas []uint32
	// Leader is the node that leads the Raft group, 0 if that is not known.
	Leader uint32
	// Voters and Others are the nodes of the Raft configuration, as the leader has
	// it; 0 stands for a server that belongs to no node any more.
	Voters, Others []uint32
}

// Cluster is all that placement depends on.
type Cluster struct {
	Nodes       []Node
	Partitions  []Partition
	Replication int // wanted replicas of each partition
	// MaxMoves bounds how many partitions get or lose a replica at the same time,
	// counting those that do already; 0 is no bound.
	MaxMoves int
}

// Step is a new place for one partition.
type Step struct {
	Partition uint32
	Replicas  []uint32
	Reason    Reason
}

// Reason says why a step is taken, for people.
type Reason string

// The reasons there are.
const (
	Assign  Reason = "assign a new partition"
	Retry   Reason = "another node instead of one that is gone"
	Replace Reason = "replace a replica"
	Grow    Reason = "more replicas"
	Shrink  Reason = "one replica less"
	Balance Reason = "spread replicas"
	Lead    Reason = "spread leaders"
)

// Next names the steps to take now, at most one for a partition, in the order of
// importance. There are none when nothing is to be done, or nothing can be done until
// steps taken before are carried out.
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

// plan is a decision in the making.
type plan struct {
	nodes  []Node // sorted by id
	parts  []*part
	factor int // replicas that each partition should have, as things are
	limit  int // of moving, 0 if none
	moving int // partitions under way
	load   map[uint32]int
	steps  []Step
}

// part is a partition with what was decided for it.
type part struct {
	Partition
	settled bool // the Raft configuration is what the table says
	done    bool // there is a step for it
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
			p.moving++ // others may stand still for long and must not hold everything up
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

// step decides for replicas as the place of q.
func (p *plan) step(q *part, replicas []uint32, reason Reason) {
	p.count(q.Replicas, -1)
	p.count(replicas, 1)
	if !same(q.Replicas, replicas) && q.settled {
		p.moving++
	}
	q.Replicas, q.done = replicas, true
	p.steps = append(p.steps, Step{Partition: q.ID, Replicas: replicas, Reason: reason})
}

// move is step if that is safe and not too much at a time.
func (p *plan) move(q *part, replicas []uint32, reason Reason) bool {
	if p.full() || !p.safe(q, replicas) {
		return false
	}
	p.step(q, replicas, reason)
	return true
}

func (p *plan) full() bool { return p.limit > 0 && p.moving >= p.limit }

// safe reports whether a change of the voters into replicas is one move that a
// majority before and after can agree on. Who votes alone can take in any number.
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

// usable nodes can be given something.
func (p *plan) usable(id uint32) bool {
	n, member := p.node(id)
	return member && n.Liveness == Alive && !n.Draining
}

// leaving nodes have to be rid of what they have.
func (p *plan) leaving(id uint32) bool {
	n, member := p.node(id)
	return !member || n.Draining || n.Liveness == Lost
}

func (p *plan) all(ids []uint32, is func(uint32) bool) bool {
	return !slices.ContainsFunc(ids, func(id uint32) bool { return !is(id) })
}

// candidate is the usable node with the fewest replicas that is not among those
// named; 0 if there is none.
func (p *plan) candidate(not []uint32) (best uint32) {
	for _, n := range p.nodes {
		if p.usable(n.ID) && !slices.Contains(not, n.ID) && (best == 0 || p.load[n.ID] < p.load[best]) {
			best = n.ID
		}
	}
	return best
}

// without are the elements of a that are not in b.
func without(a, b []uint32) []uint32 {
	return slices.DeleteFunc(slices.Clone(a), func(id uint32) bool { return slices.Contains(b, id) })
}

// same reports whether a and b have the same elements.
func same(a, b []uint32) bool {
	return len(a) == len(b) && len(without(a, b)) == 0
}

// Moving reports whether a partition is on its way from one place to another, as far
// as is known.
func (c Cluster) Moving() bool {
	return slices.ContainsFunc(c.Partitions, func(q Partition) bool {
		return q.Leader != 0 && (len(q.Others) > 0 || !same(q.Voters, q.Replicas))
	})
}
