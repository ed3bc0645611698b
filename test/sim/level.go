package sim

import (
	"math/rand/v2"
	"sync"

	"platform/internal/feature"
)

// clusterLevel is the feature level of the cluster. It only rises, to the lowest level
// that a node supports. Nodes learn of it late.
type clusterLevel struct {
	mu    sync.Mutex // covers level
	level feature.Level
}

func (c *clusterLevel) current() feature.Level {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.level
}

// initialLevels draws the levels that the nodes support. In half of the seeds some of
// them are older servers.
func (s *Sim) initialLevels(rng *rand.Rand) {
	oldest := feature.Newest
	if rng.IntN(2) == 0 {
		oldest = feature.Oldest + feature.Level(rng.IntN(int(feature.Newest-feature.Oldest)))
	}
	for _, n := range s.nodes {
		n.supports = oldest
		if rng.IntN(3) == 0 {
			n.supports = feature.Newest
		}
	}
	s.raiseLevel()
	for _, n := range s.nodes {
		n.learn()
	}
}

func (s *Sim) raiseLevel() {
	lowest := feature.Newest
	for _, n := range s.nodes {
		n.mu.Lock()
		lowest = min(lowest, n.supports)
		n.mu.Unlock()
	}
	s.level.mu.Lock()
	defer s.level.mu.Unlock()
	if lowest > s.level.level {
		s.level.level = lowest
		s.trace.add("the feature level is %d", lowest)
	}
}

// upgrade stops a node and starts it with the newest server.
func (s *Sim) upgrade(rng *rand.Rand) func() {
	n := s.randomNode(rng)
	n.crash(n.running(), 100)
	return func() { s.startUpgraded(n) }
}

func (s *Sim) startUpgraded(n *node) {
	n.mu.Lock()
	if n.current == nil {
		n.supports = feature.Newest
	}
	n.mu.Unlock()
	s.restart(n)
	s.raiseLevel()
}

// level is the cluster's level as far as the node knows.
func (n *node) level() feature.Level {
	if n.sim.hasDefect(ignoredLevel) {
		return feature.Newest
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.knownLevel
}

// checkLevel checks that a node received nothing that its server cannot read.
func (s *Sim) checkLevel(n *node, id uint32, written feature.Level) {
	n.mu.Lock()
	supports := n.supports
	n.mu.Unlock()
	if written > supports {
		s.violate("partition %d on %s, which supports level %d, has entries of level %d", id, n.name, supports, written)
	}
}
