package cluster

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProblemsOfManyPartitionsAreOneLine(t *testing.T) {
	require.Equal(t, []string{
		"the metadata has no leader that most of its voters follow",
		"partitions 0-3, 6, 7 have no leader",
		"node n2 (N2) is down",
		"partitions 4, 5: node n3 (N3) has not opened its replica",
		"partitions 8-10 are getting a replica on node n3 (N3)",
		"partition 5: the replica on node n3 (N3) is 12 entries behind",
		"partition is a word",
	}, groupProblems([]string{
		"the metadata has no leader that most of its voters follow",
		"partition 0 has no leader", "partition 1 has no leader", "partition 2 has no leader", "partition 3 has no leader",
		"node n2 (N2) is down",
		"partition 7 has no leader", "partition 6 has no leader",
		"partition 4: node n3 (N3) has not opened its replica", "partition 5: node n3 (N3) has not opened its replica",
		"partition 8 is getting a replica on node n3 (N3)", "partition 9 is getting a replica on node n3 (N3)", "partition 10 is getting a replica on node n3 (N3)",
		"partition 5: the replica on node n3 (N3) is 12 entries behind",
		"partition is a word",
	}))
	require.Empty(t, groupProblems(nil))
}
