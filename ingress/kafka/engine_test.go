package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"platform/internal/subscription"
)

func TestRecordsBecomeInvocations(t *testing.T) {
	w := newTestCluster(t, 4)
	w.topic("orders", 3)
	want := map[int32][]int64{}
	for i := range 300 {
		p := int32(i % 3)
		want[p] = append(want[p], w.produce(record("orders", p, fmt.Sprint("k", i%7), "v"))...)
	}
	w.subscribe("sub_1", "Orders/add", []string{"orders"})
	h := w.start().leadAll()
	w.eventually("all records are stored", func() bool { return w.createdCount() == 300 })
	w.requireOnce("orders", want)
	w.eventually("the position is stored", func() bool {
		st := h.status("orders", 1)
		return st.Position == 100 && st.End == 100 && st.InFlight == 0
	})
}

func TestHeadersOfRecords(t *testing.T) {
	w := newTestCluster(t, 1)
	w.topic("orders", 1)
	r := record("orders", 0, "k/ü", "body")
	r.Headers = []kgo.RecordHeader{
		{Key: "Color", Value: []byte("red")}, {Key: "bin", Value: []byte{0, 1}}, {Key: "not a name", Value: []byte("x")},
		{Key: "traceparent", Value: []byte("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")}, {Key: "tracestate", Value: []byte("a=b")},
		{Key: "Baggage", Value: []byte("user=alice, broken")}, {Key: "baggage", Value: []byte("region=eu")},
	}
	w.produce(r)
	w.produce(&kgo.Record{Topic: "orders", Key: []byte("k"), Value: nil})
	w.subscribe("sub_1", "Orders/add", []string{"orders"})
	w.start().leadAll()
	w.eventually("both are stored", func() bool { return w.createdCount() == 2 })
	c := w.created()[0]
	require.Equal(t, "body", string(c.body))
	require.Equal(t, "k/ü", c.target.Key)
	require.Equal(t, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", c.trace.Parent)
	require.Equal(t, "a=b", c.trace.State)
	require.Equal(t, "user=alice,region=eu", c.trace.Baggage)
	require.Equal(t, "0", c.headers["kafka.offset"])
	require.Equal(t, "orders", c.headers["kafka.topic"])
	require.Equal(t, "0", c.headers["kafka.partition"])
	require.Equal(t, "ay_DvA==", c.headers["kafka.key"])
	require.Equal(t, "sub_1", c.headers["platform.subscription.id"])
	require.Equal(t, "sub_1", c.headers["restate.subscription.id"])
	require.Equal(t, "red", c.headers["kafka.header.color"])
	require.Equal(t, "AAE=", c.headers["kafka.header.bin.base64"])
	require.NotContains(t, c.headers, "kafka.tombstone")
	c = w.created()[1]
	require.Empty(t, c.body)
	require.Equal(t, "true", c.headers["kafka.tombstone"])
}

// One record that cannot be delivered blocks its topic partition only.
func TestAnUnusableRecordBlocksItsTopicPartition(t *testing.T) {
	w := newTestCluster(t, 3)
	w.topic("orders", 2)
	w.produce(record("orders", 0, "a", "1"), record("orders", 0, "\xff", "2"), record("orders", 0, "a", "3"))
	w.produce(record("orders", 1, "a", "1"), record("orders", 1, "b", "2"))
	w.subscribe("sub_1", "Orders/add", []string{"orders"})
	h := w.start().leadAll()
	w.eventually("it blocks", func() bool { return h.status("orders", 0).State == subscription.Blocked && w.createdCount() == 3 })
	st := h.status("orders", 0)
	require.Equal(t, subscription.KeyNotUTF8, st.Reason)
	require.EqualValues(t, 1, st.Position)
	require.EqualValues(t, 1, st.Blocked.Offset)
	w.requireOnce("orders", map[int32][]int64{0: {0}, 1: {0, 1}})

	id := subscription.RecordID{Subscription: "sub_1", Topic: "orders", Partition: 0, Offset: 1}
	rec, err := h.engine.Record(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, "2", string(rec.Value))
	require.NoError(t, h.engine.Retry(t.Context(), id))
	w.eventually("it blocks again", func() bool { return h.status("orders", 0).State == subscription.Blocked })
	require.NoError(t, h.engine.Skip(t.Context(), id))
	require.EqualValues(t, 2, w.stored("sub_1", "orders", 0).Next, "a skip that succeeded is stored")
	w.eventually("the next is stored", func() bool { return w.createdCount() == 4 })
	w.requireOnce("orders", map[int32][]int64{0: {0, 2}, 1: {0, 1}})
	require.ErrorIs(t, h.engine.Skip(t.Context(), id), subscription.ErrNotBlocked)
	require.EqualValues(t, 1, h.status("orders", 0).Skipped)
}

// A decision whose storage takes too long is not reported as stored.
func TestASkipThatIsNotStoredYet(t *testing.T) {
	w := newTestCluster(t, 1)
	w.topic("orders", 1)
	w.produce(record("orders", 0, "\xff", "1"), record("orders", 0, "a", "2"))
	w.subscribe("sub_1", "Orders/add", []string{"orders"})
	h := w.start().leadAll()
	w.eventually("it blocks", func() bool { return h.status("orders", 0).State == subscription.Blocked })
	w.partitions[0].mu.Lock() // nothing can be stored
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := h.engine.Skip(ctx, subscription.RecordID{Subscription: "sub_1", Topic: "orders"})
	w.partitions[0].mu.Unlock()
	require.ErrorIs(t, err, errUnknownOutcome)
	w.eventually("it is stored later", func() bool { return w.createdCount() == 1 })
	require.EqualValues(t, 1, h.status("orders", 0).Skipped)
}

func TestSkippedAndDeadLetteredRecords(t *testing.T) {
	w := newTestCluster(t, 3)
	w.topic("orders", 1)
	w.topic("orders.dlq", 1)
	bad := record("orders", 0, "", "2")
	bad.Headers = []kgo.RecordHeader{{Key: "color", Value: []byte("red")}}
	w.produce(record("orders", 0, "a", "1"), bad, record("orders", 0, "a", "3"))
	w.subscribe("sub_1", "Orders/add", []string{"orders"}, func(s *subscription.Subscription) { s.OnError = subscription.Skip })
	w.subscribe("sub_2", "Orders/add", []string{"orders"}, func(s *subscription.Subscription) {
		s.OnError, s.DeadLetterTopic = subscription.DeadLetters, "{topic}.dlq"
	})
	h := w.start().leadAll()
	w.eventually("the others are stored", func() bool { return w.createdCount() == 4 })
	reader, err := kgo.NewClient(kgo.SeedBrokers(w.kafka.ListenAddrs()...), kgo.ConsumeTopics("orders.dlq"))
	require.NoError(t, err)
	defer reader.Close()
	dead := reader.PollRecords(t.Context(), 1).Records()
	require.Len(t, dead, 1)
	require.Equal(t, "2", string(dead[0].Value))
	headers := map[string]string{}
	for _, hd := range dead[0].Headers {
		headers[hd.Key] = string(hd.Value)
	}
	require.Equal(t, "red", headers["color"])
	require.Equal(t, "key_missing", headers["platform.dlq.reason"])
	require.Equal(t, "1", headers["platform.dlq.offset"])
	w.eventually("both are counted", func() bool {
		all := h.engine.Statuses("", false)
		return len(all) == 2 && len(all[0].Partitions) == 1 && all[0].Partitions[0].Skipped == 1 && len(all[1].Partitions) == 1 && all[1].Partitions[0].DeadLettered == 1
	})
}

// A record whose handler is registered later is delivered then.
func TestARecordWaitsForItsHandler(t *testing.T) {
	w := newTestCluster(t, 2)
	w.topic("orders", 1)
	w.produce(record("orders", 0, "", "1"))
	w.subscribe("sub_1", "Late/run", []string{"orders"})
	h := w.start().leadAll()
	w.eventually("it blocks", func() bool { return h.status("orders", 0).Reason == subscription.HandlerNotFound })
	w.source.register("Late/run")
	w.eventually("it is stored", func() bool { return w.createdCount() == 1 })
}

// When another node leads, it continues reading, and only it reports the topic partition. The old
// one may still send.
func TestAnotherNodeContinuesReading(t *testing.T) {
	w := newTestCluster(t, 2)
	w.topic("orders", 2)
	want := map[int32][]int64{}
	produce := func() {
		for p := range int32(2) {
			want[p] = append(want[p], w.produce(record("orders", p, "a", "1"), record("orders", p, "b", "2"))...)
		}
	}
	produce()
	w.subscribe("sub_1", "Orders/add", []string{"orders"})
	first, second := w.start().leadAll(), w.start()
	w.eventually("they are stored", func() bool { return w.createdCount() == 4 })
	second.leadAll() // the first node does not know
	produce()
	w.eventually("they are stored once", func() bool { return w.createdCount() == 8 })
	for id := range w.partitions {
		first.resign(uint32(id))
	}
	w.eventually("the first reads nothing", func() bool {
		for _, st := range first.engine.Statuses("", false) {
			if len(st.Partitions) > 0 {
				return false
			}
		}
		return true
	})
	id := subscription.RecordID{Subscription: "sub_1", Topic: "orders", Partition: 0}
	require.ErrorIs(t, first.engine.Retry(t.Context(), id), subscription.ErrNotRead)
	w.eventually("the second reads it", func() bool { return errors.Is(second.engine.Retry(t.Context(), id), subscription.ErrNotBlocked) })
	produce()
	w.eventually("the second reads on", func() bool { return w.createdCount() == 12 })
	w.requireOnce("orders", want)
}

// A topic that is deleted and created again is an error until an operator says where to start.
func TestARecreatedTopicIsAnError(t *testing.T) {
	w := newTestCluster(t, 2)
	w.topic("orders", 1)
	w.produce(record("orders", 0, "", "1"), record("orders", 0, "", "2"))
	w.subscribe("sub_1", "Greeter/greet", []string{"orders"})
	h := w.start().leadAll()
	w.eventually("they are stored", func() bool { return w.createdCount() == 2 && h.status("orders", 0).Position == 2 })
	require.NoError(t, w.kafka.DeleteTopic("orders"))
	w.topic("orders", 1)
	w.client.PurgeTopicsFromClient("orders")
	w.produce(record("orders", 0, "", "3"), record("orders", 0, "", "4"), record("orders", 0, "", "5"))
	h.engine.reader("sub_1").notify()
	w.eventually("it is an error", func() bool { return h.status("orders", 0).Reason == subscription.TopicRecreated })
	require.Equal(t, 2, w.createdCount())

	w.source.change("sub_1", func(s *subscription.Subscription) { s.Incarnation, s.Resolved, s.Offsets = 2, false, nil })
	w.eventually("the new topic is read", func() bool { return w.createdCount() == 5 })
}

// On request, a topic that is created again is read from its beginning, each record once.
func TestARecreatedTopicIsRead(t *testing.T) {
	w := newTestCluster(t, 2)
	w.topic("orders", 1)
	w.produce(record("orders", 0, "", "1"), record("orders", 0, "", "2"))
	w.subscribe("sub_1", "Greeter/greet", []string{"orders"}, func(s *subscription.Subscription) { s.OnRecreate = subscription.RecreatedFromEarliest })
	h := w.start().leadAll()
	w.eventually("they are stored", func() bool { return w.createdCount() == 2 && h.status("orders", 0).Position == 2 })
	for round := range 2 {
		require.NoError(t, w.kafka.DeleteTopic("orders"))
		w.topic("orders", 1)
		w.client.PurgeTopicsFromClient("orders")
		w.produce(record("orders", 0, "", "3"), record("orders", 0, "", "4"), record("orders", 0, "", "5"))
		h.engine.reader("sub_1").notify()
		w.eventually("the new topic is read", func() bool { return w.createdCount() == 2+3*(round+1) && h.status("orders", 0).Position == 3 })
	}
}

func TestExpiredRecordsAreAnError(t *testing.T) {
	w := newTestCluster(t, 2)
	w.topic("orders", 1)
	for range 10 {
		w.produce(record("orders", 0, "", "1"))
	}
	w.subscribe("sub_1", "Greeter/greet", []string{"orders"})
	h := w.start()
	for id := range w.partitions {
		w.partitions[id].full = true
	}
	h.leadAll()
	w.eventually("the start is resolved", func() bool { subs, _ := w.source.Subscriptions(); return subs[0].Resolved })
	w.source.change("sub_1", func(s *subscription.Subscription) {
		s.Paused = &subscription.Pause{}
	})
	require.NoError(t, w.kafka.DeleteRecords("orders", 0, 5))
	w.source.change("sub_1", func(s *subscription.Subscription) { s.Paused = nil })
	w.eventually("it is an error", func() bool {
		st := h.status("orders", 0)
		return st.Reason == subscription.OffsetOutOfRange && st.State == subscription.Blocked
	})
	require.Zero(t, w.createdCount())
}

// The position of a topic partition whose next record has expired is the stored one.
func TestThePositionOfExpiredRecords(t *testing.T) {
	w := newTestCluster(t, 1)
	w.topic("orders", 1)
	w.produce(record("orders", 0, "", "1"), record("orders", 0, "", "1"), record("orders", 0, "", "1"))
	w.subscribe("sub_1", "Greeter/greet", []string{"orders"})
	h := w.start().leadAll()
	w.eventually("they are stored", func() bool { return h.status("orders", 0).Position == 3 })
	w.source.change("sub_1", func(s *subscription.Subscription) { s.Paused = &subscription.Pause{} })
	w.eventually("it is paused", func() bool { return h.engine.Statuses("sub_1", true)[0].State == subscription.Paused })
	w.produce(record("orders", 0, "", "2"), record("orders", 0, "", "2"))
	require.NoError(t, w.kafka.DeleteRecords("orders", 0, 4))
	w.source.change("sub_1", func(s *subscription.Subscription) { s.Paused = nil })
	w.eventually("it is blocked", func() bool { return h.status("orders", 0).Reason == subscription.OffsetOutOfRange })
	st := h.status("orders", 0)
	require.EqualValues(t, 3, st.Position)
	require.EqualValues(t, 2, st.Lag())
}

// New partitions of a topic are read from their beginning.
func TestATopicGrows(t *testing.T) {
	w := newTestCluster(t, 2)
	w.topic("orders", 1)
	w.produce(record("orders", 0, "", "1"))
	w.subscribe("sub_1", "Greeter/greet", []string{"orders"}, func(s *subscription.Subscription) { s.Start.Kind = subscription.StartLatest })
	h := w.start().leadAll()
	w.eventually("it is read", func() bool { return h.status("orders", 0).State == subscription.Running })
	w.grow("orders", 3)
	w.client.PurgeTopicsFromClient("orders")
	w.produce(record("orders", 2, "", "2"))
	h.engine.reader("sub_1").notify()
	w.eventually("it is stored", func() bool { return w.createdCount() == 1 })
	w.requireOnce("orders", map[int32][]int64{2: {0}})
}

// Without room at the target, fetching pauses: the memory that is used stays bounded.
func TestBackPressure(t *testing.T) {
	w := newTestCluster(t, 2)
	w.topic("orders", 1)
	noise := make([]byte, 10<<10) // it cannot be compressed
	for i := range noise {
		noise[i] = byte(w.rand.Uint32())
	}
	value := string(noise)
	want := map[int32][]int64{}
	for range 40 {
		var batch []*kgo.Record
		for range 50 {
			batch = append(batch, record("orders", 0, "", value))
		}
		want[0] = append(want[0], w.produce(batch...)...)
	}
	for _, s := range w.partitions {
		s.full = true
	}
	w.subscribe("sub_1", "Greeter/greet", []string{"orders"})
	h := w.start().leadAll()
	w.eventually("it is throttled", func() bool {
		st := h.status("orders", 0)
		return st.State == subscription.Throttled && st.InFlight == 100
	})
	h.engine.memory.mu.Lock()
	used := h.engine.memory.used
	h.engine.memory.mu.Unlock()
	require.Less(t, used, int64(16<<20))
	for _, s := range w.partitions {
		s.mu.Lock()
		s.full = false
		s.mu.Unlock()
	}
	w.eventually("all are stored", func() bool { return w.createdCount() == 2000 })
	w.requireOnce("orders", want)
	w.eventually("the memory is released", func() bool {
		h.engine.memory.mu.Lock()
		defer h.engine.memory.mu.Unlock()
		return h.engine.memory.used == 0
	})
}

// Pausing keeps the position, and deleting removes the subscription.
func TestPauseResumeDelete(t *testing.T) {
	w := newTestCluster(t, 2)
	w.topic("orders", 1)
	w.produce(record("orders", 0, "", "1"))
	w.subscribe("sub_1", "Greeter/greet", []string{"orders"})
	h := w.start().leadAll()
	w.eventually("it is stored", func() bool { return w.createdCount() == 1 })
	w.source.change("sub_1", func(s *subscription.Subscription) { s.Paused = &subscription.Pause{Reason: "maintenance"} })
	w.eventually("it is paused", func() bool {
		all := h.engine.Statuses("sub_1", true)
		return len(all) == 1 && all[0].State == subscription.Paused && all[0].Message == "maintenance"
	})
	st := h.status("orders", 0)
	require.Equal(t, subscription.Paused, st.State, "operators see where it stands")
	require.EqualValues(t, 1, st.Position)
	w.produce(record("orders", 0, "", "2"))
	w.eventually("it shows the lag", func() bool {
		h.engine.reader("sub_1").notify()
		st := h.status("orders", 0)
		return st.End == 2 && st.Lag() == 1
	})
	require.Equal(t, 1, w.createdCount())
	w.source.change("sub_1", func(s *subscription.Subscription) { s.Paused = nil })
	w.eventually("the next is stored", func() bool { return w.createdCount() == 2 })
	w.requireOnce("orders", map[int32][]int64{0: {0, 1}})
	w.source.change("sub_1", func(s *subscription.Subscription) { s.Draining = true })
	w.eventually("it drains", func() bool {
		st := h.status("orders", 0)
		return st.State == subscription.Draining && st.InFlight == 0 && st.Position == 2
	})
	w.source.remove("sub_1")
	w.eventually("it is gone", func() bool { return len(h.engine.Statuses("", true)) == 0 })
}

// Records of aborted transactions are left out, and the position moves past them.
func TestTransactions(t *testing.T) {
	w := newTestCluster(t, 2)
	w.topic("orders", 1)
	producer, err := kgo.NewClient(kgo.SeedBrokers(w.kafka.ListenAddrs()...), kgo.TransactionalID("tx"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	require.NoError(t, err)
	defer producer.Close()
	want := map[int32][]int64{}
	for i := range 6 {
		require.NoError(t, producer.BeginTransaction())
		r := record("orders", 0, "", fmt.Sprint(i))
		require.NoError(t, producer.ProduceSync(t.Context(), r).FirstErr())
		require.NoError(t, producer.EndTransaction(t.Context(), kgo.TransactionEndTry(i%2 == 0)))
		if i%2 == 0 {
			want[0] = append(want[0], r.Offset)
		}
	}
	w.subscribe("sub_1", "Greeter/greet", []string{"orders"})
	h := w.start().leadAll()
	w.eventually("the committed ones are stored", func() bool { return w.createdCount() == 3 })
	w.requireOnce("orders", want)
	w.eventually("there is no lag", func() bool { st := h.status("orders", 0); return st.Position == 12 && st.Lag() == 0 })
}

// A change of one subscription does not make the readers of the others ask the brokers again; a change
// of the owners does.
func TestReadersAreToldOfChangedOwners(t *testing.T) {
	w := newTestCluster(t, 1)
	w.subscribe("sub_1", "Greeter/greet", []string{"orders"})
	e := New(Config{Source: w.source, Partitions: w, Dial: w.dial, Log: slog.New(slog.DiscardHandler)})
	subs, _ := w.source.Subscriptions()
	cluster, _ := w.source.KafkaCluster("main")
	r := newReader(e, subs[0], cluster, true) // it does not run
	e.readers["sub_1"] = r
	ctx, cancel := context.WithCancel(t.Context())
	led := make(chan struct{})
	go func() {
		defer close(led)
		e.lead(ctx, &testOwner{s: w.partitions[0]})
	}()
	<-e.changed
	e.reconcile(t.Context(), subs)
	require.Len(t, r.wake, 1)
	<-r.wake
	e.reconcile(t.Context(), subs)
	require.Empty(t, r.wake)
	cancel()
	<-led
	require.True(t, e.moved)
}
