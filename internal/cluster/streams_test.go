package cluster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/subscription"
)

func TestStatusesOfStreamsRoundTrip(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_123).UTC()
	want := subscription.Status{
		Subscription: "sub_1", Incarnation: 3, State: subscription.Failed, Reason: subscription.BrokerUnreachable, Message: "m", Since: at,
		Partitions: []subscription.PartitionStatus{{
			Topic: "t", Partition: 7, TopicID: [16]byte{1, 2}, Owner: 4, State: subscription.Blocked, Reason: subscription.KeyMissing, Message: "n",
			Since: at, Position: 9, End: -1, LagSeconds: 1.5, InFlight: 2, LastRecordAt: at, LastError: "e", LastErrorAt: at,
			Blocked:   &subscription.BlockedRecord{Offset: 9, Timestamp: at, Reason: subscription.KeyMissing, Message: "n", KeySize: 1, ValueSize: 2},
			Delivered: 5, Skipped: 6, DeadLettered: 7,
		}, {Topic: "u"}},
	}
	require.Equal(t, want, streamFromProto(streamToProto(&want)))
}

func TestRecordsRoundTrip(t *testing.T) {
	id := subscription.RecordID{Subscription: "sub_1", Topic: "t", Partition: 1, Offset: 2}
	for _, want := range []subscription.Record{
		{Topic: "t", Partition: 1, Offset: 2},
		{
			Topic: "t", Partition: 1, Offset: 2, Timestamp: time.UnixMilli(5).UTC(), Key: []byte{}, Value: []byte("v"), KeySize: 3, ValueSize: 4,
			Headers: []subscription.RecordHeader{{Name: "h", Value: []byte("x")}},
		},
	} {
		data, err := recordToProto(&want).MarshalVT()
		require.NoError(t, err)
		require.NotNil(t, data)
		require.Equal(t, want, recordFromProto(id, recordToProto(&want)))
	}
}
