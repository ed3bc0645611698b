package routing

import (
	"math"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"time"

	"platform/partition"
	"platform/partition/machine"
)

const (
	// keyDraws is how many partitions are drawn to find one that this node leads.
	keyDraws = 16
	// runLength is how many invocations prefer the same partition before the next one is preferred.
	runLength = 1024
	// largeShare is the share of the partitions that large invocations use: one in that many.
	largeShare = 4
	// largePeriod is for how many seconds they use the same ones.
	largePeriod = 60
	// busyShare is the share of its processors above which a node keeps fewer invocations.
	busyShare = 0.75
	// spreadUnit is the value of locality.spread that stands for all invocations.
	spreadUnit = 1000
)

// backlog is how many commands without an outcome a partition may have while it is preferred. The more they
// are, the more of them share a log entry. But a partition applies one command after another, so
// with many processors the next one is used earlier.
var backlog = min(max(256/runtime.GOMAXPROCS(0), 64), 128)

// locality decides in which partitions invocations are that may be in any.
type locality struct {
	spread atomic.Int32  // how many of spreadUnit invocations are spread over all partitions, see Router.Balance
	placed atomic.Uint64 // calls of shared; determines the run
}

// Balance adjusts how many invocations stay on this node to the share of its processors that it
// used recently. It is called by one goroutine.
func (r *Router) Balance(used float64) {
	spread := int(r.locality.spread.Load()) + int((used-busyShare)*spreadUnit)
	r.locality.spread.Store(int32(min(max(spread, 0), spreadUnit)))
}

// Spread reports whether the next invocation should not stay on this node.
func (r *Router) Spread() bool {
	spread := r.locality.spread.Load()
	return spread > 0 && rand.Int32N(spreadUnit) < spread
}

// Key returns a random partition key for an invocation that may be in any partition and has an
// input of that many bytes. It is usually that of a partition that this node leads, so that the
// request needs no other node, unless anywhere asks for one of all partitions. Small invocations
// avoid partitions that large ones occupy, and large ones share few partitions.
func (r *Router) Key(input int, anywhere bool) uint64 {
	anywhere = anywhere || r.Spread()
	if input >= partition.LargeCommand && !anywhere {
		return r.large()
	}
	if input < largeInput && !anywhere {
		if id, ok := r.shared(); ok {
			return keyIn(id, r.Count())
		}
	}
	key := rand.Uint64()
	best, local := key, anywhere
	for range keyDraws {
		if p := r.directory.Partition(machine.PartitionOf(key, r.Count())); anywhere || p.Local() {
			if !p.Occupied() {
				return key
			}
			if !local {
				best, local = key, true
			}
		}
		key = rand.Uint64()
	}
	return best
}

// large returns a random partition key for a large invocation: of one of a quarter of the
// partitions that this node leads. It is another quarter each minute, so that over time the
// partitions store about as much.
func (r *Router) large() uint64 {
	var led []uint32
	for p := range r.Partitions() {
		if p.Local() {
			led = append(led, p.ID())
		}
	}
	if len(led) == 0 {
		return rand.Uint64()
	}
	quarter := max(len(led)/largeShare, 1)
	parts := (len(led) + quarter - 1) / quarter
	at := int(time.Now().Unix()/largePeriod) % parts * quarter
	led = led[at:min(at+quarter, len(led))]
	return keyIn(led[rand.IntN(len(led))], r.Count())
}

// shared returns the partition in which the commands of the next invocation are likely to share
// log entries with those of others: the first one with room, in an order that all invocations of
// a run have in common. false means that none has room.
func (r *Router) shared() (id uint32, ok bool) {
	order := rand.NewPCG(uint64(r.Count()), r.locality.placed.Add(1)/runLength)
	for range keyDraws {
		id = machine.PartitionOf(order.Uint64(), r.Count())
		if r.directory.Partition(id).HasRoom(backlog) {
			return id, true
		}
	}
	return 0, false
}

// keyIn returns a random partition key of a partition.
func keyIn(id, count uint32) uint64 {
	first, last := machine.KeyRange(id, count)
	if width := last - first; width < math.MaxUint64 {
		return first + rand.Uint64N(width+1)
	}
	return rand.Uint64()
}
