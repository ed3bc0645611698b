package backend

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/cluster"
	"platform/internal/ids"
	"platform/metadata"
	nodepb "platform/proto/node"
)

// at is a replica that responds.
func at(id string, term, last uint64, voters ...string) *nodepb.ReplicaStatus {
	return &nodepb.ReplicaStatus{Partition: 0, State: "Follower", ReplicaId: id, Last: last, LastTerm: term, Voters: voters}
}

func TestWhatCanBeRecovered(t *testing.T) {
	four := []string{"n1/a", "n2/b", "n3/c", "n4/d"}
	leads := at("n1/a", 3, 9, four...)
	leads.Leading, leads.Leader = true, "n1/a"
	follows := at("n2/b", 3, 9, four...)
	follows.Leader = "n1/a"
	quarantined := &nodepb.ReplicaStatus{Partition: 0, ReplicaId: "n2/b", Quarantine: "damaged"}
	for _, tc := range []struct {
		name      string
		replicas  []*nodepb.ReplicaStatus // of n1, n2, n3; nil: does not respond
		needed    bool
		rejected  string
		from      ids.Node
		discarded []ids.Node
		missing   []string
	}{
		{
			"a leader with a majority", []*nodepb.ReplicaStatus{leads, follows, at("n3/c", 3, 9, four...)},
			false, "it is led by node N1", 1, []ids.Node{2, 3}, []string{"n4/d"},
		},
		{
			"a leader without a known majority", []*nodepb.ReplicaStatus{leads, follows, {}},
			true, "n1/a leads it with voters on nodes that are not members", 1, []ids.Node{2}, []string{"n3/c", "n4/d"},
		},
		{
			"a leader that only a follower knows", []*nodepb.ReplicaStatus{at("n1/a", 3, 9, four...), follows, {}},
			true, "n1/a leads it", 1, []ids.Node{2}, []string{"n3/c", "n4/d"},
		},
		{
			"the newest term wins", []*nodepb.ReplicaStatus{at("n1/a", 3, 9, four...), at("n2/b", 4, 7, four...), {}},
			true, "", 2, []ids.Node{1}, []string{"n3/c", "n4/d"},
		},
		{
			"then the longest log", []*nodepb.ReplicaStatus{at("n1/a", 4, 9, four...), at("n2/b", 4, 7, four...), {}},
			true, "", 1, []ids.Node{2}, []string{"n3/c", "n4/d"},
		},
		{
			"a majority", []*nodepb.ReplicaStatus{at("n1/a", 4, 9, four...), at("n2/b", 4, 7, four...), at("n3/c", 4, 7, four...)},
			false, "3 of its 4 voters respond, which is a majority", 1, []ids.Node{2, 3}, []string{"n4/d"},
		},
		{
			"a replica in quarantine is no voter", []*nodepb.ReplicaStatus{at("n1/a", 4, 9, four[:3]...), quarantined, {}},
			true, "", 1, []ids.Node{}, []string{"n2/b", "n3/c"},
		},
		{
			"one that was rebuilt is another voter", []*nodepb.ReplicaStatus{at("n1/a", 4, 9, four[:3]...), at("n2/b#1", 4, 7, four[:3]...), {}},
			true, "", 1, []ids.Node{2}, []string{"n2/b", "n3/c"},
		},
		{
			"a member does not answer", []*nodepb.ReplicaStatus{at("n1/a", 4, 9, four...), {}, nil},
			true, "n3 does not respond and may have newer data", 1, []ids.Node{}, []string{"n2/b", "n3/c", "n4/d"},
		},
		{
			"two members do not answer", []*nodepb.ReplicaStatus{at("n1/a", 4, 9, four...), nil, nil},
			true, "members n2, n3 do not respond and may have newer data: start them", 1, []ids.Node{}, []string{"n2/b", "n3/c", "n4/d"},
		},
		{"nothing is left", []*nodepb.ReplicaStatus{{}, quarantined, {}}, true, "no member has a usable replica", 0, []ids.Node{}, []string{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			layout := &metadata.Layout{Partitions: []metadata.Partition{{ID: 0, Replicas: []uint32{1, 2, 3, 4}}}}
			statuses := cluster.Statuses{}
			for i, r := range tc.replicas {
				id := uint32(i + 1)
				layout.Nodes = append(layout.Nodes, metadata.Node{ID: id, Name: []string{"n1", "n2", "n3"}[i]})
				if r != nil {
					statuses[id] = &nodepb.StatusResponse{}
					if r.ReplicaId != "" {
						statuses[id].Replicas = []*nodepb.ReplicaStatus{r}
					}
				}
			}
			plan := planPartition(layout, statuses, layout.Partitions[0])
			require.Equal(t, tc.needed, plan.Needed)
			require.Contains(t, plan.Refused, tc.rejected)
			require.Equal(t, tc.rejected == "", plan.Refused == "")
			require.Equal(t, tc.from, plan.From)
			require.Equal(t, tc.discarded, plan.Discarded)
			require.Equal(t, tc.missing, plan.Missing)
		})
	}
}

// TestRecoveryWaitsForALeaderThatLostItsMajority plans while the leader and then one of its
// followers still follow the former leader.
func TestRecoveryWaitsForALeaderThatLostItsMajority(t *testing.T) {
	voters := []string{"n1/a", "n2/b", "n3/c", "n4/d"}
	layout := &metadata.Layout{
		Nodes:      []metadata.Node{{ID: 1, Name: "n1"}, {ID: 2, Name: "n2"}},
		Partitions: []metadata.Partition{{ID: 0, Replicas: []uint32{1, 2, 3, 4}}},
	}
	responses := func(last uint64, leaders ...string) cluster.Statuses {
		first, second := at("n1/a", 3, last, voters...), at("n2/b", 3, 9, voters...)
		first.Leader, second.Leader = leaders[0], leaders[1]
		return cluster.Statuses{1: {Replicas: []*nodepb.ReplicaStatus{first}}, 2: {Replicas: []*nodepb.ReplicaStatus{second}}}
	}
	rounds := []cluster.Statuses{responses(9, "n1/a", "n1/a"), responses(10, "", "n1/a"), responses(10, "", "")}
	asked := 0
	query := func() cluster.Statuses {
		asked++
		return rounds[asked-1]
	}
	plans, statuses := settle(t.Context(), layout, nil, time.Now().Add(time.Hour), query)
	require.Equal(t, len(rounds), asked)
	require.Len(t, plans, 1)
	require.Empty(t, plans[0].Refused)
	require.Equal(t, uint64(10), plans[0].Last, "the leader's last entry")
	require.Equal(t, rounds[2], statuses)

	// A leader that stays has a majority that the members do not know of.
	for _, ids := range [][]uint32{nil, {0}} {
		plans, _ = settle(t.Context(), layout, ids, time.Now(), func() cluster.Statuses { return rounds[1] })
		require.Len(t, plans, 1)
		require.Contains(t, plans[0].Refused, "n1/a leads it")
	}
}
