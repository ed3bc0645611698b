package kafka

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"platform/internal/ids"
	"platform/test/harness"
)

// readStatus is what a subscription with one topic partition reports.
type readStatus struct {
	State      string
	LagRecords *int64 `json:"lag_records"`
	Partitions []struct {
		Node     ids.Node
		Position int64
		Skipped  int
		Blocked  *struct{ Offset int64 } `json:"blocked_record"`
	}
}

// statusOn returns the status of a subscription that a node reports. ok is false while it reports no
// reading node.
func statusOn(n *harness.Server, path string) (st readStatus, ok bool) {
	resp, err := http.Get(n.Admin() + path)
	if err != nil {
		return st, false
	}
	defer resp.Body.Close()
	return st, json.NewDecoder(resp.Body).Decode(&st) == nil && len(st.Partitions) == 1 && st.Partitions[0].Node != 0
}

// killReader kills the node that reads the topic partition while another node handles a request. It
// returns both nodes and the status of the response, 0 without a response.
func killReader(t *testing.T, c *harness.Cluster, nodes []ids.Node, path, request string, body any) (killed, other *harness.Server, status int) {
	t.Helper()
	var st readStatus
	require.Eventually(t, func() (ok bool) {
		st, ok = statusOn(c.Nodes[0], path)
		return ok
	}, time.Minute, 50*time.Millisecond, "a node reads")
	at := slices.Index(nodes, st.Partitions[0].Node)
	require.GreaterOrEqual(t, at, 0)
	killed, other = c.Nodes[at], c.Nodes[(at+1)%len(c.Nodes)]
	answered := make(chan int, 1)
	go func() { answered <- postTo(other, path+request, body) }()
	killed.Kill()
	return killed, other, <-answered
}

// postTo sends a request to a node and returns the status of the response; 0: there was none.
func postTo(n *harness.Server, path string, body any) int {
	text, err := json.Marshal(body)
	if err != nil {
		return 0
	}
	resp, err := http.Post(n.Admin()+path, "application/json", bytes.NewReader(text))
	if err != nil {
		return 0
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// TestKillsDuringSkipsAndSeeks kills the node that reads a topic partition while operators skip its
// blocked record, and while they seek. A skip is in effect once, and leaves out only its record; after
// a seek, each record from its position on is delivered again, once for each request that may have
// been carried out.
func TestKillsDuringSkipsAndSeeks(t *testing.T) {
	rounds := 1 + setting(t, "KAFKA_KILLS", 0)/5
	o := startOperated(t)
	for round := range rounds {
		o.skipWhileKilled(round)
	}
	require.Equal(t, 2*rounds, o.ledger.count())
	require.Empty(t, o.ledger.doubled)

	o.produce("a", "b", "c")
	from, requests := o.end-3, 1 // the records were delivered once before
	for round := range rounds {
		requests += o.seekWhileKilled(round, from)
	}
	o.awaitRedelivery(from, rounds, requests)
}

// operated is a cluster of three nodes that delivers the records of a topic with one partition.
type operated struct {
	t       *testing.T
	brokers *brokers
	cluster *harness.Cluster
	nodes   []ids.Node
	ledger  *ledger
	path    string // of the subscription
	end     int64  // offset of the next record
}

func startOperated(t *testing.T) *operated {
	o := &operated{t: t, brokers: startBrokers(t, 1)}
	o.brokers.topic("orders", 1)
	l, uri := startService(t)
	l.distinct = map[recordID]map[string]bool{}
	o.ledger = l
	c := harness.ClusterFor(t, harness.ClusterOptions{Nodes: 3})
	o.cluster = c
	require.NoError(t, c.AwaitReplicated(t.Context(), time.Minute)) // the loss of a node stops no partition
	require.NoError(t, c.Nodes[0].Register(t.Context(), uri, false))
	post(t, c, "/kafka-clusters", map[string]any{"name": "main", "properties": map[string]string{"bootstrap.servers": o.brokers.list()}})
	sub := post(t, c, "/subscriptions?check=true", map[string]any{"source": "kafka://main/orders", "sink": "service://Orders/add"})
	o.path = fmt.Sprintf("/subscriptions/%v", sub["id"])
	for _, n := range c.Nodes {
		o.nodes = append(o.nodes, idOf(t, c.Nodes[0], n.Name()))
	}
	return o
}

// produce appends records with these keys. One without a key blocks the topic partition.
func (o *operated) produce(keys ...string) {
	for _, key := range keys {
		rec := &kgo.Record{Topic: "orders", Value: []byte(`{}`)}
		if key != "" {
			rec.Key = []byte(key)
		}
		require.NoError(o.t, o.brokers.client.ProduceSync(o.t.Context(), rec).FirstErr())
		o.end++
	}
}

// await waits until a node reports a status of the subscription.
func (o *operated) await(n *harness.Server, what string, want func(*readStatus) bool) {
	o.t.Helper()
	var st readStatus
	require.Eventually(o.t, func() (ok bool) {
		st, ok = statusOn(n, o.path)
		return ok && want(&st)
	}, 2*time.Minute, 50*time.Millisecond, "%s: %+v", what, &st)
}

// readAll reports whether all records are delivered.
func (o *operated) readAll(st *readStatus) bool {
	return st.State == "running" && st.Partitions[0].Position == o.end && st.LagRecords != nil && *st.LagRecords == 0
}

// accepted are the statuses of a request during which a node is killed; 0: it had no response.
var accepted = []int{0, http.StatusOK, http.StatusAccepted, http.StatusConflict, http.StatusServiceUnavailable}

// skipWhileKilled skips a record that blocks, while the node that reads is killed.
func (o *operated) skipWhileKilled(round int) {
	t, c := o.t, o.cluster
	o.produce("a", "", "a")
	poison := o.end - 2
	blocks := func(st *readStatus) bool {
		return st.State == "blocked" && st.Partitions[0].Blocked != nil && st.Partitions[0].Blocked.Offset == poison
	}
	o.await(c.Nodes[0], "it is blocked", blocks)
	skip := fmt.Sprintf("/records/orders/0/%d/skip", poison)
	killed, other, status := killReader(t, c, o.nodes, o.path, skip, nil)
	require.Contains(t, accepted, status)
	t.Logf("round %d: skip while %s was killed: status %d", round, killed.Name(), status)
	o.await(other, "it is skipped", func(st *readStatus) bool {
		if blocks(st) {
			status = postTo(other, o.path+skip, nil)
		}
		return o.readAll(st)
	})
	require.Contains(t, accepted, status)
	o.restart(killed)
	o.await(c.Nodes[0], "the skip is counted once", func(st *readStatus) bool { return st.Partitions[0].Skipped == round+1 })
}

// seekWhileKilled seeks to an offset while the node that reads is killed, again until the request is
// accepted. It returns the number of requests, each of which may have been carried out.
func (o *operated) seekWhileKilled(round int, from int64) (requests int) {
	t, c := o.t, o.cluster
	o.produce("a")
	o.await(c.Nodes[0], "all are read", o.readAll)
	body := map[string]any{"start": map[string]any{"offsets": map[string]int64{"0": from}}}
	const seek = "/seek?restart=true"
	killed, other, status := killReader(t, c, o.nodes, o.path, seek, body)
	t.Logf("round %d: seek while %s was killed: status %d", round, killed.Name(), status)
	requests = 1
	require.Eventually(t, func() bool {
		if require.Contains(t, accepted, status); status == http.StatusOK {
			return true
		}
		status = postTo(other, o.path+seek, body)
		requests++
		return false
	}, time.Minute, 100*time.Millisecond, "the seek is accepted")
	o.restart(killed)
	return requests
}

// restart starts a node that was killed, and waits until the loss of another one is survived.
func (o *operated) restart(killed *harness.Server) {
	restart(o.t, killed)
	require.NoError(o.t, o.cluster.AwaitReplicated(o.t.Context(), time.Minute))
}

// awaitRedelivery waits until the records from an offset on are delivered once more for each
// successful seek, and requires that none is delivered more often than there were requests.
func (o *operated) awaitRedelivery(from int64, seeks, requests int) {
	t := o.t
	fewest := func(i int) int { return seeks + 1 - max(0, i-3) } // each seek follows another record
	require.Eventually(t, func() bool {
		for i := range int(o.end - from) {
			if o.ledger.times(recordID{"orders", 0, from + int64(i)}) < fewest(i) {
				return false
			}
		}
		return true
	}, 2*time.Minute, 50*time.Millisecond, "all are delivered again")
	o.await(o.cluster.Nodes[0], "all are read again", o.readAll)
	for i := range o.end {
		if times := o.ledger.times(recordID{"orders", 0, i}); i < from {
			require.LessOrEqual(t, times, 1, "offset %d", i) // none for those that were skipped
		} else {
			require.LessOrEqual(t, times, requests, "offset %d", i)
		}
	}
}

// times returns how many invocations were made of a record.
func (l *ledger) times(id recordID) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.distinct[id])
}
