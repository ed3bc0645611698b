package placement

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// disturb applies a random change to a cluster.
func disturb(t *rapid.T, s *sim) {
	ids := slices.Sorted(maps.Keys(s.nodes))
	n := s.nodes[rapid.SampledFrom(ids).Draw(t, "node")]
	switch rapid.SampledFrom([]string{"suspect", "lost", "back", "drain", "keep", "join", "remove", "recover", "replication"}).Draw(t, "event") {
	case "suspect":
		n.Liveness = Suspect
	case "lost":
		n.Liveness = Lost
	case "back":
		n.Liveness = Alive
	case "drain":
		n.Draining = true
	case "keep":
		n.Draining = false
	case "join":
		s.nodes[ids[len(ids)-1]+1] = &Node{ID: ids[len(ids)-1] + 1, Liveness: Alive}
	case "remove":
		if len(ids) > 1 {
			delete(s.nodes, n.ID)
		}
	case "recover":
		s.recover(n.ID)
	case "replication":
		s.replication = rapid.IntRange(1, 5).Draw(t, "replication")
	}
}

func drawSim(t *rapid.T) *sim {
	return newSim(t, rapid.IntRange(1, 6).Draw(t, "nodes"), rapid.IntRange(1, 12).Draw(t, "partitions"),
		rapid.IntRange(1, 5).Draw(t, "replication"), rapid.IntRange(0, 3).Draw(t, "max moves"))
}

func TestStepsAreSafeAndConverge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSim(t)
		for range rapid.IntRange(0, 12).Draw(t, "events") {
			if rapid.Bool().Draw(t, "in the middle") {
				s.elect()
				s.decide()
				for id := range uint32(len(s.parts)) {
					for range rapid.IntRange(0, 2).Draw(t, "changes") {
						s.elect()
						s.reconcile(s.parts[id])
					}
				}
			} else {
				require.True(t, s.settle(), "no end")
			}
			disturb(t, s)
		}
		require.True(t, s.settle(), "no end")
		requireValidPlacement(t, s)
	})
}

// requireValidPlacement checks the properties of a final placement.
func requireValidPlacement(t require.TestingT, s *sim) {
	staying, usable, well := 0, 0, true
	for _, n := range s.nodes {
		well = well && n.Liveness == Alive
		if !n.Draining {
			staying++
			if n.Liveness == Alive {
				usable++
			}
		}
	}
	want := max(1, min(s.replication, staying))
	for _, p := range s.parts {
		if p.Leader == 0 {
			well = false
			continue // too many replicas are down
		}
		if !same(p.Voters, p.Replicas) {
			well = false
			require.False(t, s.majority(p.Replicas) && len(p.Others) == 0, "it was not carried out: %+v", *p)
			continue
		}
		bad := 0
		for _, id := range p.Replicas {
			if n := s.nodes[id]; n == nil || n.Draining || n.Liveness == Lost {
				bad++
			}
		}
		spare := usable - (len(p.Replicas) - len(slices.DeleteFunc(slices.Clone(p.Replicas), func(id uint32) bool {
			n := s.nodes[id]
			return n != nil && n.Liveness == Alive && !n.Draining
		})))
		if spare > 0 {
			require.Zero(t, bad, "a replica is where it should not be: %+v", *p)
			require.Len(t, p.Replicas, want, "%+v", *p)
		}
		if staying > 0 {
			require.LessOrEqual(t, len(p.Replicas), want, "%+v", *p)
		}
	}
	if !well || usable == 0 {
		return
	}
	most, least := s.spread(replicas)
	require.LessOrEqual(t, most-least, 1, "replicas are not spread")
	most, least = s.spread(leader)
	require.LessOrEqual(t, most-least, 1, "leaders are not spread")
}

func TestNewNodesCauseMinimalMoves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSim(t)
		require.True(t, s.settle())
		s.replication = min(s.replication, len(s.nodes)) // so that it stays constant
		for id := range uint32(rapid.IntRange(1, 4).Draw(t, "join")) {
			s.nodes[100+id] = &Node{ID: 100 + id, Liveness: Alive}
		}
		has, total := map[uint32]int{}, 0
		for _, p := range s.parts {
			for _, id := range p.Replicas {
				has[id]++
				total++
			}
		}
		low, high := total/len(s.nodes), (total+len(s.nodes)-1)/len(s.nodes)
		above, below := 0, 0
		for id := range s.nodes {
			above += max(0, has[id]-high)
			below += max(0, low-has[id])
		}
		s.added = 0
		require.True(t, s.settle())
		requireValidPlacement(t, s)
		require.Equal(t, max(above, below), s.added, "moves")
	})
}

func TestBalancedClusterNeedsNoSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSim(t)
		require.True(t, s.settle())
		require.Empty(t, s.cluster().Next())
		for _, n := range s.nodes {
			if rapid.Bool().Draw(t, "away") {
				n.Liveness = Suspect
			}
		}
		require.Empty(t, s.cluster().Next(), "nodes that are away for a moment change nothing")
	})
}

func TestConcurrentMovesAreLimited(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSim(t, 1, 12, 3, rapid.IntRange(1, 4).Draw(t, "max moves"))
		require.True(t, s.settle())
		s.nodes[2] = &Node{ID: 2, Liveness: Alive}
		for range 5 {
			s.elect()
			s.decide()
			moving := 0
			for _, p := range s.parts {
				if !same(p.Replicas, p.Voters) {
					moving++
				}
			}
			require.Equal(t, s.maxMoves, moving)
		}
	})
}

func TestSteps(t *testing.T) {
	well := func(replicas ...uint32) Partition {
		return Partition{Replicas: replicas, Voters: replicas, Leader: replicas[0]}
	}
	alive := func(ids ...uint32) (nodes []Node) {
		for _, id := range ids {
			nodes = append(nodes, Node{ID: id, Liveness: Alive})
		}
		return nodes
	}
	for name, tc := range map[string]struct {
		nodes       []Node
		replication int
		partition   Partition
		want        []Step
	}{
		"a new partition":             {alive(1, 2, 3), 3, Partition{}, []Step{{0, []uint32{1, 2, 3}, Assign}}},
		"no node for it":              {[]Node{{ID: 1}}, 3, Partition{}, nil},
		"the second node comes":       {alive(1, 2), 3, well(1), []Step{{0, []uint32{1, 2}, Grow}}},
		"company for a lone one":      {alive(1, 2, 3), 3, well(1), []Step{{0, []uint32{1, 2, 3}, Grow}}},
		"else one at a time":          {alive(1, 2, 3, 4), 4, well(1, 2), []Step{{0, []uint32{1, 2, 3}, Grow}}},
		"a lost node":                 {append(alive(1, 2, 4), Node{ID: 3, Liveness: Lost}), 3, well(3, 1, 2), []Step{{0, []uint32{1, 2, 4}, Replace}}},
		"no replacement":              {append(alive(1, 2), Node{ID: 3, Liveness: Lost}), 3, well(1, 2, 3), nil},
		"no replacement for a leader": {append(alive(1, 2), Node{ID: 3, Liveness: Lost}), 3, well(3, 1, 2), []Step{{0, []uint32{1, 3, 2}, Lead}}},
		"a removed node":              {alive(1, 2), 3, well(1, 2, 3), []Step{{0, []uint32{1, 2}, Shrink}}},
		"most nodes are lost":         {[]Node{{1, Alive, false}, {2, Lost, false}, {3, Lost, false}, {4, Alive, false}}, 3, well(1, 2, 3), nil},
		"drain one of three":          {[]Node{{1, Alive, true}, {2, Alive, false}, {3, Alive, false}}, 3, well(1, 2, 3), []Step{{0, []uint32{2, 3}, Shrink}}},
		"drain the only replica":      {[]Node{{1, Alive, true}, {2, Alive, false}}, 1, well(1), []Step{{0, []uint32{2}, Replace}}},
		"drain the only node":         {[]Node{{1, Alive, true}}, 1, well(1), nil},
		"too many replicas":           {alive(1, 2, 3), 1, well(3, 2, 1), []Step{{0, []uint32{3, 2}, Shrink}}},
		"leader unknown":              {alive(1, 2), 2, Partition{Replicas: []uint32{1}, Voters: []uint32{1}}, nil},
		"a move under way":            {alive(1, 2, 3), 2, Partition{Replicas: []uint32{1, 2}, Voters: []uint32{1}, Others: []uint32{2}, Leader: 1}, nil},
		"a stranger among voters":     {alive(1, 2, 3, 4), 2, Partition{Replicas: []uint32{1, 2}, Voters: []uint32{1, 2, 0}, Leader: 1}, nil},
		"a move to a lost node": {
			append(alive(1, 2, 4), Node{ID: 3, Liveness: Lost}), 2,
			Partition{Replicas: []uint32{1, 3}, Voters: []uint32{1}, Others: []uint32{3}, Leader: 1},
			[]Step{{0, []uint32{1, 2}, Retry}},
		},
		"a recovered partition that has one replica": {
			alive(1, 2, 3), 4,
			Partition{Replicas: []uint32{4, 1, 2, 5}, Voters: []uint32{1}, Leader: 1},
			[]Step{{0, []uint32{1, 2, 3}, Retry}},
		},
		"a recovered partition that has two replicas": {
			alive(1, 2, 3), 4,
			Partition{Replicas: []uint32{1, 2, 4, 5}, Voters: []uint32{1, 2}, Leader: 1},
			[]Step{{0, []uint32{1, 2, 3}, Retry}},
		},
		"a recovered partition that is getting a replica": {
			alive(1, 2, 3, 6), 4,
			Partition{Replicas: []uint32{1, 2, 3, 4, 5}, Voters: []uint32{1, 2}, Others: []uint32{3}, Leader: 1},
			[]Step{{0, []uint32{1, 2, 3}, Retry}},
		},
		"the old replica stays instead": {
			append(alive(1, 2, 4), Node{ID: 3, Liveness: Lost}), 2,
			Partition{Replicas: []uint32{1, 3}, Voters: []uint32{1, 4}, Others: []uint32{3}, Leader: 1},
			[]Step{{0, []uint32{1, 4}, Retry}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := Cluster{Nodes: tc.nodes, Replication: tc.replication, Partitions: []Partition{tc.partition}}
			require.Equal(t, tc.want, c.Next())
		})
	}
}
