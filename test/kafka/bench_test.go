package kafka

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"platform/test/harness"
)

// TestThroughput measures how fast a backlog of KAFKA_BENCH records of 100 bytes becomes
// invocations of an object with 10,000 keys and of a service, and then how long each record takes
// from its producer to its handler at 1,000 records per second. The servers are those of
// KAFKA_BENCH_TARGETS, in turn, with one broker and a topic for each run.
func TestThroughput(t *testing.T) {
	records := setting(t, "KAFKA_BENCH", 0)
	if records == 0 {
		t.Skip("SKIPPED: set KAFKA_BENCH to the number of records to measure")
	}
	b := startBrokers(t, 1)
	targets := strings.Split(os.Getenv("KAFKA_BENCH_TARGETS"), ",")
	if targets[0] == "" {
		targets = []string{"platform"}
	}
	for round := range setting(t, "KAFKA_BENCH_ROUNDS", 3) {
		for _, name := range targets {
			for _, sink := range []string{"Orders/add", "Plain/run"} {
				t.Run(fmt.Sprintf("%d/%s/%s", round, name, sink), func(t *testing.T) { measure(t, b, name, sink, records) })
			}
		}
	}
}

func measure(t *testing.T, b *brokers, targetName, sink string, records int) {
	const partitions = 6
	topic := fmt.Sprintf("bench-%d", time.Now().UnixNano())
	_, err := b.admin.CreateTopic(t.Context(), partitions, b.factor, nil, topic)
	require.NoError(t, err)
	value := `{"n":1}` + strings.Repeat(" ", 93)
	at := func(i int) *kgo.Record {
		rec := recordOfKey(topic, partitions, i, i%10_000)
		rec.Value = []byte(value)
		return rec
	}
	for i := range records {
		b.client.Produce(t.Context(), at(i), nil)
	}
	require.NoError(t, b.client.Flush(t.Context()))

	target, err := harness.LoadTarget(targetName)
	require.NoError(t, err)
	c, err := harness.NewCluster(target, harness.ClusterOptions{Nodes: 1, Dir: t.TempDir()})
	require.NoError(t, err)
	require.NoError(t, c.Start(t.Context()))
	defer c.Kill()
	l, uri := startService(t)
	require.NoError(t, c.Nodes[0].Register(t.Context(), uri, false))
	post(t, c, "/kafka-clusters", map[string]any{"name": "main", "properties": map[string]string{"bootstrap.servers": b.list()}})
	cpu := cpuOf(t, c.Nodes[0])
	begin := time.Now()
	post(t, c, "/subscriptions", map[string]any{
		"source": "kafka://main/" + topic, "sink": "service://" + sink, "options": map[string]string{"auto.offset.reset": "earliest"},
	})
	await(t, l, records, 5*time.Minute)
	elapsed, cpu := time.Since(begin), cpuOf(t, c.Nodes[0])-cpu

	// The broker compiles the code for small requests first, which takes a core for a second.
	lagsAtRate(t, b, l, at, records, warmUp)
	cpuAtRate := cpuOf(t, c.Nodes[0])
	lags := lagsAtRate(t, b, l, at, records+warmUp, 10*lagRate)
	cpuAtRate = cpuOf(t, c.Nodes[0]) - cpuAtRate
	t.Logf("%s %s: %.0f records/s, %.0f µs of CPU per record; at %d records/s: %.0f µs, lag p50 %s, p99 %s", targetName, sink,
		float64(records)/elapsed.Seconds(), cpu.Seconds()*1e6/float64(records),
		lagRate, cpuAtRate.Seconds()*1e6/float64(len(lags)), lags[len(lags)/2].Round(100*time.Microsecond), lags[len(lags)*99/100].Round(100*time.Microsecond))
}

// lagRate is how many records per second are produced to measure lags, and warmUp how many before.
const (
	lagRate = 1000
	warmUp  = 3 * lagRate
)

// lagsAtRate produces records from the first one on and returns, sorted, how long each took from the
// producer to its handler.
func lagsAtRate(t *testing.T, b *brokers, l *ledger, at func(int) *kgo.Record, first, records int) []time.Duration {
	t.Helper()
	l.mu.Lock()
	l.arrived = map[recordID]time.Time{}
	l.mu.Unlock()
	var sent []*kgo.Record
	begin := time.Now()
	for i := range records {
		if wait := time.Until(begin.Add(time.Duration(i) * time.Second / lagRate)); wait > 0 {
			harness.Sleep(t.Context(), wait)
		}
		rec := at(first + i)
		rec.Timestamp = time.Now()
		sent = append(sent, rec)
		b.client.Produce(t.Context(), rec, nil)
	}
	require.NoError(t, b.client.Flush(t.Context()))
	await(t, l, first+len(sent), 5*time.Minute)
	l.mu.Lock()
	defer l.mu.Unlock()
	var lags []time.Duration
	for _, rec := range sent {
		lags = append(lags, l.arrived[recordID{rec.Topic, rec.Partition, rec.Offset}].Sub(rec.Timestamp))
	}
	logStall(t, sent, lags)
	slices.Sort(lags)
	return lags
}

// logStall says which topic partitions had the longest lags, and when: one of them waits for the
// server, all of them perhaps for the broker or the machine.
func logStall(t *testing.T, sent []*kgo.Record, lags []time.Duration) {
	const long = 200 * time.Millisecond
	affected := map[int32]int{}
	var first, last time.Time
	for i, lag := range lags {
		if lag < long {
			continue
		}
		if affected[sent[i].Partition]++; first.IsZero() {
			first = sent[i].Timestamp
		}
		last = sent[i].Timestamp
	}
	if len(affected) > 0 {
		t.Logf("lags over %s, up to %s: from %s to %s after the first record, in topic partitions: %v", long, slices.Max(lags).Round(time.Millisecond),
			first.Sub(sent[0].Timestamp).Round(time.Millisecond), last.Sub(sent[0].Timestamp).Round(time.Millisecond), affected)
	}
}

// cpuOf returns the CPU time that a server has used.
func cpuOf(t testing.TB, s *harness.Server) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.Process.PID()))
	if err != nil {
		t.Skip("SKIPPED: CPU time is read from /proc")
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+2:]))
	ticks := 0
	for _, f := range fields[11:13] { // user and system, in 1/100 s
		n, err := strconv.Atoi(f)
		require.NoError(t, err)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// TestIdleCost measures what KAFKA_IDLE_SUBSCRIPTIONS of KAFKA_IDLE topic partitions each cost while
// there are no records. With 10,000 of one topic, 256 MiB (KAFKA_HEAP) are too little for a broker.
func TestIdleCost(t *testing.T) {
	partitions, subscriptions := setting(t, "KAFKA_IDLE", 0), setting(t, "KAFKA_IDLE_SUBSCRIPTIONS", 1)
	if partitions == 0 {
		t.Skip("SKIPPED: set KAFKA_IDLE to the number of topic partitions to measure")
	}
	counted, requests := countRequests(t)
	b := startBrokers(t, 1, counted)
	b.topic("idle", int32(partitions))
	_, uri := startService(t)
	c := harness.ClusterFor(t, harness.ClusterOptions{Nodes: 1})
	require.NoError(t, c.Nodes[0].Register(t.Context(), uri, false))
	const seconds = 30 // twice the time between requests for metadata
	during := func() time.Duration {
		before := cpuOf(t, c.Nodes[0])
		requests.take()
		harness.Sleep(t.Context(), seconds*time.Second)
		return (cpuOf(t, c.Nodes[0]) - before) / seconds
	}
	without, memory := during(), residentOf(t, c)>>20
	post(t, c, "/kafka-clusters", map[string]any{"name": "main", "properties": map[string]string{"bootstrap.servers": counted.address}})
	begin := time.Now()
	for range subscriptions {
		sub := post(t, c, "/subscriptions?check=true", map[string]any{"source": "kafka://main/idle", "sink": "service://Plain/run"})
		require.Eventually(t, func() bool { return runningOf(c, sub["id"]) == partitions }, 2*time.Minute, 50*time.Millisecond)
	}
	started, starting := time.Since(begin), requests.take()
	cpu, counts := during(), requests.take()
	perSecond := map[string]string{}
	for kind, n := range counts {
		perSecond[kind] = fmt.Sprintf("%.1f", float64(n)/seconds)
	}
	t.Logf("%d × %d topic partitions: read after %s and %v; %s of CPU per second, %s without; %d MiB, %d without; requests/s: %v", subscriptions, partitions,
		started.Round(time.Millisecond), starting, cpu, without, residentOf(t, c)>>20, memory, perSecond)
}

// runningOf returns the number of topic partitions that a subscription reads.
func runningOf(c *harness.Cluster, id any) (n int) {
	resp, err := http.Get(fmt.Sprintf("%s/subscriptions/%v", c.Nodes[0].Admin(), id))
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	var answer struct{ Partitions []struct{ State string } }
	_ = json.NewDecoder(resp.Body).Decode(&answer)
	for _, p := range answer.Partitions {
		if p.State == "running" {
			n++
		}
	}
	return n
}
