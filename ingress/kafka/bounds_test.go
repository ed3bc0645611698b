package kafka

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"platform/internal/ids"
	"platform/internal/subscription"
	"platform/partition/machine"
)

// An invocation that takes long, in a subscription that waits for its end, does not delay a
// change of the subscription, nor other subscriptions.
func TestALongInvocationDoesNotDelayAChange(t *testing.T) {
	w := newWorld(t, 2)
	w.topic("orders", 1)
	w.produce(record("orders", 0, "a", "1"))
	w.subscribe("sub_1", "Orders/add", []string{"orders"}, func(s *subscription.Subscription) { s.Ordering = subscription.OrderByPartition })
	h := w.start().leadAll()
	w.eventually("the first is stored", func() bool { return w.createdCount() == 1 })
	w.source.change("sub_1", func(s *subscription.Subscription) { s.Paused = &subscription.Pause{Reason: "test"} })
	w.subscribe("sub_2", "Orders/add", []string{"orders"})
	w.eventually("the other subscription is read", func() bool { return w.createdCount() == 2 })
	require.Equal(t, subscription.Paused, h.engine.Statuses("sub_1", true)[0].State)
}

// A partition that accepts nothing does not use the memory that other streams need.
func TestAFullPartitionDoesNotStopOtherStreams(t *testing.T) {
	w := newWorld(t, 2)
	w.topic("large", 1)
	w.topic("orders", 1)
	keys := [2]string{}
	for _, k := range strings.Split("abcdefghijkl", "") {
		keys[machine.PartitionOf(ids.HashKey(k), 2)] = k
	}
	w.shards[0].full = true
	w.subscribe("sub_1", "Orders/add", []string{"large"}, func(s *subscription.Subscription) { s.MaxInFlight = 1000 })
	h := w.start().leadAll()
	for i := range int64(200) {
		w.produce(record("large", 0, keys[0], strings.Repeat("x", 100<<10)))
		w.eventually("it reads as much as it may", func() bool {
			s := h.engine.stream(subscription.RecordID{Subscription: "sub_1", Topic: "large"})
			if s == nil {
				return false
			}
			h.engine.memory.mu.Lock()
			full := h.engine.memory.used >= h.engine.memory.limit
			h.engine.memory.mu.Unlock()
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.fetchNext > i || s.paused || full
		})
	}
	w.produce(record("orders", 0, keys[1], "1"))
	w.subscribe("sub_2", "Orders/add", []string{"orders"})
	w.eventually("the other stream is read", func() bool { return w.createdCount() == 1 })
	w.shards[0].mu.Lock()
	w.shards[0].full = false
	w.shards[0].mu.Unlock()
	w.eventually("all are stored", func() bool { return w.createdCount() == 201 })
	w.eventually("the memory is free", func() bool {
		h.engine.memory.mu.Lock()
		defer h.engine.memory.mu.Unlock()
		return h.engine.memory.used == 0
	})
}

// A record is not written to a topic that the subscription reads, where it would be unusable
// again.
func TestADeadLetterTopicThatMatchesThePattern(t *testing.T) {
	w := newWorld(t, 2)
	w.topic("orders", 1)
	w.topic("orders.dlq", 1)
	w.topic("orders.dlq.dlq", 1)
	w.produce(record("orders", 0, "", "1"))
	w.subscribe("sub_1", "Orders/add", nil, func(s *subscription.Subscription) {
		s.Pattern, s.OnError, s.DeadLetterTopic = "orders.*", subscription.DeadLetter, "{topic}.dlq"
	})
	h := w.start().leadAll()
	var st subscription.PartitionStatus
	w.eventually("it is an error", func() bool {
		st = h.status("orders", 0)
		return st.State == subscription.Failed || st.DeadLettered > 0
	})
	require.Contains(t, st.Message, "reads the topic orders.dlq itself")
	require.Zero(t, st.DeadLettered)
}

// A blocked record is kept for long: it must not keep the batch in memory that it came in.
func TestADetachedRecordSharesNoMemory(t *testing.T) {
	batch := []byte("keyvalueheader")
	rec := &kgo.Record{Key: batch[:3], Value: batch[3:8], Headers: []kgo.RecordHeader{{Key: "h", Value: batch[8:]}}, Offset: 7}
	c := detached(rec)
	clear(batch)
	require.Equal(t, &kgo.Record{Key: []byte("key"), Value: []byte("value"), Headers: []kgo.RecordHeader{{Key: "h", Value: []byte("header")}}, Offset: 7}, c)
	require.Nil(t, detached(&kgo.Record{}).Value, "a tombstone remains one")
}

// The trace context is not part of the input, whose size is limited.
func TestALongTraceContextIsIgnored(t *testing.T) {
	rec := &kgo.Record{Headers: []kgo.RecordHeader{
		{Key: "traceparent", Value: []byte("01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-" + strings.Repeat("0", maxTrace))},
	}}
	c, inv := converter{sub: &subscription.Subscription{}}, machine.Invoke{}
	c.headers(&inv, rec)
	require.Empty(t, inv.Trace.Parent)
	rec.Headers = []kgo.RecordHeader{
		{Key: "traceparent", Value: []byte("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")}, {Key: "tracestate", Value: []byte(strings.Repeat("a", maxTrace+1))},
	}
	c.headers(&inv, rec)
	require.NotEmpty(t, inv.Trace.Parent)
	require.Empty(t, inv.Trace.State)
}
