package kafka

import (
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	restate "github.com/restatedev/sdk-go"
	"github.com/restatedev/sdk-go/server"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"platform/test/harness"
)

// arrivals records which offsets of topic partitions have reached a handler, with a bit each.
type arrivals struct {
	mu    sync.Mutex
	seen  [][]uint64
	count int
	again []string
}

func (a *arrivals) add(ctx restate.ObjectContext, _ []byte) (restate.Void, error) {
	id := recordOf(ctx.Request().Headers)
	count, err := restate.Get[int](ctx, "count")
	if err != nil {
		return restate.Void{}, err
	}
	restate.Set(ctx, "count", count+1)
	a.mu.Lock()
	defer a.mu.Unlock()
	word, bit := &a.seen[id.partition][id.offset/64], uint64(1)<<(id.offset%64)
	if count > 0 {
		a.again = append(a.again, fmt.Sprintf("%v: %s has %d records", id, restate.Key(ctx), count+1))
	}
	if *word&bit == 0 { // otherwise it is a retry
		*word |= bit
		a.count++
	}
	return restate.Void{}, nil
}

// reached returns how many records have reached the handler.
func (a *arrivals) reached() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.count
}

// TestDistinctKeys reads KAFKA_DISTINCT_KEYS records, each with another key. Each reaches an object of
// its own, and the memory of the server does not grow with the number of keys.
func TestDistinctKeys(t *testing.T) {
	const partitions = 6
	records := setting(t, "KAFKA_DISTINCT_KEYS", 5000)
	b := startBrokers(t, 1)
	b.topic("users", partitions)
	a := &arrivals{seen: make([][]uint64, partitions)}
	for p := range a.seen {
		a.seen[p] = make([]uint64, records/partitions/64+2)
	}
	handler, err := server.NewRestate().WithLogger(slog.DiscardHandler, false).
		Bind(restate.NewObject("Users").Handler("add", restate.NewObjectHandler(a.add, restate.WithBinary))).Handler()
	require.NoError(t, err)
	c := harness.ClusterFor(t, harness.ClusterOptions{Nodes: setting(t, "KAFKA_NODES", 1)})
	require.NoError(t, c.Nodes[0].Register(t.Context(), serve(t, handler), false))
	for i := range records {
		b.client.Produce(t.Context(), &kgo.Record{Topic: "users", Partition: int32(i % partitions), Key: fmt.Append(nil, "user-", i), Value: []byte("x")}, nil)
	}
	require.NoError(t, b.client.Flush(t.Context()))
	post(t, c, "/kafka-clusters", map[string]any{"name": "main", "properties": map[string]string{"bootstrap.servers": b.list()}})
	begin := time.Now()
	post(t, c, "/subscriptions", map[string]any{"source": "kafka://main/users", "sink": "service://Users/add", "start": "earliest"})

	var memory []int // of all servers, by tenths of the records
	for tenth := 1; tenth <= 10; tenth++ {
		require.Eventually(t, func() bool { return a.reached() >= records*tenth/10 }, time.Minute+time.Duration(records)*5*time.Millisecond, 50*time.Millisecond, "%d records", records*tenth/10)
		memory = append(memory, residentOf(t, c))
		t.Logf("%d records after %s: servers have %d MiB", records*tenth/10, time.Since(begin).Round(time.Second), memory[tenth-1]>>20)
	}
	a.mu.Lock()
	require.Empty(t, a.again)
	a.mu.Unlock()
	require.Eventually(t, func() bool { return countOfKeys(t, c, "Users") == int64(records) }, time.Minute, time.Second, "each object has one record")
	if records >= 500_000 {
		require.Less(t, memory[9], memory[2]+memory[2]/4, "the memory does not grow with the keys")
	}
	resp, err := http.Get(c.Nodes[0].Admin() + "/objects?service=Users&limit=1")
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
}

// residentOf returns the memory of all servers, in bytes.
func residentOf(t *testing.T, c *harness.Cluster) (sum int) {
	t.Helper()
	for _, n := range c.Nodes {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.Process.PID()))
		if err != nil {
			t.Skip("SKIPPED: the memory is read from /proc")
		}
		_, rest, _ := strings.Cut(string(text), "VmRSS:")
		kilobytes := 0
		_, err = fmt.Sscan(rest, &kilobytes)
		require.NoError(t, err)
		sum += kilobytes << 10
	}
	return sum
}
