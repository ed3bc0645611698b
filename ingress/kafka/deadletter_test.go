package kafka

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"platform/internal/subscription"
	"platform/partition/machine"
)

func (w *testCluster) keepDeadLetters(sub, sink, topic string) {
	w.subscribe(sub, sink, []string{topic}, func(s *subscription.Subscription) { s.OnError = subscription.DeadLetters })
}

func (h *host) deadLetters(id string) []subscription.DeadLetter {
	page, err := h.engine.ListDeadLetters(id, nil, 10_000)
	require.NoError(h.w.t, err)
	return page.Letters
}

// Records that cannot be delivered are kept without a topic, until they are retried or dropped.
func TestDeadLettersAreKept(t *testing.T) {
	w := newTestCluster(t, 3)
	w.topic("orders", 2)
	bad := record("orders", 0, "", "2")
	bad.Headers = []kgo.RecordHeader{{Key: "color", Value: []byte("red")}}
	w.produce(record("orders", 0, "a", "1"), bad, record("orders", 0, "a", "3"), record("orders", 1, "", ""), record("orders", 1, "b", "4"))
	w.keepDeadLetters("sub_1", "Orders/add", "orders")
	h := w.start().leadAll()
	w.eventually("the others are stored", func() bool { return w.createdCount() == 3 })
	w.eventually("both are kept", func() bool { return len(h.deadLetters("sub_1")) == 2 })
	all := h.deadLetters("sub_1")
	require.Equal(t, subscription.KeyMissing, all[0].Reason)
	require.EqualValues(t, 1, all[0].Offset)
	require.EqualValues(t, 1, all[1].Partition)
	after, err := h.engine.ListDeadLetters("sub_1", &subscription.RecordID{Topic: "orders", Partition: 0, Offset: 1}, 10)
	require.NoError(t, err)
	require.Len(t, after.Letters, 1)
	require.ElementsMatch(t, []uint32{0, 1, 2}, after.Partitions)

	id := subscription.RecordID{Subscription: "sub_1", Topic: "orders", Partition: 0, Offset: 1}
	one, err := h.engine.DeadLetter(id)
	require.NoError(t, err)
	require.Equal(t, "2", string(one.Value))
	require.Nil(t, one.Key)
	require.Equal(t, "red", string(one.Headers[0].Value))
	require.ErrorIs(t, h.engine.RetryDeadLetter(t.Context(), id), subscription.ErrUndeliverable)
	require.Len(t, h.deadLetters("sub_1"), 2)

	// A handler without keys takes it, once.
	w.source.change("sub_1", func(s *subscription.Subscription) { s.Sink = subscription.Sink{Service: "Greeter", Handler: "greet"} })
	w.eventually("it is delivered", func() bool { return h.engine.RetryDeadLetter(t.Context(), id) == nil })
	require.ErrorIs(t, h.engine.RetryDeadLetter(t.Context(), id), subscription.ErrNoDeadLetter)
	require.Equal(t, 4, w.createdCount())

	id.Partition, id.Offset = 1, 0
	require.NoError(t, h.engine.DropDeadLetter(t.Context(), id))
	require.ErrorIs(t, h.engine.DropDeadLetter(t.Context(), id), subscription.ErrNoDeadLetter)
	require.Empty(t, h.deadLetters("sub_1"))
	require.Equal(t, 4, w.createdCount())
	st := h.engine.Statuses("sub_1", false)[0]
	require.Zero(t, st.DeadLetters)
}

// A dead letter that was delivered before its deletion failed is not delivered again.
func TestADeadLetterIsDeliveredOnce(t *testing.T) {
	w := newTestCluster(t, 3)
	w.topic("orders", 1)
	w.produce(record("orders", 0, "", "1"))
	w.keepDeadLetters("sub_1", "Orders/add", "orders")
	h := w.start().leadAll()
	w.eventually("it is kept", func() bool { return len(h.deadLetters("sub_1")) == 1 })
	w.source.change("sub_1", func(s *subscription.Subscription) { s.Sink = subscription.Sink{Service: "Greeter", Handler: "greet"} })
	id := subscription.RecordID{Subscription: "sub_1", Topic: "orders", Partition: 0, Offset: 0}
	o := h.engine.owner(h.engine.ownerOf("sub_1", "orders", 0))
	defer o.streams.Done()
	letter, err := findDeadLetter(o, id)
	require.NoError(t, err)
	require.NoError(t, h.engine.deliver(t.Context(), letter))
	require.NoError(t, h.engine.RetryDeadLetter(t.Context(), id))
	require.Equal(t, 1, w.createdCount())
}

// When there is no room, the topic partition blocks until there is.
func TestDeadLettersAreBounded(t *testing.T) {
	w := newTestCluster(t, 1)
	w.topic("orders", 1)
	for i := range subscription.MaxDeadLetters + 2 {
		w.produce(record("orders", 0, "", fmt.Sprint(i)))
	}
	large := record("orders", 0, "", string(make([]byte, subscription.MaxDeadLetter)))
	w.produce(large, record("orders", 0, "a", "last"))
	w.keepDeadLetters("sub_1", "Orders/add", "orders")
	h := w.start().leadAll()
	blockedAt := func(offset int64) func() bool {
		return func() bool {
			st := h.status("orders", 0)
			return st.State == subscription.Blocked && st.Blocked != nil && st.Blocked.Offset == offset
		}
	}
	w.eventually("there is no room", blockedAt(subscription.MaxDeadLetters))
	require.Contains(t, h.status("orders", 0).Message, "no room")
	require.Len(t, h.deadLetters("sub_1"), subscription.MaxDeadLetters)
	for _, offset := range []int64{7, 8} {
		require.NoError(t, h.engine.DropDeadLetter(t.Context(), subscription.RecordID{Subscription: "sub_1", Topic: "orders", Offset: offset}))
	}
	w.eventually("the large one blocks", blockedAt(subscription.MaxDeadLetters+2))
	require.Contains(t, h.status("orders", 0).Message, "256")
	require.NoError(t, h.engine.Skip(t.Context(), subscription.RecordID{Subscription: "sub_1", Topic: "orders", Offset: subscription.MaxDeadLetters + 2}))
	w.eventually("the next is stored", func() bool { return w.createdCount() == 1 })
}

// largeTopic creates a topic that accepts large records.
func (w *testCluster) largeTopic(name string) {
	require.NoError(w.t, w.kafka.CreateTopic(name, 1, map[string]string{"max.message.bytes": strconv.Itoa(16 << 20)}))
}

// A dead-letter topic gets each record that it accepts, also one that is larger than the usual
// limit of clients.
func TestALargeRecordIsDeadLettered(t *testing.T) {
	w := newTestCluster(t, 2)
	w.largeTopic("orders")
	w.largeTopic("orders.dlq")
	value := strings.Repeat("x", 3<<20)
	w.produceLarge(record("orders", 0, "k", value), record("orders", 0, "k", "2"))
	w.subscribe("sub_1", "Orders/add", []string{"orders"}, func(s *subscription.Subscription) {
		s.OnError, s.DeadLetterTopic = subscription.DeadLetters, "{topic}.dlq"
	})
	h := w.start().leadAll()
	w.eventually("the next record is stored", func() bool { return w.createdCount() == 1 })
	require.EqualValues(t, 1, h.status("orders", 0).DeadLettered)
	reader, err := kgo.NewClient(kgo.SeedBrokers(w.kafka.ListenAddrs()...), kgo.ConsumeTopics("orders.dlq"))
	require.NoError(t, err)
	defer reader.Close()
	dead := reader.PollRecords(t.Context(), 1).Records()
	require.Len(t, dead, 1)
	require.Len(t, dead[0].Value, len(value))
}

// A record that the dead-letter topic does not accept blocks its topic partition, so that it can be
// skipped.
func TestARecordThatIsTooLargeForTheDeadLetterTopic(t *testing.T) {
	w := newTestCluster(t, 2)
	w.largeTopic("orders")
	w.topic("orders.dlq", 1)
	value := make([]byte, 2<<20)
	for i := range value {
		value[i] = byte(w.pick(256)) // cannot be compressed
	}
	w.produceLarge(record("orders", 0, "k", string(value)), record("orders", 0, "k", "2"))
	w.subscribe("sub_1", "Orders/add", []string{"orders"}, func(s *subscription.Subscription) {
		s.OnError, s.DeadLetterTopic = subscription.DeadLetters, "{topic}.dlq"
	})
	h := w.start().leadAll()
	w.eventually("it blocks", func() bool { return h.status("orders", 0).Blocked != nil })
	require.Contains(t, h.status("orders", 0).Message, "dead-letter topic")
	require.NoError(t, h.engine.Skip(t.Context(), subscription.RecordID{Subscription: "sub_1", Topic: "orders"}))
	w.eventually("the next record is stored", func() bool { return w.createdCount() == 1 })
}

// produceLarge writes records that are larger than the usual limit of clients.
func (w *testCluster) produceLarge(records ...*kgo.Record) {
	client, err := kgo.NewClient(kgo.SeedBrokers(w.kafka.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchMaxBytes(16<<20))
	require.NoError(w.t, err)
	defer client.Close()
	require.NoError(w.t, client.ProduceSync(w.t.Context(), records...).FirstErr())
}

// retriedAndSought returns a cluster with a dead letter that was delivered, but is still kept, before a seek.
func retriedAndSought(t *testing.T) (*testCluster, *host, subscription.RecordID) {
	w := newTestCluster(t, 3)
	w.topic("orders", 1)
	w.produce(record("orders", 0, "", "1"))
	w.keepDeadLetters("sub_1", "Orders/add", "orders")
	h := w.start().leadAll()
	w.eventually("it is kept", func() bool { return len(h.deadLetters("sub_1")) == 1 })
	w.source.change("sub_1", func(s *subscription.Subscription) { s.Sink = subscription.Sink{Service: "Greeter", Handler: "greet"} })
	o := h.engine.owner(h.engine.ownerOf("sub_1", "orders", 0))
	t.Cleanup(o.streams.Done)
	id := subscription.RecordID{Subscription: "sub_1", Topic: "orders"}
	letter, err := findDeadLetter(o, id)
	require.NoError(t, err)
	require.NoError(t, h.engine.deliver(t.Context(), letter))
	w.source.change("sub_1", func(s *subscription.Subscription) {
		s.Incarnation, s.Resolved, s.Offsets, s.Start.Kind = 2, false, nil, subscription.StartLatest
	})
	w.eventually("it is read from the end", func() bool { subs, _ := w.source.Subscriptions(); return subs[0].Resolved })
	return w, h, id
}

// A retry of a dead letter that was delivered already has no effect, even if the
// position was changed in between.
func TestADeadLetterIsDeliveredOnceAcrossASeek(t *testing.T) {
	w, h, id := retriedAndSought(t)
	require.NoError(t, h.engine.RetryDeadLetter(t.Context(), id))
	require.Equal(t, 1, w.createdCount())
}

// The same once the partitions have forgotten the incarnation in which it was delivered, while the invocation still exists.
func TestADeadLetterIsDeliveredOnceAlthoughItsIncarnationIsForgotten(t *testing.T) {
	w, h, id := retriedAndSought(t)
	for _, p := range w.partitions {
		p.mu.Lock()
		p.apply(p.epoch, &machine.ForgetStreams{Subscription: "sub_1", Before: 2})
		p.mu.Unlock()
	}
	require.NoError(t, h.engine.RetryDeadLetter(t.Context(), id))
	require.Equal(t, 1, w.createdCount())
	require.Empty(t, h.deadLetters("sub_1"))
}

// A dead letter does not wait for others to be written with it: the next record is read afterwards.
func TestDeadLettersAreWrittenImmediately(t *testing.T) {
	client, err := New(Config{}).newClient(&subscription.Client{Brokers: []string{"127.0.0.1:1"}})
	require.NoError(t, err)
	defer client.Close()
	require.Zero(t, client.OptValue(kgo.ProducerLinger))
}

// The broker of a dead-letter topic that fails after it got a record may have written it, which is unknown until it
// responds. The end of a leadership does not wait for that.
func TestABrokerThatDoesNotConfirmADeadLetterDelaysNoEnd(t *testing.T) {
	w := newTestCluster(t, 1)
	w.topic("orders", 1)
	w.topic("orders.dlq", 1)
	w.produce(record("orders", 0, "", "1"))
	var requests atomic.Int64
	w.kafka.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		w.kafka.KeepControl()
		requests.Add(1)
		return nil, errors.New("the connection is closed without a response"), true
	})
	w.subscribe("sub_1", "Orders/add", []string{"orders"}, func(s *subscription.Subscription) {
		s.OnError, s.DeadLetterTopic = subscription.DeadLetters, "orders.dlq"
	})
	h := w.start()
	ctx, resign := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		h.engine.lead(ctx, &testOwner{s: w.partitions[0]})
	}()
	w.eventually("the record was sent", func() bool { return requests.Load() > 0 })
	resign()
	select {
	case <-ended:
	case <-time.After(requestTimeout):
		t.Fatal("the leadership does not end")
	}
}
