package kafka

import (
	"fmt"
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
	w := newTestCluster(t, 2)
	w.topic("orders", 1)
	w.produce(record("orders", 0, "a", "1"))
	w.subscribe("sub_1", "Orders/add", []string{"orders"}, func(s *subscription.Subscription) { s.Ordering = subscription.OrderByPartition })
	h := w.start().leadAll()
	w.eventually("the first is stored", func() bool { return w.createdCount() == 1 })
	w.source.change("sub_1", func(s *subscription.Subscription) { s.Paused = &subscription.Pause{Reason: "test"} })
	w.subscribe("sub_2", "Orders/add", []string{"orders"})
	w.eventually("the other subscription is read", func() bool { return w.createdCount() == 2 })
	w.eventually("the first is paused", func() bool {
		all := h.engine.Statuses("sub_1", true)
		return len(all) == 1 && all[0].State == subscription.Paused
	})
}

// A partition that accepts nothing does not use the memory that other streams need.
func TestAFullPartitionDoesNotStopOtherStreams(t *testing.T) {
	w := newTestCluster(t, 2)
	w.topic("large", 1)
	w.topic("orders", 1)
	keys := [2]string{}
	for _, k := range strings.Split("abcdefghijkl", "") {
		keys[machine.PartitionOf(ids.HashKey(k), 2)] = k
	}
	w.partitions[0].full = true
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
			return s.fetched.next > i || s.fetched.paused || full
		})
	}
	w.produce(record("orders", 0, keys[1], "1"))
	w.subscribe("sub_2", "Orders/add", []string{"orders"})
	w.eventually("the other stream is read", func() bool { return w.createdCount() == 1 })
	w.partitions[0].mu.Lock()
	w.partitions[0].full = false
	w.partitions[0].mu.Unlock()
	w.eventually("all are stored", func() bool { return w.createdCount() == 201 })
	w.eventually("the memory is free", func() bool {
		h.engine.memory.mu.Lock()
		defer h.engine.memory.mu.Unlock()
		return h.engine.memory.used == 0
	})
}

// Nor are the others stopped if so many topic partitions have a target that accepts nothing that
// their shares exceed the memory.
func TestManyFullStreamsDoNotStopOthers(t *testing.T) {
	const streams = 300
	w := newTestCluster(t, 2)
	w.topic("large", streams)
	w.topic("orders", 1)
	keys := [2]string{}
	for _, k := range strings.Split("abcdefghijkl", "") {
		keys[machine.PartitionOf(ids.HashKey(k), 2)] = k
	}
	var records []*kgo.Record
	for p := range int32(streams) {
		records = append(records, record("large", p, keys[0], strings.Repeat("x", 40<<10)))
	}
	w.produce(records...)
	w.partitions[0].full = true
	w.subscribe("sub_1", "Orders/add", []string{"large"})
	h := w.start().leadAll()
	w.eventually("the memory is full", func() bool { return h.engine.memory.full() })
	w.produce(record("orders", 0, keys[1], "1"))
	w.subscribe("sub_2", "Orders/add", []string{"orders"})
	w.eventually("the other stream is read", func() bool { return w.createdCount() == 1 })
	w.partitions[0].mu.Lock()
	w.partitions[0].full = false
	w.partitions[0].mu.Unlock()
	w.eventually("all are stored", func() bool { return w.createdCount() == streams+1 })
}

// A record is not written to a topic that the subscription reads, where it would be unusable
// again.
func TestADeadLetterTopicThatMatchesThePattern(t *testing.T) {
	w := newTestCluster(t, 2)
	w.topic("orders", 1)
	w.topic("orders.dlq", 1)
	w.topic("orders.dlq.dlq", 1)
	w.produce(record("orders", 0, "", "1"))
	w.subscribe("sub_1", "Orders/add", nil, func(s *subscription.Subscription) {
		s.Pattern, s.OnError, s.DeadLetterTopic = "orders.*", subscription.DeadLetters, "{topic}.dlq"
	})
	h := w.start().leadAll()
	var st subscription.PartitionStatus
	w.eventually("it is an error", func() bool {
		st = h.status("orders", 0)
		return st.State == subscription.Failed || st.DeadLettered > 0
	})
	require.Contains(t, st.Message, "nor written to the dead-letter topic orders.dlq: the subscription reads it itself")
	require.Zero(t, st.DeadLettered)
}

// A large record that blocks its topic partition is read again for operators.
func TestALargeBlockedRecordIsNotHeld(t *testing.T) {
	w := newTestCluster(t, 2)
	w.topic("orders", 1)
	value := strings.Repeat("x", 100<<10)
	w.produce(record("orders", 0, "", value))
	w.subscribe("sub_1", "Orders/add", []string{"orders"})
	h := w.start().leadAll()
	w.eventually("it blocks", func() bool { return h.status("orders", 0).Blocked != nil })
	require.Equal(t, len(value), h.status("orders", 0).Blocked.ValueSize)
	id := subscription.RecordID{Subscription: "sub_1", Topic: "orders"}
	h.engine.memory.mu.Lock()
	require.Less(t, h.engine.memory.used, int64(32<<10))
	h.engine.memory.mu.Unlock()
	rec, err := h.engine.Record(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, len(value), rec.ValueSize)
	require.Equal(t, value[:subscription.MaxRecordView], string(rec.Value))
	require.NoError(t, h.engine.Skip(t.Context(), id))
	w.eventually("it is skipped", func() bool { return h.status("orders", 0).Position == 1 })
}

// The output of a template may be secret: errors do not contain it.
func TestErrorsDoNotContainData(t *testing.T) {
	for text, reason := range map[string]subscription.Reason{"s/{header:tenant}": subscription.InvalidLimitKey, "": subscription.InvalidScope} {
		scope, err := subscription.ParseTemplate("{key}")
		require.NoError(t, err)
		limit, err := subscription.ParseTemplate(text)
		require.NoError(t, err)
		rec := &kgo.Record{Key: []byte("k"), Headers: []kgo.RecordHeader{{Key: "tenant", Value: []byte("very secret")}}}
		if text == "" {
			rec.Key = []byte("very secret")
		}
		c := converter{cfg: &Config{FlowControl: true}}
		u := c.scope(&machine.Invoke{}, &routing{Scope: scope.String(), LimitKey: text, scope: scope, limitKey: limit}, rec)
		require.Equal(t, reason, u.reason)
		require.NotContains(t, u.message, "secret")
	}
}

// A blocked record is kept for long: it must not keep its batch in memory.
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

// Nor are the others stopped by streams that wait for the ends of long invocations, one after the
// other.
func TestStreamsThatAwaitLongInvocationsDoNotStopOthers(t *testing.T) {
	const streams = 300
	w := newTestCluster(t, 2)
	w.topic("large", streams)
	w.topic("orders", 1)
	var records []*kgo.Record
	for p := range int32(streams) {
		records = append(records, record("large", p, "k", strings.Repeat("x", 40<<10)))
	}
	w.produce(records...)
	w.subscribe("sub_1", "Orders/add", []string{"large"}, func(s *subscription.Subscription) { s.Ordering = subscription.OrderByPartition })
	h := w.start().leadAll()
	w.eventually("the memory is full", func() bool { return h.engine.memory.full() })
	w.produce(record("orders", 0, "k", "other"))
	w.subscribe("sub_2", "Orders/add", []string{"orders"})
	others := func() (n int) {
		for _, c := range w.created() {
			if string(c.body) == "other" {
				n++
			}
		}
		return n
	}
	w.eventually("the other stream is read", func() bool { return others() == 1 })
	w.eventually("all have started, none twice", func() bool { return w.createdCount() == streams+1 })
	for _, c := range w.created() {
		w.end(c.id)
	}
	w.eventually("all have ended", func() bool {
		for p := range int32(streams) {
			if h.status("large", p).Position != 1 {
				return false
			}
		}
		return true
	})
	require.Equal(t, streams+1, w.createdCount())
}

// Each subscription has a client, so the fetches of many are smaller.
func TestFetchesOfManySubscriptions(t *testing.T) {
	e := New(Config{})
	require.EqualValues(t, subscription.MaxFetch, e.fetchLimit())
	for i := range subscription.MaxSubscriptions {
		e.readers[fmt.Sprint("sub_", i)] = &reader{}
	}
	limit := e.fetchLimit()
	require.LessOrEqual(t, int64(limit)*subscription.MaxSubscriptions, int64(fetchMemory))
	opts, err := options(&subscription.Client{Brokers: []string{"127.0.0.1:9092"}, FetchMin: 1 << 20, FetchMax: subscription.MaxFetch}, nil, limit)
	require.NoError(t, err)
	client, err := kgo.NewClient(opts...)
	require.NoError(t, err)
	defer client.Close()
	require.Equal(t, limit, client.OptValue(kgo.FetchMaxBytes))
	require.LessOrEqual(t, client.OptValue(kgo.FetchMinBytes), limit)
}

// lockedFetcher checks that a stream is locked while it pauses or continues: otherwise the client could
// continue before it has paused, and the topic partition would never be fetched again.
type lockedFetcher struct {
	t      *testing.T
	s      *stream
	paused bool
}

func (f *lockedFetcher) set(paused bool) {
	require.False(f.t, f.s.mu.TryLock())
	f.paused = paused
}

func (f *lockedFetcher) PauseFetchPartitions(map[string][]int32) map[string][]int32 {
	f.set(true)
	return nil
}

func (f *lockedFetcher) ResumeFetchPartitions(map[string][]int32) { f.set(false) }

func TestAStreamPausesAndContinuesUnderItsLock(t *testing.T) {
	w := newTestCluster(t, 1)
	w.subscribe("sub_1", "Greeter/greet", nil, func(s *subscription.Subscription) { s.Pattern, s.Tombstones = "none", subscription.SkipTombstones })
	h := w.start().leadAll()
	w.eventually("there is a reader", func() bool { return h.engine.reader("sub_1") != nil })
	s := newStream(h.engine.reader("sub_1"), &owner{positions: &testOwner{s: w.partitions[0], epoch: 1}}, topicPartition{"orders", 0}, [16]byte{}, 0)
	f := &lockedFetcher{t: t, s: s}
	s.client, s.fetched.active = f, true
	var batch kgo.FetchPartition
	for i := range int64(maxStreamRecords) {
		batch.Records = append(batch.Records, &kgo.Record{Offset: i})
	}
	s.offer(&batch, [16]byte{}, 0)
	require.True(t, f.paused)
	require.NoError(t, s.advance(t.Context(), false))
	require.False(t, f.paused)
}

// What was polled before a session ended and arrives after the next one has begun is not taken for the
// continuation of that: the records in between, which were discarded, would be lost.
func TestRecordsOfAnEarlierSessionAreIgnored(t *testing.T) {
	w := newTestCluster(t, 1)
	w.topic("orders", 1)
	w.subscribe("sub_1", "Greeter/greet", []string{"orders"})
	h := w.start().leadAll()
	w.eventually("it is read", func() bool { return h.status("orders", 0).State == subscription.Running })
	s := h.engine.stream(subscription.RecordID{Subscription: "sub_1", Topic: "orders"})
	late := &kgo.FetchPartition{Records: []*kgo.Record{record("orders", 0, "", "5")}}
	late.Records[0].Offset = 5
	s.offer(late, s.topic, s.fetched.session-1)
	s.mu.Lock()
	next := s.fetched.next
	s.mu.Unlock()
	require.Zero(t, next)
	w.produce(record("orders", 0, "", "0"))
	w.eventually("it continues", func() bool { return w.createdCount() == 1 })
	require.Equal(t, "0", string(w.created()[0].body))
}
