package routing

import (
	"math/rand/v2"
	"sync/atomic"

	"platform/partition/machine"
)

const (
	// keyDraws is how many partition keys are drawn to find one of a partition that this node leads.
	keyDraws = 8
	// busy is the share of its processors above which a node keeps fewer invocations.
	busy = 0.75
	// allKept is the share that stands for all invocations.
	allKept = 1000
)

// locality decides which invocations stay on the node that received them.
type locality struct {
	given atomic.Int32 // how many of 1,000 are spread over all partitions
}

// Balance adjusts how many invocations stay on this node to the share of its processors that it
// used recently. It is called by one goroutine.
func (r *Router) Balance(used float64) {
	given := int(r.locality.given.Load()) + int((used-busy)*allKept)
	r.locality.given.Store(int32(min(max(given, 0), allKept)))
}

// Spread reports whether the next invocation should not stay on this node.
func (r *Router) Spread() bool {
	given := r.locality.given.Load()
	return given > 0 && rand.Int32N(allKept) < given
}

// Key returns a random partition key for an invocation that may be in any partition. It is
// usually that of a partition that this node leads, so that the request needs no other node.
func (r *Router) Key() uint64 {
	first := rand.Uint64()
	if r.Spread() {
		return first
	}
	key := first
	for range keyDraws {
		if r.directory.Partition(machine.PartitionOf(key, r.Count())).Local() {
			return key
		}
		key = rand.Uint64()
	}
	return first
}
