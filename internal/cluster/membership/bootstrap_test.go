package membership

import (
	"cmp"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// view builds members from words such as "a", "b*", "c!", "d~" and "e>": * belongs to a
// cluster, ! is dead, > has left, ~ is another incarnation. self names the local node.
func view(self string, words ...string) []Member {
	var nodes []Member
	for _, w := range words {
		m := Member{Name: w[:1], Incarnation: "1", State: Alive, Self: w[:1] == self}
		for _, mark := range w[1:] {
			switch mark {
			case '*':
				m.ClusterID = "id"
			case '!':
				m.State = Dead
			case '>':
				m.State = Left
			case '~':
				m.Incarnation = "2"
			}
		}
		nodes = append(nodes, m)
	}
	return nodes
}

func TestDecide(t *testing.T) {
	for name, test := range map[string]struct {
		view   []Member
		expect int
		seeds  bool
		step   Step
		nodes  int
		votes  int
	}{
		"single node":                       {view("a", "a"), 1, false, Provision, 0, 0},
		"single node, expect unset":         {view("a", "a"), 0, false, Provision, 0, 0},
		"seeds unreachable":                 {view("a", "a"), 1, true, Wait, 0, 0},
		"seed is fresh":                     {view("a", "a", "b"), 1, true, Wait, 0, 0},
		"seed belongs to a cluster":         {view("a", "a", "b*", "c*"), 1, true, Join, 2, 0},
		"cluster node is dead":              {view("a", "a", "b*!"), 1, true, Wait, 0, 0},
		"too few nodes":                     {view("a", "a", "b"), 3, true, Wait, 0, 0},
		"too few live nodes":                {view("a", "a", "b", "c!", "d>"), 3, true, Wait, 0, 0},
		"smallest name":                     {view("a", "a", "b", "c"), 3, true, Collect, 3, 3},
		"smallest name, no seeds":           {view("a", "a", "b", "c"), 3, false, Collect, 3, 3},
		"not the smallest name":             {view("b", "a", "b", "c"), 3, true, Wait, 0, 0},
		"smallest live name":                {view("b", "a!", "b", "c", "d"), 3, true, Collect, 3, 3},
		"more nodes than expected":          {view("a", "a", "b", "c", "d"), 2, true, Collect, 4, 3},
		"one fresh node joined a cluster":   {view("a", "a", "b", "c*"), 2, true, Join, 1, 0},
		"candidate has provisioned already": {view("b", "a*", "b", "c"), 3, true, Join, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			plan := Decide(test.view, test.expect, test.seeds)
			require.Equal(t, test.step.String(), plan.Step.String())
			require.Len(t, plan.Nodes, test.nodes)
			require.Equal(t, test.votes, plan.Votes)
		})
	}
}

func TestANodeVotesOnce(t *testing.T) {
	var b Ballot
	all := view("c", "a", "b", "c")
	require.ErrorIs(t, b.Vote(all, 3, "b", "1"), errNotCandidate)
	require.ErrorIs(t, b.Vote(all, 3, "a", "2"), errNotCandidate)
	require.ErrorIs(t, b.Vote(all, 4, "a", "1"), errNotCandidate)
	require.ErrorIs(t, b.Vote(view("c", "a", "b", "c*"), 2, "a", "1"), errProvisioned)

	require.NoError(t, b.Vote(all, 3, "a", "1"))
	require.NoError(t, b.Vote(all, 3, "a", "1"))
	// The candidate dies: it may have provisioned.
	require.ErrorIs(t, b.Vote(view("c", "a!", "b", "c", "d"), 3, "b", "1"), errVoted)
	// It returns with a wiped data directory.
	require.NoError(t, b.Vote(view("c", "a~", "b", "c"), 3, "a", "2"))
	// A better candidate appears; the vote is free only once the old one withdraws.
	before := view("c", "A", "a~", "b", "c")
	require.ErrorIs(t, b.Vote(before, 3, "A", "1"), errVoted)
	b.Withdraw("a", "1")
	require.ErrorIs(t, b.Vote(before, 3, "A", "1"), errVoted)
	b.Withdraw("a", "2")
	require.NoError(t, b.Vote(before, 3, "A", "1"))
}

// TestAtMostOneCandidateGetsEnoughVotes lets nodes discover each other in any order and
// request votes at any time.
func TestAtMostOneCandidateGetsEnoughVotes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(1, 7).Draw(t, "nodes")
		// If fewer than half of the nodes are expected, two halves that cannot see each
		// other form two clusters by configuration.
		expect := rapid.IntRange(count/2+1, count).Draw(t, "expect")
		type node struct {
			sees   map[int]bool
			ballot Ballot
			votes  map[int]bool
		}
		nodes := make([]*node, count)
		for i := range nodes {
			nodes[i] = &node{sees: map[int]bool{i: true}, votes: make(map[int]bool)}
		}
		viewOf := func(i int) []Member {
			var members []Member
			for j := range count {
				if nodes[i].sees[j] {
					members = append(members, Member{Name: fmt.Sprint(j), Incarnation: "1", State: Alive, Self: i == j})
				}
			}
			return members
		}
		winners := make(map[int]bool)
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			i, j := rapid.IntRange(0, count-1).Draw(t, "i"), rapid.IntRange(0, count-1).Draw(t, "j")
			nodes[i].sees[j] = true
			plan := Decide(viewOf(i), max(expect, 2), true)
			switch {
			case plan.Step == Collect:
				if nodes[j].ballot.Vote(viewOf(j), max(expect, 2), fmt.Sprint(i), "1") == nil {
					nodes[i].votes[j] = true
				}
				if len(nodes[i].votes) >= plan.Votes {
					winners[i] = true
				}
			case len(nodes[i].votes) > 0 && !winners[i]: // no longer the candidate
				for voter := range nodes[i].votes {
					nodes[voter].ballot.Withdraw(fmt.Sprint(i), "1")
				}
				clear(nodes[i].votes)
			}
		}
		require.LessOrEqual(t, len(winners), 1)
	})
}

func TestNodesWithFullViewElectSmallestName(t *testing.T) {
	for count := 2; count <= 5; count++ {
		var names []string
		for i := range count {
			names = append(names, string(rune('a'+i)))
		}
		votes := 0
		for _, voter := range names {
			var b Ballot
			if b.Vote(view(voter, names...), count, "a", "1") == nil {
				votes++
			}
			plan := Decide(view(voter, names...), count, true)
			require.Equal(t, cmp.Compare(voter, "a") == 0, plan.Step == Collect)
		}
		require.Equal(t, votesNeeded(count, count), votes)
	}
}

// TestNodesStartedTogetherElectOneCandidate starts three nodes with identical seeds.
func TestNodesStartedTogetherElectOneCandidate(t *testing.T) {
	start := time.Now()
	var seeds []string
	nodes := make(map[string]*testNode)
	for _, name := range []string{"c", "b", "a"} {
		l, packets := bind(t, "")
		require.NoError(t, errors.Join(l.Close(), packets.Close()))
		seeds = append(seeds, l.Addr().String())
		nodes[name] = &testNode{address: l.Addr().String()}
	}
	for name, n := range nodes {
		nodes[name] = startAt(t, n.address, name, func(c *Config) { c.Seeds = seeds })
	}
	for _, n := range nodes {
		n.sees("a", "b", "c")
	}
	t.Logf("all nodes discovered after %v", time.Since(start).Round(time.Millisecond))
	plan := Decide(nodes["a"].Nodes(), 3, true)
	require.Equal(t, Collect, plan.Step)
	ballots := make([]Ballot, len(plan.Nodes))
	for i, voter := range plan.Nodes {
		n := nodes[voter.Name]
		require.Equal(t, n.selfMember().Name == "a", Decide(n.Nodes(), 3, true).Step == Collect)
		require.NoError(t, ballots[i].Vote(n.Nodes(), 3, "a", "1"))
	}
	require.NoError(t, nodes["a"].UpdateMeta(func(m *Meta) { m.ClusterID = "id" }))
	for _, name := range []string{"b", "c"} {
		n := nodes[name]
		n.eventually("cluster to join", func() bool { return Decide(n.Nodes(), 3, true).Step == Join })
	}
	t.Logf("cluster known to all nodes after %v", time.Since(start).Round(time.Millisecond))
}
