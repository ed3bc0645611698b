package kafka

import (
	"context"
	"math"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"platform/internal/errcode"
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
			w := newTestCluster(t, 2)
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
	w := newTestCluster(t, 2)
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

// A subscription starts at given offsets, at a time, or at the committed offsets of a group. What
// they do not name starts otherwise.
func TestWhereSubscriptionsStart(t *testing.T) {
	at := time.Now().Truncate(time.Millisecond)
	for name, tc := range map[string]struct {
		start subscription.Start
		want  map[int32][]int64
	}{
		"offsets":             {subscription.Start{Kind: subscription.StartOffsets, Offsets: []subscription.TopicOffsets{{Topic: "orders", Offsets: []subscription.PartitionOffset{{Partition: 0, Offset: 3}}}}, Otherwise: subscription.StartEarliest}, map[int32][]int64{0: {3}, 1: {0, 1, 2, 3}}},
		"offsets, latest":     {subscription.Start{Kind: subscription.StartOffsets, Offsets: []subscription.TopicOffsets{{Topic: "orders", Offsets: []subscription.PartitionOffset{{Partition: 0, Offset: 2}}}}, Otherwise: subscription.StartLatest}, map[int32][]int64{0: {2, 3}}},
		"time":                {subscription.Start{Kind: subscription.StartTimestamp, Timestamp: at.Add(-90 * time.Second)}, map[int32][]int64{0: {2, 3}, 1: {2, 3}}},
		"group":               {subscription.Start{Kind: subscription.StartGroup, Otherwise: subscription.StartEarliest}, map[int32][]int64{0: {0, 1, 2, 3}, 1: {1, 2, 3}}},
		"group, latest":       {subscription.Start{Kind: subscription.StartGroup, Otherwise: subscription.StartLatest}, map[int32][]int64{1: {1, 2, 3}}},
		"time, in the future": {subscription.Start{Kind: subscription.StartTimestamp, Timestamp: at.Add(time.Hour)}, map[int32][]int64{}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestCluster(t, 2)
			w.topic("orders", 2)
			for p := range int32(2) {
				for minute := range 4 {
					rec := record("orders", p, "", "1")
					rec.Timestamp = at.Add(time.Duration(minute-3) * time.Minute)
					w.produce(rec)
				}
			}
			offsets := kadm.Offsets{}
			offsets.Add(kadm.Offset{Topic: "orders", Partition: 1, At: 1, LeaderEpoch: -1})
			require.NoError(t, kadm.NewClient(w.client).CommitAllOffsets(t.Context(), "billing", offsets))
			w.subscribe("sub_1", "Greeter/greet", []string{"orders"}, func(s *subscription.Subscription) {
				s.Start, s.Properties = tc.start, map[string]string{"group.id": "billing"}
			})
			h := w.start().leadAll()
			w.eventually("all are read", func() bool {
				a, b := h.status("orders", 0), h.status("orders", 1)
				return a.Position == 4 && b.Position == 4
			})
			w.requireOnce("orders", tc.want)
			for p := range int32(2) {
				tc.want[p] = append(tc.want[p], w.produce(record("orders", p, "", "new"))...)
			}
			w.eventually("new ones are read", func() bool { return h.status("orders", 0).Position == 5 && h.status("orders", 1).Position == 5 })
			w.requireOnce("orders", tc.want)
		})
	}
}

// Records that are written while the start at a time is resolved are not older than this time, although
// the broker had none of that age when it was asked.
func TestAStartAtATimeIncludesRecordsWrittenMeanwhile(t *testing.T) {
	w := newTestCluster(t, 2)
	w.topic("orders", 1)
	w.produce(record("orders", 0, "a", "1"))
	at := time.Now().Add(time.Minute).Truncate(time.Millisecond)
	var asked atomic.Bool // for the offset of the time
	var written sync.Once
	w.kafka.ControlKey(int16(kmsg.ListOffsets), func(req kmsg.Request) (kmsg.Response, error, bool) {
		w.kafka.KeepControl()
		for _, topic := range req.(*kmsg.ListOffsetsRequest).Topics {
			if topic.Partitions[0].Timestamp >= 0 {
				asked.Store(true)
			} else if asked.Load() {
				written.Do(func() {
					w.kafka.SleepControl(func() {
						r := record("orders", 0, "a", "2")
						r.Timestamp = at.Add(time.Second)
						w.produce(r)
					})
				})
			}
		}
		return nil, nil, false
	})
	w.subscribe("sub_1", "Orders/add", []string{"orders"}, func(s *subscription.Subscription) {
		s.Start = subscription.Start{Kind: subscription.StartTimestamp, Timestamp: at}
	})
	w.start().leadAll()
	w.eventually("it has started", func() bool {
		subs, _ := w.source.Subscriptions()
		return subs[0].Resolved
	})
	last := record("orders", 0, "a", "3")
	last.Timestamp = at.Add(time.Minute)
	w.produce(last)
	w.eventually("the last is read", func() bool { all := w.created(); return len(all) > 0 && string(all[len(all)-1].body) == "3" })
	w.requireOnce("orders", map[int32][]int64{0: {1, 2}})
}

// Offsets that do not exist are refused, rather than ignored or taken for lost records.
func TestOffsetsThatDoNotExist(t *testing.T) {
	w := newTestCluster(t, 2)
	w.topic("orders", 2)
	for range 5 {
		w.produce(record("orders", 1, "", "1"))
	}
	require.NoError(t, w.kafka.DeleteRecords("orders", 1, 2))
	h := w.start()
	resolve := func(partition int32, offset int64) error {
		sub := subscription.Subscription{ID: "sub_1", Source: subscription.Source{Cluster: "main", Topics: []string{"orders"}}, Start: subscription.Start{
			Kind: subscription.StartOffsets, Otherwise: subscription.StartLatest,
			Offsets: []subscription.TopicOffsets{{Topic: "orders", Offsets: []subscription.PartitionOffset{{Partition: partition, Offset: offset}}}},
		}}
		cluster := w.source.clusters["main"]
		_, err := h.engine.ResolveStart(t.Context(), &sub, &cluster)
		return err
	}
	for _, offset := range []int64{2, 4, 5} {
		require.NoError(t, resolve(1, offset))
	}
	require.NoError(t, resolve(0, 0))
	for part, err := range map[string]error{
		"there is no topic partition orders/2; the topic has 2 partitions":                resolve(2, 0),
		"orders/1 has no offset 6; its records begin at 2, and the next one will be at 5": resolve(1, 6),
		"orders/1 has no offset 1; its records begin at 2":                                resolve(1, 1),
		"orders/0 has no offset 1; its records begin at 0, and the next one will be at 0": resolve(0, 1),
	} {
		code, _ := errcode.Of(err)
		require.Equal(t, errcode.META0009, code)
		require.ErrorContains(t, err, part)
	}
}

// A topic that is created after the subscription is read from its beginning, whatever the start: all
// its records are later. Meanwhile the other topics are read.
func TestTopicsThatDoNotExistYet(t *testing.T) {
	for name, start := range map[string]subscription.Start{
		"latest": {Kind: subscription.StartLatest},
		"group":  {Kind: subscription.StartGroup, Otherwise: subscription.StartLatest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTestCluster(t, 2)
			w.topic("orders", 1)
			w.produce(record("orders", 0, "", "before"))
			topics := []string{"later", "orders"}
			w.subscribe("sub_1", "Greeter/greet", topics, func(s *subscription.Subscription) { s.Start = start })
			h := w.start().leadAll()
			w.eventually("it says which one is missing", func() bool {
				st := h.engine.Statuses("sub_1", true)
				return len(st) == 1 && st[0].Reason == subscription.TopicMissing && h.status("orders", 0).State == subscription.Running
			})
			w.produce(record("orders", 0, "", "after"))
			w.topic("later", 1)
			w.produce(record("later", 0, "", "first"))
			w.eventually("it is read", func() bool {
				h.engine.reader("sub_1").notify()
				return w.createdCount() == 2
			})
			w.requireOnce("orders", map[int32][]int64{0: {1}})
			w.requireOnce("later", map[int32][]int64{0: {0}})

			sub := subscription.Subscription{ID: "sub_2", Source: subscription.Source{Cluster: "main", Topics: []string{"never", "orders"}}, Start: start}
			cluster := w.source.clusters["main"]
			found, err := h.engine.ResolveStart(t.Context(), &sub, &cluster)
			var broker *subscription.BrokerError
			require.ErrorAs(t, err, &broker)
			require.Equal(t, subscription.TopicMissing, broker.Reason)
			require.Len(t, found, 1)
			require.Equal(t, "orders", found[0].Topic)
			sub.Start = subscription.Start{Kind: subscription.StartOffsets, Otherwise: subscription.StartLatest, Offsets: []subscription.TopicOffsets{{Topic: "never", Offsets: []subscription.PartitionOffset{{Offset: 3}}}}}
			found, err = h.engine.ResolveStart(t.Context(), &sub, &cluster)
			require.ErrorAs(t, err, &broker)
			require.Empty(t, found)
		})
	}
}

// While a topic is created, its brokers do not know yet which topic partitions they lead.
func TestAStartWaitsUntilBrokersHaveElectedLeaders(t *testing.T) {
	for name, tc := range map[string]struct {
		key   kmsg.Key
		code  *kerr.Error
		start subscription.Start
	}{
		"latest":             {kmsg.ListOffsets, kerr.NotLeaderForPartition, subscription.Start{Kind: subscription.StartLatest}},
		"earliest":           {kmsg.ListOffsets, kerr.UnknownTopicOrPartition, subscription.Start{Kind: subscription.StartEarliest}},
		"timestamp":          {kmsg.ListOffsets, kerr.OffsetNotAvailable, subscription.Start{Kind: subscription.StartTimestamp, Timestamp: time.Now()}},
		"metadata":           {kmsg.Metadata, kerr.LeaderNotAvailable, subscription.Start{Kind: subscription.StartLatest}},
		"group":              {kmsg.OffsetFetch, kerr.CoordinatorLoadInProgress, subscription.Start{Kind: subscription.StartGroup, Otherwise: subscription.StartLatest}},
		"group, coordinator": {kmsg.FindCoordinator, kerr.CoordinatorNotAvailable, subscription.Start{Kind: subscription.StartGroup, Otherwise: subscription.StartLatest}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTestCluster(t, 2)
			w.topic("orders", 3)
			for p := range int32(3) {
				w.produce(record("orders", p, "", "1"))
			}
			var busy atomic.Int64
			w.refuse(tc.key, tc.code, &busy)
			h := w.start()
			resolve := func(ctx context.Context) ([]subscription.TopicStart, error) {
				sub := subscription.Subscription{ID: "sub_1", Source: subscription.Source{Cluster: "main", Topics: []string{"orders"}}, Start: tc.start}
				cluster := w.source.clusters["main"]
				return h.engine.ResolveStart(ctx, &sub, &cluster)
			}
			busy.Store(3)
			found, err := resolve(t.Context())
			require.NoError(t, err)
			require.Len(t, found, 1)
			require.Len(t, found[0].Offsets, 3)
			require.LessOrEqual(t, busy.Load(), int64(0))

			busy.Store(math.MaxInt64)
			ctx, cancel := context.WithTimeout(t.Context(), attemptTimeout+time.Second)
			defer cancel()
			_, err = resolve(ctx)
			var broker *subscription.BrokerError
			require.ErrorAs(t, err, &broker)
			require.Equal(t, subscription.BrokerUnavailable, broker.Reason, broker.Message)
		})
	}
}

// refuse makes brokers respond with an error to requests of a kind as long as left is positive.
func (w *testCluster) refuse(key kmsg.Key, code *kerr.Error, left *atomic.Int64) {
	w.kafka.ControlKey(int16(key), func(req kmsg.Request) (kmsg.Response, error, bool) {
		w.kafka.KeepControl()
		resp := req.ResponseKind()
		resp.SetVersion(req.GetVersion())
		switch r := req.(type) {
		case *kmsg.ListOffsetsRequest:
			for _, asked := range r.Topics {
				topic := kmsg.NewListOffsetsResponseTopic()
				topic.Topic = asked.Topic
				for _, p := range asked.Partitions {
					refused := kmsg.NewListOffsetsResponseTopicPartition()
					refused.Partition, refused.ErrorCode = p.Partition, code.Code
					topic.Partitions = append(topic.Partitions, refused)
				}
				resp.(*kmsg.ListOffsetsResponse).Topics = append(resp.(*kmsg.ListOffsetsResponse).Topics, topic)
			}
		case *kmsg.MetadataRequest:
			if len(r.Topics) == 0 {
				return nil, nil, false
			}
			for id, address := range w.kafka.ListenAddrs() {
				b := kmsg.NewMetadataResponseBroker()
				host, port, _ := net.SplitHostPort(address)
				number, _ := strconv.ParseInt(port, 10, 32)
				b.NodeID, b.Host, b.Port = int32(id), host, int32(number)
				resp.(*kmsg.MetadataResponse).Brokers = append(resp.(*kmsg.MetadataResponse).Brokers, b)
			}
			for _, asked := range r.Topics {
				topic := kmsg.NewMetadataResponseTopic()
				topic.Topic, topic.ErrorCode = asked.Topic, code.Code
				resp.(*kmsg.MetadataResponse).Topics = append(resp.(*kmsg.MetadataResponse).Topics, topic)
			}
		case *kmsg.OffsetFetchRequest:
			for _, asked := range r.Groups {
				group := kmsg.NewOffsetFetchResponseGroup()
				group.Group, group.ErrorCode = asked.Group, code.Code
				resp.(*kmsg.OffsetFetchResponse).Groups = append(resp.(*kmsg.OffsetFetchResponse).Groups, group)
			}
		case *kmsg.FindCoordinatorRequest:
			for _, asked := range r.CoordinatorKeys {
				found := kmsg.NewFindCoordinatorResponseCoordinator()
				found.Key, found.ErrorCode = asked, code.Code
				resp.(*kmsg.FindCoordinatorResponse).Coordinators = append(resp.(*kmsg.FindCoordinatorResponse).Coordinators, found)
			}
		}
		if left.Add(-1) < 0 {
			return nil, nil, false
		}
		return resp, nil, true
	})
}

// Brokers that cannot be reached are not busy.
func TestAStartSaysWhyBrokersCannotBeReached(t *testing.T) {
	w := newTestCluster(t, 2)
	w.topic("orders", 1)
	for node := range w.kafka.ListenAddrs() {
		w.reach(node, false)
	}
	h := w.start()
	sub := subscription.Subscription{ID: "sub_1", Source: subscription.Source{Cluster: "main", Topics: []string{"orders"}}, Start: subscription.Start{Kind: subscription.StartLatest}}
	cluster := w.source.clusters["main"]
	for _, timeout := range []time.Duration{attemptTimeout / 4, time.Minute} {
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()
		_, err := h.engine.ResolveStart(ctx, &sub, &cluster)
		var broker *subscription.BrokerError
		require.ErrorAs(t, err, &broker)
		require.Equal(t, subscription.BrokerUnreachable, broker.Reason)
		require.Contains(t, broker.Message, "no route to")
	}
}

// fetchFirst returns the first record of a topic partition.
func (w *testCluster) fetchFirst(topic string, p int32) *kgo.Record {
	client, err := kgo.NewClient(kgo.SeedBrokers(w.kafka.ListenAddrs()...), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {p: kgo.NewOffset().AtStart()}}))
	require.NoError(w.t, err)
	defer client.Close()
	records := client.PollRecords(w.t.Context(), 1).Records()
	require.NotEmpty(w.t, records)
	return records[0]
}
