package metadata

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"platform/metadata/placement"
)

// awaitTable waits until the partition table, as seen by a node, satisfies a condition.
func (c *testCluster) awaitTable(n *testNode, what string, is func(*Layout) bool) {
	c.t.Helper()
	require.Eventually(c.t, func() bool {
		l, _ := n.Layout()
		return is(l)
	}, time.Minute, 5*time.Millisecond, what)
}

func everywhere(replicas int) func(*Layout) bool {
	return func(l *Layout) bool {
		return !slices.ContainsFunc(l.Partitions, func(p Partition) bool { return len(p.Replicas) != replicas })
	}
}

func nothingOn(id uint32) func(*Layout) bool {
	return func(l *Layout) bool {
		return !slices.ContainsFunc(l.Partitions, func(p Partition) bool { return slices.Contains(p.Replicas, id) })
	}
}

func TestAClusterGrowsToFiveNodesAndShrinks(t *testing.T) {
	c := newTestCluster(t)
	nodes := c.startAll(1, 6)
	c.awaitTable(nodes[0], "all partitions on the only node", func(l *Layout) bool {
		return everywhere(1)(l) && l.Partitions[5].Replicas[0] == 1 && l.Partitions[5].Version == 0
	})
	join := func(i int) *testNode {
		n := c.start(fmt.Sprint("n", i), "a", "", false)
		_, err := nodes[0].AddNode(t.Context(), n.self, false)
		require.NoError(t, err)
		nodes = append(nodes, n)
		return n
	}
	join(2)
	c.awaitVoters(2, 0, nodes...)
	c.awaitTable(nodes[0], "on both", everywhere(2))
	join(3)
	c.awaitVoters(3, 0, nodes...)
	c.awaitTable(nodes[2], "on all three, and two to lead for each", func(l *Layout) bool {
		leads := map[uint32]int{}
		for _, p := range l.Partitions {
			leads[p.Replicas[0]]++
		}
		return everywhere(3)(l) && leads[1] == 2 && leads[2] == 2 && leads[3] == 2
	})
	join(4)
	c.awaitVoters(3, 1, nodes...)
	join(5)
	c.awaitVoters(5, 0, nodes...)

	leader, _ := c.leader(nodes...)
	record, _ := leader.source.current().node(leader.self.Name)
	id := record.ID
	rest := slices.DeleteFunc(slices.Clone(nodes), func(n *testNode) bool { return n == leader })
	other := rest[0]
	_, err := other.RemoveNode(t.Context(), id, false)
	require.ErrorIs(t, err, ErrNodeHoldsData)
	_, err = other.DrainNode(t.Context(), id, true)
	require.NoError(t, err)
	c.awaitTable(other, "drained", nothingOn(id))
	c.awaitTable(other, "with as many replicas", everywhere(3))
	_, err = other.RemoveNode(t.Context(), id, false)
	require.NoError(t, err)
	c.awaitVoters(3, 1, rest...)
	for _, n := range rest {
		for _, s := range n.Group().Servers() {
			require.NotEqual(t, leader.self.ServerID(), s.ID)
		}
	}
}

// A node that does not respond to the controller does not keep others from getting a vote.
func TestASilentNodeDoesNotStopPromotions(t *testing.T) {
	c := newTestCluster(t)
	nodes := c.startAll(1, 1)
	silent := c.start("n2", "a", "", false)
	c.mu.Lock()
	c.silent = silent.address
	c.mu.Unlock()
	for _, n := range []*testNode{silent, c.start("n3", "a", "", false)} {
		_, err := nodes[0].AddNode(t.Context(), n.self, false)
		require.NoError(t, err)
		nodes = append(nodes, n)
	}
	c.awaitVoters(2, 1, nodes...)
	c.mu.Lock()
	c.silent = ""
	c.mu.Unlock()
	c.awaitVoters(3, 0, nodes...)
}

func TestANodeThatLostItsDataRejoins(t *testing.T) {
	c := newTestCluster(t)
	nodes := c.startAll(3, 4)
	c.awaitVoters(3, 0, nodes...)
	leader, wiped := c.leader(nodes...)
	wiped.kill()
	rest := slices.DeleteFunc(nodes, func(n *testNode) bool { return n == wiped })
	next := c.start(wiped.self.Name, "b", string(wiped.address), false)
	_, err := leader.AddNode(t.Context(), next.self, true)
	require.ErrorIs(t, err, ErrNodeInUse)
	got, err := leader.AddNode(t.Context(), next.self, false)
	require.NoError(t, err)
	require.Equal(t, "b", got.Incarnation)
	c.awaitVoters(3, 0, append(rest, next)...)
	for _, s := range leader.Group().Servers() {
		require.NotEqual(t, wiped.self.ServerID(), s.ID, "the term and vote of its predecessor are lost")
	}
	require.LessOrEqual(t, got.ID, uint32(3), "its entries in the partition table are unchanged")
}

func TestALostVoterGivesItsVoteToASpareNode(t *testing.T) {
	c := newTestCluster(t)
	nodes := c.startAll(4, 4)
	c.awaitVoters(3, 1, nodes...)
	leader, _ := c.leader(nodes...)
	var lost *testNode
	for _, s := range leader.Group().Servers() {
		for _, n := range nodes {
			if s.ID == n.self.ServerID() && n != leader && s.Suffrage == raft.Voter {
				lost = n
			}
		}
	}
	c.awaitTable(leader, "spread", func(l *Layout) bool {
		has, leads := map[uint32]int{}, map[uint32]int{}
		for _, p := range l.Partitions {
			leads[p.Replicas[0]]++
			for _, id := range p.Replicas {
				has[id]++
			}
		}
		return slices.Min(slices.Collect(maps.Values(has))) == 3 && len(leads) == 4
	})
	record, _ := leader.source.current().node(lost.self.Name)
	id := record.ID
	lost.kill()
	c.mu.Lock()
	c.liveness[id] = placement.Suspect
	c.mu.Unlock()
	before, _ := leader.Layout()
	for range 3 {
		_, err := leader.controlOnce(t.Context(), c)
		require.NoError(t, err)
	}
	after, _ := leader.Layout()
	require.Equal(t, before, after, "a node that may come back is not replaced")

	c.mu.Lock()
	c.liveness[id] = placement.Lost
	c.mu.Unlock()
	c.awaitTable(leader, "replaced", nothingOn(id))
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		for _, s := range leader.Group().Servers() {
			require.Equal(t, s.ID != lost.self.ServerID(), s.Suffrage == raft.Voter, "%v", s)
		}
	}, time.Minute, 5*time.Millisecond)
}

// A node leads the metadata until it closes them, after it has stopped the controller.
func TestControllerEndsWhileItsNodeLeads(t *testing.T) {
	c := newTestCluster(t)
	n := c.startAll(1, 2)[0]
	c.awaitTable(n, "the node leads and its controller is running", everywhere(1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ended := make(chan error, 1)
	go func() { ended <- n.RunController(ctx, func() Observer { return c }) }()
	select {
	case err := <-ended:
		require.ErrorIs(t, err, context.Canceled)
	case <-time.After(time.Minute):
		t.Fatal("the controller continues")
	}
}

// Of a node that was silent when this one last led, nothing is known since.
func TestEachLeadershipObservesAnew(t *testing.T) {
	c := newTestCluster(t)
	nodes := c.startAll(2, 1)
	c.awaitVoters(2, 0, nodes...)
	first, _ := c.leader(nodes...)
	for range 2 {
		leader, _ := c.leader(nodes...)
		require.NoError(t, leader.Group().TransferLeadership(t.Context(), ""))
		require.Eventually(t, func() bool { return !leader.Group().IsLeader() }, time.Minute, time.Millisecond)
	}
	require.Eventually(t, func() bool { return first.observers.Load() >= 2 }, time.Minute, time.Millisecond)
}
