package kafka

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"platform/internal/subscription"
)

// Compaction leaves gaps between offsets, which are neither lag nor an error.
func TestACompactedTopic(t *testing.T) {
	w := newTestCluster(t, 2)
	require.NoError(t, w.kafka.CreateTopic("orders", 1, map[string]string{"cleanup.policy": "compact,delete"}))
	for i := range 30 { // one batch each
		w.produce(record("orders", 0, fmt.Sprint("k", i%3), "v"))
	}
	w.kafka.Compact()
	w.subscribe("sub_1", "Orders/add", []string{"orders"})
	h := w.start().leadAll()
	w.eventually("there is no lag", func() bool { st := h.status("orders", 0); return st.Position == 30 && st.Lag() == 0 })
	before := w.createdCount()
	require.Less(t, before, 30)
	w.produce(record("orders", 0, "k0", "v"), record("orders", 0, "k1", "v"))
	w.kafka.Compact()
	w.kafka.ApplyRetention()
	w.produce(record("orders", 0, "k2", "v"))
	w.eventually("it is read on", func() bool { st := h.status("orders", 0); return st.State == subscription.Running && st.Position == 33 })
	require.GreaterOrEqual(t, w.createdCount(), before+1)
}

// A topic that is deleted and created again while its subscription is paused is an error once that is
// resumed.
func TestATopicIsRecreatedWhilePaused(t *testing.T) {
	w := newTestCluster(t, 2)
	w.topic("orders", 1)
	w.produce(record("orders", 0, "", "1"), record("orders", 0, "", "2"))
	w.subscribe("sub_1", "Greeter/greet", []string{"orders"})
	h := w.start().leadAll()
	w.eventually("they are stored", func() bool { return w.createdCount() == 2 && h.status("orders", 0).Position == 2 })
	w.source.change("sub_1", func(s *subscription.Subscription) { s.Paused = &subscription.Pause{} })
	w.eventually("it is paused", func() bool { return h.status("orders", 0).State == subscription.Paused })
	require.NoError(t, w.kafka.DeleteTopic("orders"))
	w.topic("orders", 1)
	w.client.PurgeTopicsFromClient("orders")
	for range 3 { // also past the old position
		w.produce(record("orders", 0, "", "3"))
	}
	w.source.change("sub_1", func(s *subscription.Subscription) { s.Paused = nil })
	w.eventually("it is an error", func() bool { return h.status("orders", 0).Reason == subscription.TopicRecreated })
	require.Equal(t, 2, w.createdCount())
}

// A seek past a blocked record makes it no longer block, until it is
// read again.
func TestASeekWhileARecordBlocks(t *testing.T) {
	w := newTestCluster(t, 2)
	w.topic("orders", 1)
	w.produce(record("orders", 0, "a", "1"), record("orders", 0, "", "2"), record("orders", 0, "a", "3"))
	w.subscribe("sub_1", "Orders/add", []string{"orders"})
	h := w.start().leadAll()
	w.eventually("it blocks", func() bool { return h.status("orders", 0).Blocked != nil })
	seek := func(incarnation uint64, offset int64) {
		w.source.change("sub_1", func(s *subscription.Subscription) {
			s.Incarnation, s.Resolved = incarnation, true
			s.Offsets = []subscription.TopicStart{{TopicOffsets: subscription.TopicOffsets{Topic: "orders", Offsets: []subscription.PartitionOffset{{Partition: 0, Offset: offset}}}}}
		})
	}
	seek(2, 2)
	w.eventually("it is past it", func() bool { st := h.status("orders", 0); return st.Position == 3 && st.State == subscription.Running })
	require.ErrorIs(t, h.engine.Skip(t.Context(), subscription.RecordID{Subscription: "sub_1", Topic: "orders", Offset: 1}), subscription.ErrNotBlocked)
	require.Equal(t, 2, w.createdCount())
	seek(3, 0)
	w.eventually("it blocks again", func() bool { b := h.status("orders", 0).Blocked; return b != nil && b.Offset == 1 })
	require.Equal(t, 3, w.createdCount())
}

// A paused subscription shows where it will continue, even after a seek.
func TestASeekWhilePaused(t *testing.T) {
	w := newTestCluster(t, 2)
	w.topic("orders", 1)
	w.produce(record("orders", 0, "a", "1"), record("orders", 0, "a", "2"))
	w.subscribe("sub_1", "Orders/add", []string{"orders"})
	h := w.start().leadAll()
	w.eventually("they are stored", func() bool { return w.createdCount() == 2 })
	w.source.change("sub_1", func(s *subscription.Subscription) { s.Paused = &subscription.Pause{} })
	w.eventually("it is paused", func() bool { return h.status("orders", 0).State == subscription.Paused })
	w.source.change("sub_1", func(s *subscription.Subscription) {
		s.Incarnation, s.Resolved = 2, true
		s.Offsets = []subscription.TopicStart{{TopicOffsets: subscription.TopicOffsets{Topic: "orders", Offsets: []subscription.PartitionOffset{{Partition: 0, Offset: 1}}}}}
	})
	w.eventually("it shows the new position", func() bool {
		h.engine.reader("sub_1").notify()
		st := h.status("orders", 0)
		return st.State == subscription.Paused && st.Position == 1 && st.End == 2
	})
}

// A pattern also selects topics that are created later, which are read from their first record.
func TestAPatternSelectsLaterTopics(t *testing.T) {
	w := newTestCluster(t, 2)
	for _, name := range []string{"orders-eu", "returns"} {
		w.topic(name, 1)
		w.produce(record(name, 0, "", "1"))
	}
	w.subscribe("sub_1", "Greeter/greet", nil, func(s *subscription.Subscription) { s.Pattern, s.Start.Kind = "orders-.*", subscription.StartLatest })
	h := w.start().leadAll()
	w.eventually("it is read", func() bool { return h.status("orders-eu", 0).State == subscription.Running })
	w.topic("orders-us", 2)
	w.produce(record("orders-us", 1, "", "2"))
	w.produce(record("orders-eu", 0, "", "2"))
	w.eventually("both are stored", func() bool {
		h.engine.reader("sub_1").notify()
		return w.createdCount() == 2
	})
	w.requireOnce("orders-us", map[int32][]int64{1: {0}})
	w.requireOnce("orders-eu", map[int32][]int64{0: {1}})
	w.requireOnce("returns", map[int32][]int64{})
}

// Subscriptions with one group.id do not influence each other: the group only shows positions.
func TestTwoSubscriptionsOfOneGroup(t *testing.T) {
	w := newTestCluster(t, 2)
	w.topic("orders", 2)
	for i := range 20 {
		w.produce(record("orders", int32(i%2), "k", "v"))
	}
	group := func(s *subscription.Subscription) { s.Properties = map[string]string{"group.id": "billing"} }
	w.subscribe("sub_1", "Greeter/greet", []string{"orders"}, group)
	w.subscribe("sub_2", "Orders/add", []string{"orders"}, group)
	h := w.start().leadAll()
	w.eventually("each gets all records", func() bool { return w.createdCount() == 40 })
	admin := kadm.NewClient(w.client)
	w.eventually("the group shows the position", func() bool {
		for _, id := range []string{"sub_1", "sub_2"} {
			h.engine.reader(id).notify()
		}
		offsets, err := admin.FetchOffsets(t.Context(), "billing")
		at, ok := offsets.Lookup("orders", 1)
		return err == nil && ok && at.At == 10
	})
}

// A topic that the client may not read does not keep the others from being read.
func TestATopicThatMustNotBeRead(t *testing.T) {
	allow := func(name string) []kfake.ACL {
		acl := kfake.ACL{Resource: kmsg.ACLResourceTypeTopic, Name: name, Pattern: kmsg.ACLResourcePatternTypeLiteral, Allow: true}
		read, describe := acl, acl
		read.Operation, describe.Operation = kmsg.ACLOperationRead, kmsg.ACLOperationDescribe
		return []kfake.ACL{read, describe}
	}
	w := newTestCluster(t, 2, kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser("PLAIN", "admin", "secret"), kfake.User("PLAIN", "reader", "secret", allow("orders")...))
	producer, err := kgo.NewClient(kgo.SeedBrokers(w.kafka.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.SASL(plain.Auth{User: "admin", Pass: "secret"}.AsMechanism()))
	require.NoError(t, err)
	t.Cleanup(producer.Close)
	w.client = producer
	w.topic("orders", 1)
	w.topic("secret", 1)
	w.produce(record("orders", 0, "a", "1"), record("secret", 0, "a", "1"))
	main, _ := w.source.KafkaCluster("main")
	for n, v := range map[string]string{"security.protocol": "sasl_plaintext", "sasl.mechanism": "PLAIN", "sasl.username": "reader", "sasl.password": "secret"} {
		main.Properties[n] = v
	}
	w.subscribe("sub_1", "Orders/add", []string{"orders", "secret"}, func(s *subscription.Subscription) { s.Resolved = true })
	h := w.start().leadAll()
	w.eventually("the other one is read", func() bool { return w.createdCount() == 1 })
	w.eventually("the state has the reason", func() bool {
		st := h.engine.Statuses("sub_1", true)[0]
		return st.State == subscription.Failed && st.Reason == subscription.NotAuthorized && strings.HasPrefix(st.Message, "the topic secret: ")
	})
}
