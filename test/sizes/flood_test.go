package sizes

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/test/harness"
)

// A flood is floodConnections connections with floodStreams concurrent requests each,
// whose bodies are between smallestFlood and largestFlood.
const (
	floodConnections = 10
	floodStreams     = 25
	smallestFlood    = 31 * mebi
	largestFlood     = 32 * mebi

	// floodEnds is how long after the last request all must have a response. A loaded machine
	// takes a minute for what is in progress then.
	floodEnds = 5 * time.Minute
	// smallCallTime bounds the median of small calls during a flood; on a loaded machine it is
	// a fifth of a second.
	smallCallTime = 5 * time.Second
)

// zeros is a body that takes no memory.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// flood sends requests with large bodies to one node and counts the outcomes.
type flood struct {
	t    *testing.T
	base string
	path string

	accepted, refused atomic.Int64
}

// run has every stream send one request, and then others for the given time. A refused
// request is sent again after the time that the response states.
func (f *flood) run(during time.Duration) {
	ctx, cancel := context.WithTimeout(f.t.Context(), during)
	defer cancel()
	var g sync.WaitGroup
	for c := range floodConnections {
		transport := &http.Transport{Protocols: new(http.Protocols), DisableCompression: true}
		transport.Protocols.SetUnencryptedHTTP2(true)
		client := &http.Client{Transport: transport}
		for s := range floodStreams {
			g.Go(func() {
				// Every request has a response some time after the last one was sent.
				responses, cancel := context.WithTimeout(f.t.Context(), during+floodEnds)
				defer cancel()
				size := smallestFlood + (c*floodStreams+s)*(largestFlood-smallestFlood)/(floodConnections*floodStreams)
				for {
					wait := f.post(responses, client, int64(size))
					if ctx.Err() != nil || !harness.Sleep(ctx, wait) {
						return
					}
				}
			})
		}
		defer transport.CloseIdleConnections()
	}
	g.Wait()
}

// post sends one body and returns how long to wait before the next one.
func (f *flood) post(ctx context.Context, client *http.Client, size int64) time.Duration {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.base+"/platform/call/"+f.path, io.LimitReader(zeros{}, size))
	if err != nil {
		f.t.Error(err)
		return 0
	}
	req.ContentLength = size
	req.Header.Set("content-type", "application/octet-stream")
	resp, err := client.Do(req)
	if err != nil {
		f.t.Errorf("body of %d bytes: %v", size, err)
		return time.Second
	}
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	switch resp.StatusCode {
	case http.StatusOK:
		if err != nil || f.path == "Big/echo" && n != size {
			f.t.Errorf("response to %d bytes: %d bytes, %v", size, n, err)
		}
		f.accepted.Add(1)
		return 0
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		f.refused.Add(1)
	default:
		f.t.Errorf("body of %d bytes: status %d", size, resp.StatusCode)
	}
	if resp.Header.Get("x-platform-id") != "" {
		return time.Second // the outcome is unknown, so the response does not ask for a retry
	}
	seconds, err := strconv.Atoi(resp.Header.Get("retry-after"))
	if err != nil || seconds < 1 || seconds > 30 {
		f.t.Errorf("status %d with retry-after %q", resp.StatusCode, resp.Header.Get("retry-after"))
		return time.Second
	}
	return time.Duration(seconds) * time.Second
}

// neighbors call a small handler, one call after the other each.
type neighbors struct {
	mu   sync.Mutex // covers took
	took []time.Duration
}

// run calls until ctx ends, and at least until each has made least calls.
func (c *neighbors) run(ctx context.Context, b *testbed, node *harness.Server, count, least int) {
	var g sync.WaitGroup
	body := make([]byte, 100)
	for range count {
		g.Go(func() {
			for n := 0; n < least || ctx.Err() == nil; {
				begin := time.Now()
				resp, err := node.Client.Call(b.t.Context(), "Echo/echo", body, "content-type", "application/octet-stream")
				if err != nil || resp.Status != http.StatusOK && resp.ID() == "" {
					b.t.Errorf("small call: %v, %d %.200s", err, resp.Status, resp.Body)
					return
				}
				if resp.Status != http.StatusOK { // the leader changed, as happens on a slow machine
					harness.Sleep(b.t.Context(), 50*time.Millisecond)
					continue
				}
				c.mu.Lock()
				c.took = append(c.took, time.Since(begin))
				n++
				c.mu.Unlock()
			}
		})
	}
	g.Wait()
}

// quantile returns a quantile of the times.
func (c *neighbors) quantile(q float64) time.Duration {
	slices.Sort(c.took)
	return c.took[min(len(c.took)-1, int(q*float64(len(c.took))))].Round(10 * time.Microsecond)
}

func (c *neighbors) String() string {
	return fmt.Sprintf("%d calls, p50 %v, p99 %v, maximum %v", len(c.took), c.quantile(0.5), c.quantile(0.99), c.quantile(1))
}

// A flood of large bodies exceeds the memory that a node has for bodies by far. What finds
// no memory is refused with the time to wait, everything gets a response in time, even if
// that is as large, and small calls succeed meanwhile.
func TestFloodOfLargeBodies(t *testing.T) {
	nodes, paths, long := []int{1}, []string{"Big/size", "Big/echo"}, os.Getenv("SIZES_LONG") != ""
	if long {
		nodes = []int{1, 3}
	}
	for _, count := range nodes {
		for _, path := range paths {
			t.Run(fmt.Sprintf("%s on %d", path[len("Big/"):], count), func(t *testing.T) {
				b := &testbed{t: t, Cluster: harness.ClusterFor(t, harness.ClusterOptions{Nodes: count, Placement: limitMemory})}
				require.NoError(t, b.Nodes[0].Register(t.Context(), services(t), false))
				b.bigFor()
				b.flood(path, long)
			})
		}
	}
}

func (b *testbed) flood(path string, long bool) {
	quiet, during := 0*time.Second, 0*time.Second
	if long {
		quiet, during = 10*time.Second, 30*time.Second
	}
	const callers, least = 4, 50
	before, meanwhile := new(neighbors), new(neighbors)
	ctx, cancel := context.WithTimeout(b.t.Context(), quiet)
	before.run(ctx, b, b.Nodes[0], callers, least)
	cancel()

	f := &flood{t: b.t, base: b.Nodes[0].Client.Base(), path: path}
	flooding, ended := context.WithCancel(b.t.Context())
	var g sync.WaitGroup
	g.Go(func() {
		defer ended()
		f.run(during)
	})
	meanwhile.run(flooding, b, b.Nodes[0], callers, least)
	g.Wait()
	b.t.Logf("before: %v", before)
	b.t.Logf("during: %v", meanwhile)
	b.t.Logf("flood: %d accepted, %d refused", f.accepted.Load(), f.refused.Load())
	require.Positive(b.t, f.accepted.Load())
	require.Positive(b.t, f.refused.Load())
	require.Less(b.t, meanwhile.quantile(0.5), smallCallTime, "small calls during the flood")
	b.requireMemory()
}
