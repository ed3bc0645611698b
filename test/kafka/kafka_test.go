package kafka

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"platform/test/harness"
)

func TestMain(m *testing.M) {
	code := m.Run()
	harness.Cleanup()
	os.Exit(code)
}

// setting returns a number of the environment.
func setting(t testing.TB, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, name)
	return n
}

// record returns the i-th record of a topic. It is for one of 500 keys, each of which belongs to
// one topic partition.
func record(topic string, partitions int32, i int) *kgo.Record {
	return recordOfKey(topic, partitions, i, i%500)
}

func recordOfKey(topic string, partitions int32, i, key int) *kgo.Record {
	return &kgo.Record{Topic: topic, Partition: int32(key) % partitions, Key: fmt.Append(nil, "key-", key), Value: fmt.Append(nil, `{"n":`, i, `}`)}
}

// post sends a request to the admin API of any node that responds.
func post(t testing.TB, c *harness.Cluster, path string, body any) map[string]any {
	t.Helper()
	text, err := json.Marshal(body)
	require.NoError(t, err)
	var status int
	var got []byte
	require.Eventually(t, func() bool {
		resp, err := http.Post(c.Nodes[0].Admin()+path, "application/json", bytes.NewReader(text))
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		if got, err = io.ReadAll(resp.Body); err != nil || resp.StatusCode >= 500 {
			t.Logf("POST %s: %d %s", path, resp.StatusCode, got)
			return false
		}
		status = resp.StatusCode
		return true
	}, 2*time.Minute, 200*time.Millisecond, path)
	require.Less(t, status, 300, string(got))
	var answer map[string]any
	require.NoError(t, json.Unmarshal(got, &answer))
	return answer
}

// await waits until the ledger has that many records.
func await(t testing.TB, l *ledger, want int, within time.Duration) {
	t.Helper()
	require.Eventually(t, func() bool { return l.count() >= want }, within, 20*time.Millisecond, "the first %d records", want)
}

// TestKillsOfServersAndBrokers produces records while servers and brokers are killed. Each
// record becomes one invocation, in the order of its key.
func TestKillsOfServersAndBrokers(t *testing.T) {
	records, kills, brokerCount := setting(t, "KAFKA_RECORDS", 20_000), setting(t, "KAFKA_KILLS", 3), setting(t, "KAFKA_BROKERS", 1)
	keys := setting(t, "KAFKA_KEYS", 500)
	const partitions = 6
	b := startBrokers(t, brokerCount)
	b.topic("orders", partitions)
	l, uri := startService(t)
	c := harness.ClusterFor(t, harness.ClusterOptions{Nodes: 3})
	require.NoError(t, c.Nodes[0].Register(t.Context(), uri, false))
	post(t, c, "/kafka-clusters", map[string]any{"name": "main", "properties": map[string]string{"bootstrap.servers": b.list()}})
	post(t, c, "/subscriptions", map[string]any{
		"source": "kafka://main/orders", "sink": "service://Orders/add", "options": map[string]string{"auto.offset.reset": "earliest"},
	})

	produced := make(chan error, 1)
	begin := time.Now()
	go func() {
		for i := range records {
			b.client.Produce(t.Context(), recordOfKey("orders", partitions, i, i%keys), func(_ *kgo.Record, err error) {
				if err != nil {
					select {
					case produced <- err:
					default:
					}
				}
			})
			if i%1000 == 999 { // for as long as the kills take
				for l.count() < i-records/4 && harness.Sleep(t.Context(), 10*time.Millisecond) {
				}
			}
		}
		err := b.client.Flush(t.Context())
		select {
		case produced <- err:
		default:
		}
	}()
	for k := range kills {
		target := (k + 1) * records / (kills + 1)
		await(t, l, target, 5*time.Minute)
		n := c.Nodes[rand.IntN(len(c.Nodes))]
		n.Kill()
		if brokerCount > 1 && k%5 == 4 {
			nd := b.nodes[rand.IntN(len(b.nodes))]
			nd.kill()
			nd.start(t)
		}
		restart(t, n)
	}
	require.NoError(t, <-produced)
	await(t, l, records, 5*time.Minute+time.Duration(records)*5*time.Millisecond)
	elapsed := time.Since(begin)

	l.mu.Lock()
	defer l.mu.Unlock()
	require.Empty(t, l.doubled)
	require.Empty(t, l.disordered)
	require.Len(t, l.invocations, records)
	sum := int64(0)
	require.Eventually(t, func() bool {
		sum = countOfKeys(t, c, "Orders")
		return sum >= int64(records)
	}, 2*time.Minute, time.Second)
	require.EqualValues(t, records, sum, "the handlers counted each record once")
	t.Logf("%d records, %d kills of servers, %d brokers: %s, %.0f records/s, %d executions", records, kills, brokerCount, elapsed.Round(time.Millisecond), float64(records)/elapsed.Seconds(), l.executions)
}

// restart starts a killed server. On a machine that is overloaded its watchdog may end it
// again.
func restart(t testing.TB, n *harness.Server) {
	t.Helper()
	var err error
	for range 5 {
		if err = n.Restart(t.Context()); err == nil {
			return
		}
		n.Kill()
	}
	require.NoError(t, err)
}

// countOfKeys returns how many records the objects have counted.
func countOfKeys(t testing.TB, c *harness.Cluster, service string) int64 {
	t.Helper()
	resp, err := c.Nodes[0].Client.StrongQuery(t.Context(), "SELECT sum(CAST(value_utf8 AS BIGINT)) AS total FROM state WHERE service_name = '"+service+"' AND key = 'count'")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.Status, string(resp.Body))
	var answer struct {
		Rows []struct {
			Total int64 `json:"total"`
		} `json:"rows"`
	}
	require.NoError(t, json.Unmarshal(resp.Body, &answer))
	require.Len(t, answer.Rows, 1)
	return answer.Rows[0].Total
}
