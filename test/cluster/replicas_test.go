package cluster

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/partition/store"
	"platform/test/harness"
)

// TestLongLivedWorkUnderSustainedWrites keeps calls waiting under write load while every
// node is restarted gracefully, a wiped node fetches large replicas, and a modified
// replica is detected. Replicas are compared throughout.
func TestLongLivedWorkUnderSustainedWrites(t *testing.T) {
	megabytes := intSetting(t, "CLUSTER_STATE_MB", 120)
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(10+megabytes/50)*time.Minute)
	defer cancel()
	b := newLargeTestbed(ctx, t, megabytes)
	calls := b.startLongCalls(ctx, t, 16)
	run := b.startLoad(t, false)

	for i := range b.Nodes {
		require.NoError(t, b.restartGracefully(ctx, i))
		b.targets.MarkHealthy(i)
	}
	b.awaitDigestRounds(ctx, t, 3)

	begin := time.Now()
	require.NoError(t, b.restartAfter(ctx, 2, b.Nodes[2].Wipe))
	require.NoError(t, b.AwaitReplicated(ctx, 5*time.Minute), "the wiped node did not catch up under load")
	b.targets.MarkHealthy(2)
	t.Logf("a wiped node had all replicas again after %s", time.Since(begin).Round(time.Second))
	b.awaitDigestRounds(ctx, t, 3)
	for i, n := range b.Nodes {
		require.Zero(t, metric(ctx, t, n, "platform_partition_digest_differences_total"), "node %d", i+1)
		require.Zero(t, metric(ctx, t, n, `platform_partition_digest_rounds_total{outcome="differs"}`), "node %d", i+1)
	}

	report := run.Stop(ctx)
	t.Logf("%d requests, gaps %s", report.OK, report.Gaps)
	require.NoError(t, report.Err())

	// Without load: otherwise the node would fall behind the logs, and a snapshot would
	// replace the planted difference.
	const planted = 1
	require.NoError(t, b.restartAfter(ctx, planted, func() error {
		return plantDifference(ctx, filepath.Join(b.Nodes[planted].Data(), b.Nodes[planted].Name(), "state"))
	}))
	b.targets.MarkHealthy(planted)
	run = b.startLoad(t, false)
	begin = time.Now()
	require.Eventually(t, func() bool {
		return metric(ctx, t, b.Nodes[planted], "platform_partition_digest_differences_total") > 0
	}, 5*time.Minute, 100*time.Millisecond, "the planted difference was not detected")
	t.Logf("a planted difference was detected after %s", time.Since(begin).Round(time.Second))
	for i, n := range b.Nodes {
		if i != planted {
			require.Zero(t, metric(ctx, t, n, "platform_partition_digest_differences_total"), "node %d", i+1)
		}
	}

	report = run.Stop(ctx)
	t.Logf("%d requests, gaps %s", report.OK, report.Gaps)
	require.NoError(t, report.Err())
	calls(t)
}

// growingPartitions is the number of partitions of a large testbed.
const growingPartitions = 2

// newLargeTestbed starts a cluster that compares its replicas continuously and truncates
// its logs so often that they do not cover the transfer of a replica, and adds state.
func newLargeTestbed(ctx context.Context, t *testing.T, megabytes int) *testbed {
	binary, err := harness.BuildWithFailpoints("platform/cmd/platform-server")
	require.NoError(t, err)
	b := newTestbed(t, testbedOptions{binary: binary, failpoints: frequentSnapshots + ",digest-pause-ms=20", env: map[string]string{
		"DEFAULT_NUM_PARTITIONS": strconv.Itoa(growingPartitions), "WORKER__DIGEST_INTERVAL": "32",
	}})
	begin := time.Now()
	b.grow(ctx, t, megabytes)
	t.Logf("%d MB of state after %s", megabytes, time.Since(begin).Round(time.Second))
	return b
}

// grow adds state: invocations that are due much later, with incompressible inputs.
func (b *testbed) grow(ctx context.Context, t *testing.T, megabytes int) {
	const size = 256 << 10
	raw := make([]byte, 3*size/4)
	var source rand.ChaCha8
	_, _ = source.Read(raw)
	var wg sync.WaitGroup
	next := make(chan int)
	failed := make(chan error, 8)
	for range cap(failed) {
		wg.Go(func() {
			for i := range next {
				body, err := json.Marshal(strconv.Itoa(i) + base64.StdEncoding.EncodeToString(raw))
				if err == nil {
					err = b.sendLater(ctx, i, body)
				}
				if err != nil {
					failed <- err
					return
				}
			}
		})
	}
	for i := range megabytes * (1 << 20) / size {
		select {
		case next <- i:
		case err := <-failed:
			require.NoError(t, err)
		}
	}
	close(next)
	wg.Wait()
}

func (b *testbed) sendLater(ctx context.Context, i int, body []byte) error {
	client, key := b.Nodes[i%len(b.Nodes)].Client, "later-"+strconv.Itoa(i)
	for {
		resp, err := client.Send(ctx, harness.Path("Counter", key, "add")+"?delay=100h", body, "idempotency-key", key)
		if err == nil && (resp.Status == http.StatusOK || resp.Status == http.StatusAccepted) {
			return nil
		}
		if !harness.Sleep(ctx, 50*time.Millisecond) {
			return errors.Join(err, ctx.Err())
		}
	}
}

// startLongCalls starts calls through the first node that wait until finish resolves
// them and checks the results. Calls are retried while the node restarts.
func (b *testbed) startLongCalls(ctx context.Context, t *testing.T, n int) (finish func(*testing.T)) {
	results := make(chan string, n)
	awakeables := make([]string, n)
	for i := range n {
		name := "lasting-" + strconv.Itoa(i)
		go func() {
			for {
				resp, err := b.Nodes[0].Client.Call(ctx, harness.Path("Waiting", "awakeable"), strconv.AppendQuote(nil, name), "idempotency-key", name)
				if err == nil && resp.Status == http.StatusOK {
					results <- string(resp.Body)
					return
				}
				if !harness.Sleep(ctx, 20*time.Millisecond) {
					results <- ctx.Err().Error()
					return
				}
			}
		}()
		require.Eventually(t, func() bool {
			values := b.results.Values(name)
			if len(values) > 0 {
				awakeables[i] = values[0]
			}
			return len(values) > 0
		}, time.Minute, 10*time.Millisecond)
	}
	return func(t *testing.T) {
		for i, id := range awakeables {
			require.Empty(t, results, "a call completed too early")
			require.Eventually(t, func() bool {
				a, err := b.Nodes[0].Client.Post(ctx, "platform/awakeables/"+id+"/resolve", strconv.AppendQuote(nil, "word-"+strconv.Itoa(i)))
				return err == nil && a.Status == http.StatusAccepted
			}, time.Minute, 100*time.Millisecond)
			require.Contains(t, <-results, "word-"+strconv.Itoa(i))
		}
	}
}

// restartAfter stops a node with SIGTERM, calls whileStopped and restarts the node.
func (b *testbed) restartAfter(ctx context.Context, i int, whileStopped func() error) error {
	b.targets.MarkFaulty(i)
	if err := b.Nodes[i].Stop(); err != nil {
		return err
	}
	b.targets.CancelRequests(i)
	if err := whileStopped(); err != nil {
		return err
	}
	return b.Nodes[i].Restart(ctx)
}

// awaitDigestRounds waits until every partition was compared perPartition times on
// average, with agreement of all voters.
func (b *testbed) awaitDigestRounds(ctx context.Context, t *testing.T, perPartition int) {
	agreedRounds := func() (sum float64) {
		for _, n := range b.Nodes {
			sum += metric(ctx, t, n, `platform_partition_digest_rounds_total{outcome="agreed"}`)
		}
		return sum
	}
	want := agreedRounds() + float64(growingPartitions*perPartition)
	require.Eventually(t, func() bool { return agreedRounds() >= want }, 3*time.Minute, 100*time.Millisecond, "replicas are not compared")
}

// metric returns the sum of a metric's series on a node that have the given labels, 0 if
// the node is unavailable.
func metric(ctx context.Context, t *testing.T, n *harness.Server, name string) (sum float64) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, n.Admin()+"/metrics", nil)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	name, label, _ := strings.Cut(strings.TrimSuffix(name, "}"), "{")
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		line := lines.Text()
		rest, found := strings.CutPrefix(line, name)
		if !found || !strings.HasPrefix(rest, "{") && !strings.HasPrefix(rest, " ") || !strings.Contains(rest, label) {
			continue
		}
		v, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
		require.NoError(t, err, line)
		sum += v
	}
	return sum
}

// plantDifference changes one journal entry, of an invocation that is due much later, in
// the tables of a stopped node.
func plantDifference(ctx context.Context, dir string) (err error) {
	db, err := store.Open(dir, store.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	p, err := db.Partition(0)
	if err != nil {
		return err
	}
	index, term := p.Applied()
	export, err := p.Export()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, export.Close()) }()
	changed, err := p.Import()
	if err != nil {
		return err
	}
	planted := false
	err = export.Each(ctx, func(key, value []byte) error {
		if !planted && store.TableOf(key) == "journal" && len(value) > 100<<10 {
			value = bytes.Clone(value)
			value[len(value)/2] ^= 1
			planted = true
		}
		return changed.Put(key, value)
	})
	if err == nil && !planted {
		err = errors.New("no row to change")
	}
	if err != nil {
		return errors.Join(err, changed.Abort())
	}
	return changed.Commit(ctx, index, term)
}
