package kafka

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"platform/internal/subscription"
	"platform/partition/machine"
)

// committed returns the offset that a group has committed for partition 0 of a topic, -1 if there is
// none.
func (w *testCluster) committed(group, topic string) int64 {
	w.t.Helper()
	offsets, err := kadm.NewClient(w.client).FetchOffsets(w.t.Context(), group)
	if errors.Is(err, kerr.GroupIDNotFound) {
		return -1
	}
	require.NoError(w.t, err)
	if o, ok := offsets.Lookup(topic, 0); ok {
		return o.At
	}
	return -1
}

// A consumer that takes over from a subscription continues where that has stopped.
func TestAPausedSubscriptionHasCommittedItsPosition(t *testing.T) {
	w := newTestCluster(t, 2)
	w.topic("orders", 1)
	w.produce(record("orders", 0, "a", "1"), record("orders", 0, "b", "2"))
	w.subscribe("sub_1", "Orders/add", []string{"orders"})
	h := w.start().leadAll()
	w.eventually("they are stored", func() bool { return w.createdCount() == 2 })
	w.source.change("sub_1", func(s *subscription.Subscription) { s.Paused = &subscription.Pause{} })
	w.eventually("it is paused", func() bool { return h.engine.Statuses("sub_1", true)[0].State == subscription.Paused })
	require.EqualValues(t, 2, w.committed("sub_1", "orders"))
}

// A leader that ends before it has committed the position that it stored leaves that to the next one,
// even if there are no more records.
func TestANewLeaderCommitsThePosition(t *testing.T) {
	w := newTestCluster(t, 1)
	w.topic("orders", 1)
	w.produce(record("orders", 0, "a", "1"), record("orders", 0, "b", "2"))
	w.subscribe("sub_1", "Orders/add", []string{"orders"})
	a := w.start().leadAll()
	w.eventually("the position is stored", func() bool {
		found, err := (&testOwner{s: w.partitions[0]}).Positions("sub_1")
		return err == nil && len(found) == 1 && found[0].Next == 2
	})
	a.resign(0)
	w.start().leadAll()
	w.eventually("it is committed", func() bool { return w.committed("sub_1", "orders") == 2 })
}

// A node that no longer leads does not commit a position, which could be behind that of its successor.
func TestAFormerLeaderCommitsNothing(t *testing.T) {
	w := newTestCluster(t, 1)
	w.topic("orders", 1)
	w.topic("others", 1)
	w.subscribe("sub_1", "Orders/add", []string{"orders"})
	h := w.start().leadAll()
	w.eventually("it is read", func() bool { return h.status("orders", 0).State == subscription.Running })
	r, at := h.engine.reader("sub_1"), topicPartition{"orders", 0}
	stored := machine.StreamPosition{Next: 1}
	r.toMirror(at, stored)
	require.Equal(t, map[topicPartition]machine.StreamPosition{at: stored}, r.mirrored())
	o := r.stream(at).owner
	h.resign(0)
	<-o.ctx.Done()
	require.Empty(t, r.mirrored())
	require.Empty(t, r.mirror)
}

// A topic that was deleted does not keep the positions of others from being committed.
func TestPositionsBesideThoseOfADeletedTopicAreCommitted(t *testing.T) {
	w := newTestCluster(t, 1)
	w.topic("events1", 1)
	w.topic("events2", 1)
	w.produce(record("events1", 0, "a", "1"), record("events2", 0, "a", "1"))
	w.subscribe("sub_1", "Orders/add", nil, func(s *subscription.Subscription) { s.Pattern = "events." })
	h := w.start().leadAll()
	w.eventually("they are stored", func() bool { return h.status("events1", 0).Position == 1 && h.status("events2", 0).Position == 1 })
	r := h.engine.reader("sub_1")
	require.NoError(t, w.kafka.DeleteTopic("events2"))
	r.toMirror(topicPartition{"events1", 0}, machine.StreamPosition{Next: 1})
	r.toMirror(topicPartition{"events2", 0}, machine.StreamPosition{Next: 1})
	r.commitMirror(t.Context())
	require.EqualValues(t, 1, w.committed("sub_1", "events1"))
	require.Empty(t, r.mirrored())
	require.Empty(t, h.engine.Statuses("sub_1", true)[0].Message)
	r.notify()
	w.eventually("the topic is no longer read", func() bool {
		all := h.engine.Statuses("sub_1", false)[0]
		return all.State == subscription.Running && len(all.Partitions) == 1
	})
}

// While the coordinator of the consumer group is unavailable, topic partitions that move to the node are
// read without delay.
func TestAPendingCommitDoesNotDelayTopicPartitions(t *testing.T) {
	w := newTestCluster(t, 2)
	w.commitInterval = 10 * time.Millisecond
	w.topic("orders", 8)
	for p := range int32(8) {
		w.produce(record("orders", p, "", "1"))
	}
	var commits atomic.Int32
	w.kafka.ControlKey(int16(kmsg.OffsetCommit), func(req kmsg.Request) (kmsg.Response, error, bool) {
		w.kafka.KeepControl()
		r, ok := req.(*kmsg.OffsetCommitRequest)
		if !ok {
			return nil, nil, false
		}
		commits.Add(1)
		resp := r.ResponseKind().(*kmsg.OffsetCommitResponse)
		for i := range r.Topics {
			topic := kmsg.NewOffsetCommitResponseTopic()
			topic.Topic, topic.TopicID = r.Topics[i].Topic, r.Topics[i].TopicID
			for _, rp := range r.Topics[i].Partitions {
				p := kmsg.NewOffsetCommitResponseTopicPartition()
				p.Partition, p.ErrorCode = rp.Partition, kerr.CoordinatorLoadInProgress.Code
				topic.Partitions = append(topic.Partitions, p)
			}
			resp.Topics = append(resp.Topics, topic)
		}
		return resp, nil, true
	})
	w.subscribe("sub_1", "Greeter/greet", []string{"orders"})
	h := w.start()
	h.lead(0)
	w.eventually("a commit is repeated", func() bool { return commits.Load() > 1 })
	h.lead(1)
	w.eventually("all topic partitions are read", func() bool { return w.createdCount() == 8 })
	require.Empty(t, h.engine.Statuses("sub_1", true)[0].Message, "they were read after the commit had failed")
}
