package kafka

import (
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// A topic of which little is left by compaction has no lag once it is read: with tombstones and an
// aborted transaction at its end, for subscriptions that have read it before and for new ones. When
// retention removes the rest, nothing is lost for these, so they continue.
func compactedEnd(s *situation, topic string) {
	config := func(v string) *string { return &v }
	_, err := s.b.admin.CreateTopic(s.Context(), 1, s.b.factor, map[string]*string{
		"cleanup.policy": config("compact"), "segment.ms": config("200"), "min.cleanable.dirty.ratio": config("0"), "min.compaction.lag.ms": config("0"),
		"delete.retention.ms": config("0"), "max.compaction.lag.ms": config("1000"),
	}, topic)
	require.NoError(s, err)
	subscribe := func() string { // several to one topic would be doubled in the ledger
		sub := post(s, s.c, "/subscriptions?check=true", map[string]any{"source": "kafka://main/" + topic, "sink": "service://Ignored/run", "start": "earliest"})
		return "/subscriptions/" + sub["id"].(string)
	}
	before := subscribe()
	producer, err := kgo.NewClient(kgo.SeedBrokers(s.b.list()), kgo.TransactionalID("compacted"), kgo.DefaultProduceTopic(topic))
	require.NoError(s, err)
	defer producer.Close()
	tombstone := &kgo.Record{Topic: topic, Key: []byte("k")}
	next := int64(0)
	round := func() {
		s.produce(topic, 4, sameKey)
		require.NoError(s, s.b.client.ProduceSync(s.Context(), tombstone).FirstErr())
		require.NoError(s, producer.BeginTransaction())
		require.NoError(s, producer.ProduceSync(s.Context(), &kgo.Record{Key: []byte("k"), Value: []byte(`{}`)}).FirstErr())
		require.NoError(s, producer.EndTransaction(s.Context(), kgo.TryAbort))
		next += 7 // with the marker
	}
	round()
	s.awaitStatus(before, readTo(next))
	require.Eventually(s, func() bool {
		round()
		return s.left(topic) < int(next)/2
	}, 2*time.Minute, 500*time.Millisecond, "it is compacted")
	s.awaitStatus(before, readTo(next))
	after := subscribe()
	s.awaitStatus(after, readTo(next))

	s.b.nodes[0].kill()
	s.b.nodes[0].start(s)
	require.Eventually(s, func() bool {
		ends, err := s.b.admin.ListEndOffsets(s.Context(), topic)
		end, ok := ends.Lookup(topic, 0)
		return err == nil && ok && end.Err == nil && end.Offset == next
	}, time.Minute, 100*time.Millisecond, "the broker is back")
	late := subscribe()
	s.awaitStatus(late, readTo(next))

	altered, err := s.b.admin.AlterTopicConfigs(s.Context(), []kadm.AlterConfig{
		{Op: kadm.SetConfig, Name: "cleanup.policy", Value: config("delete")}, {Op: kadm.SetConfig, Name: "retention.ms", Value: config("1")},
	}, topic)
	require.NoError(s, err)
	for _, a := range altered {
		require.NoError(s, a.Err)
	}
	offsets := kadm.Offsets{}
	offsets.Add(kadm.Offset{Topic: topic, At: next})
	_, err = s.b.admin.DeleteRecords(s.Context(), offsets)
	require.NoError(s, err)
	for _, path := range []string{before, after, late} {
		post(s, s.c, path+"/pause", map[string]any{})
		post(s, s.c, path+"/resume", map[string]any{})
		s.awaitStatus(path, readTo(next))
	}
	s.produce(topic, 1, sameKey)
	for _, path := range []string{before, after, late} {
		s.awaitStatus(path, readTo(next+1))
	}
}

// left returns the number of committed records that a topic has.
func (s *situation) left(topic string) (n int) {
	s.Helper()
	ends, err := s.b.admin.ListCommittedOffsets(s.Context(), topic)
	require.NoError(s, err)
	end, _ := ends.Lookup(topic, 0)
	reader, err := kgo.NewClient(kgo.SeedBrokers(s.b.list()), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
	require.NoError(s, err)
	defer reader.Close()
	for s.Context().Err() == nil {
		for _, rec := range reader.PollFetches(s.Context()).Records() {
			if n++; rec.Offset == end.Offset-1 {
				return n
			}
		}
	}
	return n
}
