package hashtree

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func leaf(i int) Node { return Node{Index: uint64(i), Hash: LeafHash([]byte(strconv.Itoa(i)))} }

// covering returns the node over 2^level leaves from first on.
func covering(level uint32, first int) Node {
	if level == 0 {
		return leaf(first)
	}
	left, right := covering(level-1, first), covering(level-1, first+1<<(level-1))
	return Parent(&left, &right)
}

func TestTheRootIsTheSameIfNodesReplaceTheirLeaves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(1, 40).Draw(t, "leaves")
		var whole, pruned Peaks
		for i := range count {
			whole = whole.Push(leaf(i))
		}
		for next := 0; next < count; {
			most := uint32(0)
			for size := 2; next%size == 0 && next+size <= count; size *= 2 {
				most++
			}
			level := rapid.Uint32Range(0, most).Draw(t, "level")
			var err error
			pruned, err = pruned.Extend(covering(level, next))
			require.NoError(t, err)
			next += 1 << level
		}
		require.Equal(t, uint64(count), pruned.Records())
		require.Equal(t, whole.Root(), pruned.Root())
	})
}

func TestNodesThatDoNotContinueTheTreeAreRefused(t *testing.T) {
	three := Peaks{}.Push(leaf(0)).Push(leaf(1)).Push(leaf(2))
	shortHash := leaf(3)
	shortHash.Hash = shortHash.Hash[1:]
	for name, n := range map[string]Node{
		"a repeated leaf":                              leaf(2),
		"a leaf after a missing one":                   leaf(4),
		"a node that is larger than the one before it": {Level: 2, Index: 0, Hash: leaf(0).Hash},
		"a hash of another length":                     shortHash,
		"a level that no tree has":                     {Level: maxTreeLevel, Hash: leaf(0).Hash},
		"a node outside the tree":                      {Level: 1, Index: 1 << 62, Hash: leaf(0).Hash},
	} {
		_, err := three.Extend(n)
		require.Error(t, err, name)
	}
	_, err := three.Extend(leaf(3))
	require.NoError(t, err)
}
