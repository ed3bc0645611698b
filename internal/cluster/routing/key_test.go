package routing

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/cluster/fabric"
	"platform/partition"
	"platform/partition/machine"
)

// leading is a replica that leads, where commands wait or large ones occupy the partition.
type leading struct {
	fabric.Local
	commands int
	occupied bool
}

func (*leading) Leading() bool { return true }

func (l *leading) Backlog() (commands int, occupied bool) { return l.commands, l.occupied }

// routerOf returns the router of a node that leads the first of count partitions.
func routerOf(count uint32, leads ...*leading) *Router {
	return &Router{directory: fabric.NewDirectory(count, fabric.DirectoryConfig{Local: func(id uint32) fabric.Local {
		if int(id) < len(leads) {
			return leads[id]
		}
		return nil
	}})}
}

// partitionsOf returns how many of n keys for inputs of that many bytes are in each partition.
func partitionsOf(r *Router, n, input int) []int {
	seen := make([]int, r.Count())
	for range n {
		seen[machine.PartitionOf(r.Key(input, false), r.Count())]++
	}
	return seen
}

// localKeys returns how many of 1,000 keys are of the partitions that this node leads, the
// first of three.
func localKeys(r *Router) (n int) {
	for range 1000 {
		if machine.PartitionOf(r.Key(0, false), r.Count()) < r.Count()/3 {
			n++
		}
	}
	return n
}

func TestKeysOfThisNode(t *testing.T) {
	r := routerOf(6, new(leading), new(leading))
	require.Greater(t, localKeys(r), 900)

	r.Balance(0.7)
	require.Greater(t, localKeys(r), 900)
	for range 10 { // the only node that gets requests
		r.Balance(1)
	}
	require.Less(t, localKeys(r), 450)
	r.Balance(0.25)
	kept := localKeys(r)
	require.Greater(t, kept, 550, "some of them return")
	require.Less(t, kept, 850)
	for range 3 {
		r.Balance(0.25)
	}
	require.Greater(t, localKeys(r), 900)
}

// TestKeysWithoutALocalLeader requires that keys are spread over all partitions if this node
// leads none.
func TestKeysWithoutALocalLeader(t *testing.T) {
	require.NotContains(t, partitionsOf(routerOf(6), 1000, 0), 0)
}

// TestInvocationsShareAPartition requires that invocations prefer one partition, so that their
// commands share log entries, as long as it has room, and that each partition gets its turn.
func TestInvocationsShareAPartition(t *testing.T) {
	leads := []*leading{{}, {}, {}}
	r := routerOf(8, leads...)
	first := slices.Index(partitionsOf(r, runLength-1, 0), runLength-1)
	require.GreaterOrEqual(t, first, 0, "a run is in one partition")

	r = routerOf(8, leads...)
	leads[first].commands = backlog
	second := slices.Index(partitionsOf(r, runLength/4, 0), runLength/4)
	require.NotEqual(t, first, second, "it has no room")
	leads[first].commands = backlog - 1
	require.Equal(t, runLength/4, partitionsOf(r, runLength/4, 0)[first], "it has room again")
	leads[first].occupied = true
	require.Equal(t, runLength/4, partitionsOf(r, runLength/4, 0)[second], "large commands of the first one would delay them")
	leads[first].occupied = false
	for _, l := range leads {
		l.commands = backlog
	}
	for id, n := range partitionsOf(r, 300, 0) {
		require.Equal(t, id < len(leads), n > 50, "all are spread over the partitions of this node: %d in %d", n, id)
	}
}

// TestSharedPartitionsTakeTurns requires that no partition gets much more than others in the long run.
func TestSharedPartitionsTakeTurns(t *testing.T) {
	const runs = 300
	for id, n := range partitionsOf(routerOf(8, new(leading), new(leading), new(leading)), runs*runLength, 0)[:3] {
		require.InDelta(t, runs/3, n/runLength, runs/9, id)
	}
}

// TestLargeInputsAreSpread requires that invocations with large inputs do not share a partition.
func TestLargeInputsAreSpread(t *testing.T) {
	for id, n := range partitionsOf(routerOf(3, new(leading), new(leading), new(leading)), 300, largeInput) {
		require.Greater(t, n, 50, id)
	}
}

// TestSmallInvocationsAvoidLargeOnes requires that small invocations are not in partitions that
// large ones occupy, unless there are no others on this node.
func TestSmallInvocationsAvoidLargeOnes(t *testing.T) {
	leads := []*leading{{}, {occupied: true}, {}}
	r := routerOf(4, leads...)
	for _, input := range []int{0, largeInput} {
		require.Zero(t, partitionsOf(r, 1000, input)[1])
	}
	for range 1000 {
		require.NotEqual(t, uint32(1), machine.PartitionOf(r.Key(0, true), r.Count()))
	}
	leads[0].occupied, leads[2].occupied = true, true
	seen := partitionsOf(r, 1000, 0)
	require.NotContains(t, seen[:3], 0)
	require.Less(t, seen[3], 100, "they stay on this node nevertheless")
}

// TestLargeInvocationsShareFewPartitions requires that large invocations use a quarter of the
// partitions of this node at a time, and all of them over time.
func TestLargeInvocationsShareFewPartitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var leads []*leading
		for range 8 {
			leads = append(leads, new(leading))
		}
		r := routerOf(9, leads...)
		all := make([]int, r.Count())
		for range largeShare {
			used := 0
			for id, n := range partitionsOf(r, 100, partition.LargeCommand) {
				if all[id] += n; n > 0 {
					used++
				}
			}
			require.Equal(t, len(leads)/largeShare, used)
			time.Sleep(largePeriod * time.Second)
		}
		require.NotContains(t, all[:8], 0)
		require.Zero(t, all[8])
	})
}

// TestLargeInvocationsLeaveAShortNode requires that large invocations may be in partitions of other nodes
// if this one has no slots for them.
func TestLargeInvocationsLeaveAShortNode(t *testing.T) {
	r := routerOf(4, new(leading))
	seen := make([]int, r.Count())
	for range 400 {
		seen[machine.PartitionOf(r.Key(partition.LargeCommand, true), r.Count())]++
	}
	require.NotContains(t, seen, 0)
}

// TestKeysInOnePartition requires random keys within the only partition.
func TestKeysInOnePartition(t *testing.T) {
	r := routerOf(1, new(leading))
	require.NotEqual(t, r.Key(0, false), r.Key(0, false))
	require.NotEqual(t, keyIn(2, 3), keyIn(2, 3))
	for id := range uint32(7) {
		require.Equal(t, id, machine.PartitionOf(keyIn(id, 7), 7))
	}
}
