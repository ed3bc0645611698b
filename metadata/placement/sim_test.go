package placement

import (
	"fmt"
	"maps"
	"slices"

	"github.com/stretchr/testify/require"
)

// sim is a cluster whose partitions follow the table like Raft leaders: add as non-voter,
// promote, then remove others, one change at a time, never losing the majority.
type sim struct {
	t           require.TestingT
	nodes       map[uint32]*Node
	parts       map[uint32]*Partition
	replication int
	maxMoves    int
	added       int // total replicas
}

func newSim(t require.TestingT, nodes, parts, replication, maxMoves int) *sim {
	s := &sim{t: t, nodes: map[uint32]*Node{}, parts: map[uint32]*Partition{}, replication: replication, maxMoves: maxMoves}
	for id := range uint32(nodes) {
		s.nodes[id+1] = &Node{ID: id + 1, Liveness: Alive}
	}
	for id := range uint32(parts) {
		s.parts[id] = &Partition{ID: id}
	}
	return s
}

func (s *sim) cluster() Cluster {
	c := Cluster{Replication: s.replication, MaxMoves: s.maxMoves}
	for _, id := range slices.Sorted(maps.Keys(s.nodes)) {
		c.Nodes = append(c.Nodes, *s.nodes[id])
	}
	for _, id := range slices.Sorted(maps.Keys(s.parts)) {
		c.Partitions = append(c.Partitions, *s.parts[id])
	}
	return c
}

func (s *sim) alive(id uint32) bool { return s.nodes[id] != nil && s.nodes[id].Liveness == Alive }

func (s *sim) majority(ids []uint32) bool {
	return len(slices.DeleteFunc(slices.Clone(ids), func(id uint32) bool { return !s.alive(id) })) > len(ids)/2
}

// elect elects a leader for each partition with a majority.
func (s *sim) elect() {
	for _, p := range s.parts {
		switch {
		case len(p.Voters) == 0:
		case !s.majority(p.Voters):
			p.Leader = 0
		case slices.Contains(p.Voters, p.Replicas[0]) && s.alive(p.Replicas[0]):
			p.Leader = p.Replicas[0]
		case !s.alive(p.Leader) || !slices.Contains(p.Voters, p.Leader):
			p.Leader = p.Voters[slices.IndexFunc(p.Voters, s.alive)]
		}
	}
}

// recover makes a node's replica the only one of each partition that has lost its majority.
func (s *sim) recover(node uint32) {
	s.elect()
	for _, p := range s.parts {
		if p.Leader == 0 && slices.Contains(p.Voters, node) && s.alive(node) {
			p.Voters, p.Others, p.Leader = []uint32{node}, nil, node
		}
	}
}

// decide applies the next steps to the table, checking each one.
func (s *sim) decide() []Step {
	c := s.cluster()
	steps := c.Next()
	require.Equal(s.t, steps, c.Next(), "the decision depends on nothing else")
	seen := map[uint32]bool{}
	for _, step := range steps {
		require.False(s.t, seen[step.Partition], "two steps for partition %d", step.Partition)
		seen[step.Partition] = true
		p := s.parts[step.Partition]
		s.check(p, step)
		if len(p.Voters) == 0 {
			p.Voters = slices.Clone(step.Replicas)
		}
		p.Replicas = step.Replicas
	}
	return steps
}

func (s *sim) check(p *Partition, step Step) {
	what := fmt.Sprintf("%+v of %+v", step, *p)
	require.NotEmpty(s.t, step.Replicas, what)
	for i, id := range step.Replicas {
		require.NotContains(s.t, step.Replicas[:i], id, what)
		if !slices.Contains(p.Replicas, id) {
			require.True(s.t, s.alive(id), "new replica on a node that is not alive: %s", what)
		}
	}
	if step.Reason == Assign {
		require.Empty(s.t, p.Voters, what)
		return
	}
	require.NotEqual(s.t, p.Replicas, step.Replicas, what)
	if len(p.Voters) > 1 || !slices.Contains(step.Replicas, p.Voters[0]) {
		require.LessOrEqual(s.t, len(without(step.Replicas, p.Voters)), 1, "more than one comes: %s", what)
	}
	require.LessOrEqual(s.t, len(without(p.Voters, step.Replicas)), 1, "more than one goes: %s", what)
	require.NotZero(s.t, p.Leader, "no leader can execute it: %s", what)
	require.True(s.t, s.majority(step.Replicas), "it would have no majority: %s", what)
	if step.Reason != Retry {
		require.True(s.t, same(p.Voters, p.Replicas) && len(p.Others) == 0, "a move is under way: %s", what)
	}
}

// reconcile applies one Raft change of one partition; false if there is none.
func (s *sim) reconcile(p *Partition) bool {
	if p.Leader == 0 {
		return false
	}
	for _, id := range p.Replicas {
		switch {
		case slices.Contains(p.Voters, id):
		case slices.Contains(p.Others, id) && s.alive(id):
			p.Others = without(p.Others, []uint32{id})
			p.Voters = append(p.Voters, id)
			return true
		case !slices.Contains(p.Others, id):
			p.Others = append(p.Others, id)
			s.added++
			return true
		}
	}
	if strange := without(p.Others, p.Replicas); len(strange) > 0 {
		p.Others = without(p.Others, strange[:1])
		return true
	}
	if len(without(p.Replicas, p.Voters)) == 0 {
		// Nodes may have failed since the step was decided.
		if old := without(p.Voters, p.Replicas); len(old) > 0 && s.majority(without(p.Voters, old[:1])) {
			p.Voters = without(p.Voters, old[:1])
			return true
		}
	}
	return false
}

// settle runs until there are no more steps, or reports that it does not converge.
func (s *sim) settle() bool {
	for range 40 * (len(s.parts) + 1) * (len(s.nodes) + 1) {
		s.elect()
		steps := s.decide()
		s.elect()
		busy := len(steps) > 0
		for _, id := range slices.Sorted(maps.Keys(s.parts)) {
			had := s.majority(s.parts[id].Voters)
			for s.reconcile(s.parts[id]) {
				busy = true
				s.elect()
				require.Equal(s.t, had, s.majority(s.parts[id].Voters), "a step cost partition %d its majority", id)
			}
		}
		if !busy {
			return true
		}
	}
	return false
}

// spread returns the maximum and minimum count over the usable nodes.
func (s *sim) spread(of func(*Partition) []uint32) (most, least int) {
	has := map[uint32]int{}
	for _, p := range s.parts {
		for _, id := range of(p) {
			has[id]++
		}
	}
	least = len(s.parts) + 1
	for id, n := range s.nodes {
		if n.Liveness == Alive && !n.Draining {
			most, least = max(most, has[id]), min(least, has[id])
		}
	}
	return most, least
}

func replicas(p *Partition) []uint32 { return p.Replicas }
func leader(p *Partition) []uint32   { return p.Replicas[:1] }
