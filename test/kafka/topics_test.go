package kafka

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"platform/test/harness"
)

// subscriptionStatus is a part of the response of GET /subscriptions/{id}.
type subscriptionStatus struct {
	State      string `json:"state"`
	Reason     string `json:"reason"`
	Message    string `json:"message"`
	LagRecords *int64 `json:"lag_records"`
	Partitions []struct {
		State    string `json:"state"`
		Reason   string `json:"reason"`
		Position int64  `json:"position"`
	} `json:"partitions"`
}

// situation is a server that reads topics of a broker.
type situation struct {
	*testing.T
	b *brokers
	c *harness.Cluster
	l *ledger
}

// subscribe reads a topic from its oldest record with the service Plain, and returns the path of
// the subscription.
func (s *situation) subscribe(topic string) string {
	s.Helper()
	sub := post(s, s.c, "/subscriptions?check=true", map[string]any{
		"source": "kafka://main/" + topic, "sink": "service://Plain/run", "options": map[string]string{"auto.offset.reset": "earliest"},
	})
	return fmt.Sprintf("/subscriptions/%v", sub["id"])
}

// produce writes records to the only partition of a topic.
func (s *situation) produce(topic string, count int, key func(i int) string) {
	s.Helper()
	for i := range count {
		require.NoError(s, s.b.client.ProduceSync(s.Context(), &kgo.Record{Topic: topic, Key: []byte(key(i)), Value: fmt.Appendf(nil, `{"n":%d}`, i)}).FirstErr())
	}
}

func sameKey(int) string { return "k" }

// awaitStatus waits until a subscription has a status.
func (s *situation) awaitStatus(path string, want func(*subscriptionStatus) bool) {
	s.Helper()
	var st subscriptionStatus
	require.Eventually(s, func() bool {
		resp, err := http.Get(s.c.Nodes[0].Admin() + path)
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		st = subscriptionStatus{}
		return json.NewDecoder(resp.Body).Decode(&st) == nil && want(&st)
	}, 2*time.Minute, 50*time.Millisecond, "%+v", &st)
}

func stateIs(state, reason string) func(*subscriptionStatus) bool {
	return func(st *subscriptionStatus) bool { return st.State == state && st.Reason == reason }
}

// readTo is the status of a subscription that has read its only topic partition.
func readTo(position int64) func(*subscriptionStatus) bool {
	return func(st *subscriptionStatus) bool {
		return st.State == "running" && len(st.Partitions) == 1 && st.Partitions[0].Position == position && st.LagRecords != nil && *st.LagRecords == 0
	}
}

// awaitRecords waits until that many records of a topic have become invocations, and checks that
// there are no others.
func (s *situation) awaitRecords(topic string, want int) {
	s.Helper()
	count := func() (n int) {
		s.l.mu.Lock()
		defer s.l.mu.Unlock()
		for id := range s.l.invocations {
			if id.topic == topic {
				n++
			}
		}
		return n
	}
	require.Eventually(s, func() bool { return count() >= want }, time.Minute, 20*time.Millisecond, "records of %s", topic)
	require.Equal(s, want, count())
	s.l.mu.Lock()
	defer s.l.mu.Unlock()
	require.Empty(s, s.l.doubled)
}

// TestTopicsThatChange reads topics of a real broker whose records expire, are compacted or belong
// to aborted transactions, that are deleted and created again, and whose broker stops or loses records.
func TestTopicsThatChange(t *testing.T) {
	b := startBrokers(t, 1)
	l, uri := startService(t)
	c := harness.ClusterFor(t, harness.ClusterOptions{Nodes: 1})
	require.NoError(t, c.Nodes[0].Register(t.Context(), uri, false))
	post(t, c, "/kafka-clusters", map[string]any{"name": "main", "properties": map[string]string{"bootstrap.servers": b.list()}})
	for _, test := range []struct {
		name string
		run  func(s *situation, topic string)
	}{
		{"expired", expiredRecords}, {"recreated", recreatedTopic}, {"recreated-while-paused", recreatedWhilePaused},
		{"transactions", abortedTransactions}, {"compacted", compactedTopic}, {"compacted-end", compactedEnd}, {"unreachable", unreachableBroker},
		{"truncated", truncatedLog}, {"truncated-while-paused", truncatedWhilePaused},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(&situation{t, b, c, l}, test.name) })
	}
}

// Records that expire before they are read block the topic partition until a seek.
func expiredRecords(s *situation, topic string) {
	s.b.topic(topic, 1)
	path := s.subscribe(topic)
	s.awaitStatus(path, readTo(0))
	post(s, s.c, path+"/pause", map[string]any{})
	s.produce(topic, 10, sameKey)
	offsets := kadm.Offsets{}
	offsets.Add(kadm.Offset{Topic: topic, At: 4})
	_, err := s.b.admin.DeleteRecords(s.Context(), offsets)
	require.NoError(s, err)
	post(s, s.c, path+"/resume", map[string]any{})
	s.awaitStatus(path, stateIs("blocked", "offset_out_of_range"))
	s.awaitRecords(topic, 0)
	post(s, s.c, path+"/seek?restart=true", map[string]any{"start": "earliest"})
	s.awaitRecords(topic, 6)
	s.awaitStatus(path, readTo(10))
}

// recreate deletes a topic and creates it again, with records.
func (s *situation) recreate(topic string, records int) {
	s.Helper()
	_, err := s.b.admin.DeleteTopic(s.Context(), topic)
	require.NoError(s, err)
	require.Eventually(s, func() bool {
		_, err := s.b.admin.CreateTopic(s.Context(), 1, s.b.factor, nil, topic)
		return err == nil
	}, time.Minute, 50*time.Millisecond, "it is created again")
	s.b.client.PurgeTopicsFromClient(topic)
	require.Eventually(s, func() bool {
		return s.b.client.ProduceSync(s.Context(), &kgo.Record{Topic: topic, Value: []byte(`{}`)}).FirstErr() == nil
	}, time.Minute, 50*time.Millisecond, "its first record")
	s.produce(topic, records-1, sameKey)
}

// A topic that is deleted and created again is an error until a seek, even if it has more records
// than the earlier one.
func recreatedTopic(s *situation, topic string) {
	s.b.topic(topic, 1)
	path := s.subscribe(topic)
	s.produce(topic, 3, sameKey)
	s.awaitStatus(path, readTo(3))
	s.recreate(topic, 5)
	s.awaitStatus(path, stateIs("error", "topic_recreated"))
	s.awaitRecords(topic, 3)
	s.l.forget(topic)
	post(s, s.c, path+"/seek?restart=true", map[string]any{"start": "earliest"})
	s.awaitRecords(topic, 5)
}

func recreatedWhilePaused(s *situation, topic string) {
	s.b.topic(topic, 1)
	path := s.subscribe(topic)
	s.produce(topic, 3, sameKey)
	s.awaitStatus(path, readTo(3))
	post(s, s.c, path+"/pause", map[string]any{})
	s.recreate(topic, 5)
	post(s, s.c, path+"/resume", map[string]any{})
	s.awaitStatus(path, stateIs("error", "topic_recreated"))
	s.awaitRecords(topic, 3)
}

// forget removes what is known about a topic, whose offsets start over.
func (l *ledger) forget(topic string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id := range l.invocations {
		if id.topic == topic {
			delete(l.invocations, id)
		}
	}
}

// Records of aborted transactions are left out, and there is no lag behind them.
func abortedTransactions(s *situation, topic string) {
	s.b.topic(topic, 1)
	path := s.subscribe(topic)
	producer, err := kgo.NewClient(kgo.SeedBrokers(s.b.list()), kgo.TransactionalID("tx"), kgo.DefaultProduceTopic(topic))
	require.NoError(s, err)
	defer producer.Close()
	for i := range 6 {
		require.NoError(s, producer.BeginTransaction())
		require.NoError(s, producer.ProduceSync(s.Context(), kgo.StringRecord(`{}`), kgo.StringRecord(`{}`)).FirstErr())
		require.NoError(s, producer.EndTransaction(s.Context(), kgo.TransactionEndTry(i%2 == 0)))
	}
	s.awaitRecords(topic, 6)
	s.awaitStatus(path, readTo(18)) // with the six markers
}

// Compaction leaves gaps, which are neither an error nor lag.
func compactedTopic(s *situation, topic string) {
	config := func(v string) *string { return &v }
	_, err := s.b.admin.CreateTopic(s.Context(), 1, s.b.factor, map[string]*string{
		"cleanup.policy": config("compact,delete"), "segment.ms": config("200"), "min.cleanable.dirty.ratio": config("0"), "min.compaction.lag.ms": config("0"),
	}, topic)
	require.NoError(s, err)
	path := s.subscribe(topic)
	s.produce(topic, 5, sameKey)
	s.awaitStatus(path, readTo(5))
	post(s, s.c, path+"/pause", map[string]any{})
	next := int64(5)
	require.Eventually(s, func() bool { // a record begins a segment, after which the ones before can be compacted
		s.produce(topic, 1, sameKey)
		next++
		return s.offsets(topic) < int(next)/2
	}, 2*time.Minute, 500*time.Millisecond, "it is compacted")
	s.l.forget(topic)
	post(s, s.c, path+"/resume", map[string]any{})
	s.awaitStatus(path, readTo(next))
	s.l.mu.Lock()
	delivered := 0
	for id := range s.l.invocations {
		if id.topic == topic {
			delivered++
		}
	}
	s.l.mu.Unlock()
	require.Less(s, delivered, int(next)-5, "there are gaps")
	require.Positive(s, delivered)
}

// offsets returns the number of records that a topic has.
func (s *situation) offsets(topic string) (n int) {
	s.Helper()
	ends, err := s.b.admin.ListEndOffsets(s.Context(), topic)
	require.NoError(s, err)
	end, _ := ends.Lookup(topic, 0)
	reader, err := kgo.NewClient(kgo.SeedBrokers(s.b.list()), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
	require.NoError(s, err)
	defer reader.Close()
	for {
		for _, rec := range reader.PollFetches(s.Context()).Records() {
			n++
			if rec.Offset == end.Offset-1 {
				return n
			}
		}
		if s.Context().Err() != nil {
			return n
		}
	}
}

// A broker that cannot be reached when a subscription is created, or later, is an error until it
// responds.
func unreachableBroker(s *situation, topic string) {
	s.b.topic(topic, 1)
	s.produce(topic, 2, sameKey)
	ports, err := harness.FreePorts(1)
	require.NoError(s, err)
	post(s, s.c, "/kafka-clusters", map[string]any{"name": "away", "properties": map[string]string{"bootstrap.servers": fmt.Sprintf("127.0.0.1:%d", ports[0])}})
	body := `{"source":"kafka://away/` + topic + `","sink":"service://Plain/run","start":"earliest"}`
	resp, err := http.Post(s.c.Nodes[0].Admin()+"/subscriptions?check=true", "application/json", strings.NewReader(body))
	require.NoError(s, err)
	text, err := io.ReadAll(resp.Body)
	require.NoError(s, err)
	_ = resp.Body.Close()
	require.Equal(s, http.StatusBadRequest, resp.StatusCode, string(text))
	require.Contains(s, string(text), "META0009")
	sub := post(s, s.c, "/subscriptions", map[string]any{"source": "kafka://away/" + topic, "sink": "service://Plain/run", "start": "earliest"})
	require.Equal(s, "error", sub["state"])
	path := fmt.Sprintf("/subscriptions/%v", sub["id"])
	s.awaitStatus(path, stateIs("error", "broker_unreachable"))
	patch(s, s.c, "/kafka-clusters/away", map[string]any{"properties": map[string]string{"bootstrap.servers": s.b.list()}})
	s.awaitStatus(path, readTo(2))

	s.b.nodes[0].kill()
	s.awaitStatus(path, stateIs("error", "broker_unreachable"))
	s.b.nodes[0].start(s)
	require.Eventually(s, func() bool {
		return s.b.client.ProduceSync(s.Context(), &kgo.Record{Topic: topic, Value: []byte(`{}`)}).FirstErr() == nil
	}, time.Minute, 100*time.Millisecond, "the broker is back")
	s.awaitStatus(path, readTo(3))
	s.awaitRecords(topic, 3)
}

// A broker that has lost records blocks the topic partition until a seek, whether or not later
// records have the same offsets.
func truncatedLog(s *situation, topic string) {
	path := s.readTen(topic)
	s.truncate(topic)
	s.seekTruncated(path, topic)
}

func truncatedWhilePaused(s *situation, topic string) {
	path := s.readTen(topic)
	post(s, s.c, path+"/pause", map[string]any{})
	s.truncate(topic)
	s.produceAnew(topic, 10)
	post(s, s.c, path+"/resume", map[string]any{})
	s.seekTruncated(path, topic)
}

func (s *situation) readTen(topic string) (path string) {
	s.Helper()
	s.b.topic(topic, 1)
	path = s.subscribe(topic)
	s.produce(topic, 10, sameKey)
	s.awaitStatus(path, readTo(10))
	return path
}

func (s *situation) seekTruncated(path, topic string) {
	s.Helper()
	s.awaitStatus(path, stateIs("blocked", "log_truncated"))
	s.awaitRecords(topic, 10)
	s.l.forget(topic)
	post(s, s.c, path+"/seek?restart=true", map[string]any{"start": "earliest"})
	s.produceAnew(topic, 1)
	left := s.offsets(topic)
	s.awaitRecords(topic, left)
	s.awaitStatus(path, readTo(int64(left)))
}

// truncate kills the broker and starts it with the first half of the log of a topic partition.
func (s *situation) truncate(topic string) {
	s.Helper()
	nd := s.b.nodes[0]
	nd.kill()
	segment := filepath.Join(filepath.Dir(nd.config), "data", topic+"-0", fmt.Sprintf("%020d.log", 0))
	info, err := os.Stat(segment)
	require.NoError(s, err)
	require.NoError(s, os.Truncate(segment, info.Size()/2))
	nd.start(s)
}

// produceAnew writes records with another producer, since the broker has lost the state of the first.
func (s *situation) produceAnew(topic string, count int) {
	s.Helper()
	producer, err := kgo.NewClient(kgo.SeedBrokers(s.b.list()), kgo.DisableIdempotentWrite(), kgo.DefaultProduceTopic(topic))
	require.NoError(s, err)
	defer producer.Close()
	for range count {
		require.NoError(s, producer.ProduceSync(s.Context(), kgo.StringRecord(`{}`)).FirstErr())
	}
}
