package kafka

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"platform/internal/subscription"
)

// Records with unusual keys, headers and timestamps are delivered to a service; an object refuses
// those without a valid key, with a reason.
func TestUnusualRecords(t *testing.T) {
	w := newTestCluster(t, 2)
	w.topic("orders", 1)
	past, future := time.UnixMilli(0), time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	w.produce(
		&kgo.Record{Topic: "orders", Value: []byte{}, Timestamp: past},
		&kgo.Record{Topic: "orders", Key: []byte{}, Value: nil, Timestamp: future},
		&kgo.Record{Topic: "orders", Key: []byte("\xff\x00\xfe"), Value: []byte("\x00\xff"), Headers: []kgo.RecordHeader{
			{Key: "bell", Value: []byte("a\x07b\r\n")}, {Key: "new\nline", Value: []byte("x")}, {Key: "", Value: []byte("x")}, {Key: "null", Value: nil}, {Key: "\xff", Value: []byte("x")},
		}},
	)
	w.subscribe("sub_1", "Greeter/greet", []string{"orders"})
	w.subscribe("sub_2", "Orders/add", []string{"orders"}, func(s *subscription.Subscription) { s.OnError = subscription.DeadLetters })
	h := w.start().leadAll()
	w.eventually("the service receives all", func() bool { return w.createdCount() == 3 })
	byOffset := map[string]map[string]string{}
	for _, c := range w.created() {
		byOffset[c.headers["kafka.offset"]] = c.headers
	}
	require.Equal(t, "0", byOffset["0"]["kafka.timestamp"])
	require.NotContains(t, byOffset["0"], "kafka.tombstone")
	require.Equal(t, fmt.Sprint(future.UnixMilli()), byOffset["1"]["kafka.timestamp"])
	require.Equal(t, "true", byOffset["1"]["kafka.tombstone"])
	odd := byOffset["2"]
	require.Equal(t, "_wD-", odd["kafka.key"])
	require.Equal(t, "YQdiDQo=", odd["kafka.header.bell.base64"])
	require.NotContains(t, odd, "kafka.header.bell")
	for name := range odd {
		require.NotContains(t, name, "\n")
		require.NotContains(t, name, "\xff")
	}
	w.eventually("the object has none of their keys", func() bool { return len(h.deadLetters("sub_2")) == 3 })
	var reasons []subscription.Reason
	for _, l := range h.deadLetters("sub_2") {
		reasons = append(reasons, l.Reason)
	}
	require.Equal(t, []subscription.Reason{subscription.KeyMissing, subscription.KeyMissing, subscription.KeyNotUTF8}, reasons)
	for _, st := range h.engine.Statuses("", false) {
		require.GreaterOrEqual(t, st.Partitions[0].LagSeconds, 0.0)
	}
}

// The number of distinct keys does not matter to a stream: nothing is kept per key.
func TestManyDistinctKeys(t *testing.T) {
	const count = 30_000
	w := newTestCluster(t, 4)
	w.topic("orders", 2)
	records := make([]*kgo.Record, count)
	for i := range records {
		records[i] = record("orders", int32(i%2), fmt.Sprint("key-", i), "1")
	}
	w.produce(records...)
	w.subscribe("sub_1", "Orders/add", []string{"orders"}, func(s *subscription.Subscription) { s.MaxInFlight = 1000 })
	w.start().leadAll()
	w.eventually("each key has its invocation", func() bool { return w.createdCount() == count })
	seen := map[string]bool{}
	for _, c := range w.created() {
		seen[c.target.Key] = true
	}
	require.Len(t, seen, count)
}
