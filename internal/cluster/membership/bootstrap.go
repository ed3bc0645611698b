package membership

import (
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Step is the next bootstrap action of a fresh node.
type Step uint8

// The bootstrap steps.
const (
	// Wait waits for more nodes, or for the candidate to provision the cluster.
	Wait Step = iota
	// Provision creates a single-node cluster.
	Provision
	// Collect requests the votes of the other fresh nodes. The node provisions the
	// cluster once it has enough votes; otherwise it starts over.
	Collect
	// Join requests admission to an existing cluster.
	Join
)

// String returns the step in lower case.
func (s Step) String() string {
	return [...]string{"wait", "provision", "collect", "join"}[s]
}

// Plan is the next bootstrap step of a fresh node and the nodes involved.
type Plan struct {
	Step Step
	// Nodes are the cluster's nodes for Join, and the voters, including this node, for
	// Collect.
	Nodes []Member
	// Votes is the number of votes that Collect needs, including this node's own.
	Votes int
}

// Decide returns the next step of a node that does not belong to a cluster. view is the
// result of Members.Nodes, expect the number of nodes that bootstrap together, and seeds
// reports whether seed addresses are configured: a node that has none and expects no
// other node provisions a cluster of its own.
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
	return Plan{Step: Collect, Nodes: nodes, Votes: votesNeeded(len(nodes), expect)}
}

// Candidate returns the fresh node that may provision the cluster: the one with the
// smallest name. There is none while fewer than expect fresh nodes are alive, or once
// any node belongs to a cluster.
func Candidate(view []Member, expect int) (Member, bool) {
	nodes := fresh(view)
	if len(nodes) == 0 || len(nodes) < expect || len(provisioned(view)) > 0 {
		return Member{}, false
	}
	return slices.MinFunc(nodes, byName), true
}

// votesNeeded returns the number of votes that a candidate needs: at least expect, and a
// majority of the fresh nodes, so that two candidates cannot both have enough.
func votesNeeded(nodes, expect int) int { return max(expect, nodes/2+1) }

func fresh(view []Member) []Member {
	return alive(view, func(m Member) bool { return m.fresh() })
}

func provisioned(view []Member) []Member {
	return alive(view, func(m Member) bool { return !m.fresh() })
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

// Reasons to reject a vote request.
var (
	// errProvisioned is returned when a cluster already exists.
	errProvisioned = errors.New("cluster is already provisioned")
	// errNotCandidate is returned when the voter sees a different candidate, or none yet.
	errNotCandidate = errors.New("not the candidate")
	// errVoted is returned when the voter has already voted for another node.
	errVoted = errors.New("already voted")
)

// Ballot is the single vote of a fresh node. The zero value has not voted. The vote is
// kept in memory only: a node that restarts may vote again. This is safe as long as a
// candidate needs the votes of all expected nodes, because a candidate that won is no
// longer fresh.
type Ballot struct {
	mu          sync.Mutex // covers the fields below
	name        string     // of the candidate that holds the vote, "" if none
	incarnation string
}

// Vote grants the vote to a candidate, or returns the reason for rejecting it. view and
// expect are the voter's own. Voting for the same candidate again succeeds.
//
// The vote is not reassigned merely because the candidate is down: it may have
// provisioned the cluster and come back. It is reassigned when the candidate returns
// fresh under a new incarnation, because the state of the old incarnation is lost.
func (b *Ballot) Vote(view []Member, expect int, name, incarnation string) error {
	candidate, ok := Candidate(view, expect)
	switch {
	case len(provisioned(view)) > 0:
		return errProvisioned
	case !ok:
		return fmt.Errorf("%w: %d of %d expected nodes are present", errNotCandidate, len(fresh(view)), expect)
	case candidate.Name != name || candidate.Incarnation != incarnation:
		return fmt.Errorf("%w: the candidate is %q, incarnation %s", errNotCandidate, candidate.Name, candidate.Incarnation)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.name != "" && b.name != name {
		return fmt.Errorf("%w for %q, incarnation %s", errVoted, b.name, b.incarnation)
	}
	b.name, b.incarnation = name, incarnation
	return nil
}

// Withdraw revokes the vote for a candidate that gives up. Only the candidate itself may
// request it, once it is certain not to provision with the votes it has.
func (b *Ballot) Withdraw(name, incarnation string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.name == name && b.incarnation == incarnation {
		b.name, b.incarnation = "", ""
	}
}
