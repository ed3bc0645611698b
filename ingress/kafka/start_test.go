package kafka

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"platform/internal/subscription"
)

// A subscription does not start while the broker does not report the end of a topic partition: it
// would start at the wrong offset.
func TestAStartNeedsTheOffsetsOfAllTopicPartitions(t *testing.T) {
	for name, start := range map[string]subscription.Start{
		"latest":    {Kind: subscription.StartLatest},
		"timestamp": {Kind: subscription.StartTimestamp},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 2)
			w.topic("orders", 1)
			w.produce(record("orders", 0, "a", "1"), record("orders", 0, "a", "2"))
			var broken atomic.Bool
			broken.Store(true)
			w.kafka.ControlKey(int16(kmsg.ListOffsets), func(req kmsg.Request) (kmsg.Response, error, bool) {
				w.kafka.KeepControl()
				r, ok := req.(*kmsg.ListOffsetsRequest)
				if !ok || !broken.Load() || len(r.Topics) == 0 {
					return nil, nil, false
				}
				if name == "timestamp" && r.Topics[0].Partitions[0].Timestamp < 0 {
					return nil, nil, false
				}
				resp := r.ResponseKind().(*kmsg.ListOffsetsResponse)
				topic := kmsg.NewListOffsetsResponseTopic()
				topic.Topic = "orders"
				p := kmsg.NewListOffsetsResponseTopicPartition()
				p.Partition, p.ErrorCode = 0, -1
				topic.Partitions = append(topic.Partitions, p)
				resp.Topics = append(resp.Topics, topic)
				return resp, nil, true
			})
			w.subscribe("sub_1", "Orders/add", []string{"orders"}, func(s *subscription.Subscription) { s.Start = start })
			if name == "timestamp" {
				w.source.change("sub_1", func(s *subscription.Subscription) { s.Start.Timestamp = w.fetchFirst("orders", 0).Timestamp })
			}
			h := w.start().leadAll()
			w.eventually("it is an error", func() bool {
				st := h.engine.Statuses("sub_1", true)
				subs, _ := w.source.Subscriptions()
				return subs[0].Resolved || len(st) == 1 && st[0].State == subscription.Failed
			})
			subs, _ := w.source.Subscriptions()
			require.False(t, subs[0].Resolved)
			broken.Store(false)
			want := int64(2)
			if name == "timestamp" {
				want = 0
			}
			w.eventually("it starts", func() bool {
				subs, _ = w.source.Subscriptions()
				return subs[0].Resolved
			})
			offset, known := subs[0].StartOf("orders", 0)
			require.True(t, known)
			require.Equal(t, want, offset)
		})
	}
}

// Records of a transaction that is committed after the start are visible later, so they are read.
func TestLatestIncludesOpenTransactions(t *testing.T) {
	w := newWorld(t, 2)
	w.topic("orders", 1)
	w.produce(record("orders", 0, "a", "1"))
	producer, err := kgo.NewClient(kgo.SeedBrokers(w.kafka.ListenAddrs()...), kgo.TransactionalID("tx"))
	require.NoError(t, err)
	defer producer.Close()
	require.NoError(t, producer.BeginTransaction())
	require.NoError(t, producer.ProduceSync(t.Context(), record("orders", 0, "a", "2")).FirstErr())
	w.subscribe("sub_1", "Orders/add", []string{"orders"}, func(s *subscription.Subscription) { s.Start.Kind = subscription.StartLatest })
	w.start().leadAll()
	w.eventually("it has started", func() bool {
		subs, _ := w.source.Subscriptions()
		return subs[0].Resolved
	})
	require.NoError(t, producer.EndTransaction(t.Context(), kgo.TryCommit))
	w.produce(record("orders", 0, "a", "3"))
	w.eventually("the last is read", func() bool { all := w.created(); return len(all) > 0 && string(all[len(all)-1].body) == "3" })
	w.requireOnce("orders", map[int32][]int64{0: {1, 3}})
}

// fetchFirst returns the first record of a topic partition.
func (w *world) fetchFirst(topic string, p int32) *kgo.Record {
	client, err := kgo.NewClient(kgo.SeedBrokers(w.kafka.ListenAddrs()...), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {p: kgo.NewOffset().AtStart()}}))
	require.NoError(w.t, err)
	defer client.Close()
	records := client.PollRecords(w.t.Context(), 1).Records()
	require.NotEmpty(w.t, records)
	return records[0]
}
