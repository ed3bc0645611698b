package subscription

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStatusesAreMerged(t *testing.T) {
	at := time.UnixMilli(5)
	sub := valid()
	sub.ID, sub.Incarnation = "sub_1", 2
	require.Equal(t, Starting, Merge(&sub, nil, true).State)
	statuses := []Status{
		{Incarnation: 1, State: Blocked},
		{Incarnation: 2, State: Running, Partitions: []PartitionStatus{{Topic: "t", Partition: 1, State: Running, Position: 5, Node: 1}}},
		{Incarnation: 2, State: Running, Partitions: []PartitionStatus{
			{Topic: "t", Partition: 1, State: Running, Position: 7, Node: 2}, {Topic: "t", State: Failed, Reason: BrokerUnreachable, Message: "m", Since: at},
		}},
	}
	got := Merge(&sub, statuses, true)
	require.Equal(t, Failed, got.State)
	require.Equal(t, BrokerUnreachable, got.Reason)
	require.Equal(t, at, got.Since)
	require.Len(t, got.Partitions, 2)
	require.EqualValues(t, 0, got.Partitions[0].Partition)
	require.EqualValues(t, 2, got.Partitions[1].Node, "the one that has come further")

	sub.Paused = &Pause{Reason: "r", At: at}
	require.Equal(t, Paused, Merge(&sub, statuses, true).State)
	require.Equal(t, Orphaned, Merge(&sub, statuses, false).State)
	sub.Draining = true
	require.Equal(t, Draining, Merge(&sub, statuses, false).State)
}
