package membership

import (
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Step is what a fresh node does next.
type Step uint8

// The steps of a fresh node.
const (
	// Wait is for more nodes, or for the candidate to provision the cluster.
	Wait Step = iota
	// Provision makes a cluster of this node alone.
	Provision
	// Collect asks the other fresh nodes for their votes. With enough of them the node
	// provisions the cluster, otherwise it starts over.
	Collect
	// Join asks the cluster that exists to take this node in.
	Join
)

// String returns the step in lower case.
func (s Step) String() string {
	return [...]string{"wait", "provision", "collect", "join"}[s]
}

// Plan is what a fresh node does next, and with whom.
type Plan struct {
	Step Step
	// Nodes are the nodes of the cluster for Join, and the fresh nodes to ask for
	// votes for Collect, this node among them.
	Nodes []Member
	// Votes is how many votes Collect needs, that of this node included.
	Votes int
}

// Decide returns what a node does that is part of no cluster. view is Nodes, expect
// the number of nodes that start together, and seeds tells whether nodes to join
// through are configured: without them a node that expects no others is on its own.
func Decide(view []Member, expect int, seeds bool) Plan {
	if nodes := provisioned(view); len(nodes) > 0 {
		return Plan{Step: Join, Nodes: nodes}
	}
	if expect <= 1 {
		if seeds {
			return Plan{Step: Wait}
		}
		return Plan{Step: Provision}
	}
	candidate, ok := Candidate(view, expect)
	if !ok || !candidate.Self {
		return Plan{Step: Wait}
	}
	nodes := fresh(view)
	return Plan{Step: Collect, Nodes: nodes, Votes: Needed(len(nodes), expect)}
}

// Candidate returns the fresh node that may provision the cluster: the one with the
// smallest name. There is none while fewer than expect fresh nodes are alive, and none
// any more once a node is part of a cluster.
func Candidate(view []Member, expect int) (Member, bool) {
	nodes := fresh(view)
	if len(nodes) == 0 || len(nodes) < expect || len(provisioned(view)) > 0 {
		return Member{}, false
	}
	return slices.MinFunc(nodes, byName), true
}

// Needed returns how many votes a candidate needs: all that are expected, and a
// majority if more nodes than that start together, so that two candidates cannot both
// have enough.
func Needed(nodes, expect int) int { return max(expect, nodes/2+1) }

func fresh(view []Member) []Member {
	return alive(view, func(m Member) bool { return m.Fresh() })
}

func provisioned(view []Member) []Member {
	return alive(view, func(m Member) bool { return !m.Fresh() })
}

func alive(view []Member, keep func(Member) bool) []Member {
	var nodes []Member
	for _, m := range view {
		if m.State == Alive && keep(m) {
			nodes = append(nodes, m)
		}
	}
	return nodes
}

// Reasons not to vote for a candidate.
var (
	// ErrProvisioned says that a cluster exists already.
	ErrProvisioned = errors.New("the cluster is provisioned")
	// ErrNotCandidate says that the voter would have another node provision, or none
	// yet.
	ErrNotCandidate = errors.New("not the candidate")
	// ErrVoted says that the vote was given to another node.
	ErrVoted = errors.New("vote was given")
)

// Ballot is the one vote of a fresh node. The zero value has not voted. It lives in
// memory: a node that restarts has its vote again, which does no harm as long as a
// candidate needs the votes of all nodes that are expected, because the candidate that
// had enough of them is not fresh any more.
type Ballot struct {
	// mu covers the rest.
	mu          sync.Mutex
	name        string // of the candidate that has the vote, "" if nobody
	incarnation string
}

// Vote gives the vote to a candidate, or returns why not. view and expect are the
// voter's own. Repeated for the same candidate it succeeds again.
//
// The vote moves to nobody else just because the candidate is gone: it may have
// provisioned and come back. It moves when the candidate comes back fresh as another
// incarnation, for then what the former one did is lost.
func (b *Ballot) Vote(view []Member, expect int, name, incarnation string) error {
	candidate, ok := Candidate(view, expect)
	switch {
	case len(provisioned(view)) > 0:
		return ErrProvisioned
	case !ok:
		return fmt.Errorf("%w: %d of %d expected nodes are here", ErrNotCandidate, len(fresh(view)), expect)
	case candidate.Name != name || candidate.Incarnation != incarnation:
		return fmt.Errorf("%w: that is %q, incarnation %s", ErrNotCandidate, candidate.Name, candidate.Incarnation)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.name != "" && b.name != name {
		return fmt.Errorf("%w to %q, incarnation %s", ErrVoted, b.name, b.incarnation)
	}
	b.name, b.incarnation = name, incarnation
	return nil
}

// Withdraw takes the vote back from a candidate that gives up. Only the candidate
// itself may ask for it, when it will not provision with the votes it has.
func (b *Ballot) Withdraw(name, incarnation string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.name == name && b.incarnation == incarnation {
		b.name, b.incarnation = "", ""
	}
}
