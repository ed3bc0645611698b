package routing

import (
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/cluster/fabric"
	"platform/partition/machine"
)

// leading is a replica that leads.
type leading struct{ fabric.Local }

func (leading) Leading() bool { return true }

// localKeys returns how many of 1,000 keys are of the partitions that this node leads, the
// first of three.
func localKeys(r *Router) (n int) {
	for range 1000 {
		if machine.PartitionOf(r.Key(), r.Count()) < r.Count()/3 {
			n++
		}
	}
	return n
}

func TestKeysOfThisNode(t *testing.T) {
	r := &Router{directory: fabric.NewDirectory(6, fabric.DirectoryConfig{Local: func(id uint32) fabric.Local {
		if id < 2 {
			return leading{}
		}
		return nil
	}})}
	require.Greater(t, localKeys(r), 900)
	seen := make(map[uint32]int)
	for range 1000 {
		seen[machine.PartitionOf(r.Key(), r.Count())]++
	}
	require.Greater(t, seen[0], 400, "both partitions of the node are used")
	require.Greater(t, seen[1], 400)

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
	r := &Router{directory: fabric.NewDirectory(6, fabric.DirectoryConfig{Local: func(uint32) fabric.Local { return nil }})}
	seen := make(map[uint32]int)
	for range 1000 {
		seen[machine.PartitionOf(r.Key(), r.Count())]++
	}
	require.Len(t, seen, 6)
}
