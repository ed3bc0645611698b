package observability

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	restate "github.com/restatedev/sdk-go"
	"github.com/restatedev/sdk-go/server"
	"github.com/stretchr/testify/require"

	"platform/test/harness"
)

// slowDisk may fire without its fault, on a machine that is busy with other tests.
const slowDisk = "PlatformSlowDisk"

const partitions = 4 // of the cluster

// faults are the handlers of services with different faults.
type faults struct {
	failing atomic.Bool   // attempts of Flaky fail
	held    chan struct{} // ends the invocations of Busy and the silence of Silent
}

// serve serves them. The endpoint of Silent responds to attempts with no headers.
func (f *faults) serve(t *testing.T) (uri string) {
	quick := restate.WithInvocationRetryPolicy(restate.WithInitialRetryInterval(50*time.Millisecond), restate.WithMaxRetryInterval(50*time.Millisecond))
	busy := func(restate.Context, restate.Void) (restate.Void, error) {
		<-f.held
		return restate.Void{}, nil
	}
	handler, err := server.NewRestate().WithLogger(slog.DiscardHandler, false).
		Bind(restate.NewService("Refuse").Handler("run", restate.NewServiceHandler(func(restate.Context, restate.Void) (restate.Void, error) {
			return restate.Void{}, restate.ToTerminalError(errors.New("refused"))
		}))).
		Bind(restate.NewService("Flaky", quick).Handler("run", restate.NewServiceHandler(func(restate.Context, restate.Void) (restate.Void, error) {
			if f.failing.Load() {
				return restate.Void{}, errors.New("not yet")
			}
			return restate.Void{}, nil
		}))).
		Bind(restate.NewService("Pausing", restate.WithInvocationRetryPolicy(restate.WithMaxRetryAttempts(1), restate.PauseOnMaxAttempts())).Handler("run", restate.NewServiceHandler(func(restate.Context, restate.Void) (restate.Void, error) {
			return restate.Void{}, errors.New("never")
		}))).
		Bind(restate.NewService("Busy").Handler("run", restate.NewServiceHandler(busy))).
		Bind(restate.NewService("Silent").Handler("run", restate.NewServiceHandler(busy))).
		Bind(restate.NewService("Echo").Handler("run", restate.NewServiceHandler(func(_ restate.Context, in []byte) (int, error) { return len(in), nil }))).
		Handler()
	require.NoError(t, err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	web := &http.Server{Protocols: new(http.Protocols), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/invoke/Silent/") {
			select {
			case <-f.held:
			case <-r.Context().Done():
				return
			}
		}
		handler(w, r)
	})}
	web.Protocols.SetUnencryptedHTTP2(true)
	go func() { _ = web.Serve(ln) }()
	t.Cleanup(func() { _ = web.Close() })
	return "http://" + ln.Addr().String()
}

// laboratory is a Prometheus with the alert rules, which scrapes a cluster of three nodes and a
// single node.
type laboratory struct {
	*testing.T
	base  string
	three *harness.Cluster
	solo  *harness.Server
	fired map[string]bool
}

// shortened are the alert rules, with the thresholds of operation, that fire after a second and for
// invocations that have waited a second.
func shortened(t *testing.T) (path string) {
	raw, err := os.ReadFile(alerts)
	require.NoError(t, err)
	text := regexp.MustCompile(`(?m)^( +for:) \w+$`).ReplaceAllString(string(raw), "$1 1s")
	const age = "(platform_invoker_waiting_age_seconds) > 60"
	require.Contains(t, text, age)
	text = strings.Replace(text, age, strings.Replace(age, "60", "1", 1), 1)
	path = filepath.Join(t.TempDir(), "alerts.yml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// newLaboratory starts the cluster, the single node and Prometheus.
func newLaboratory(t *testing.T, program string) *laboratory {
	l := &laboratory{T: t, fired: map[string]bool{}}
	l.three = harness.ClusterFor(t, harness.ClusterOptions{Nodes: 3, Env: map[string]string{"DEFAULT_NUM_PARTITIONS": strconv.Itoa(partitions)}})
	require.NoError(t, l.three.AwaitReplicated(t.Context(), time.Minute))

	target, err := harness.TargetUnderTest()
	require.NoError(t, err)
	l.solo, err = harness.StartServer(t.Context(), target, harness.ServerOptions{Dir: t.TempDir(), Env: map[string]string{
		"CLUSTER_NAME": "solo", "DEFAULT_NUM_PARTITIONS": "1",
		"WORKER__INVOKER__NO_RESPONSE_WARNING": "3s", "WORKER__INVOKER__CONCURRENT_INVOCATIONS_LIMIT_PER_SERVICE": "4",
		"NETWORKING__MESSAGE_SIZE_LIMIT": "1MiB", "NETWORKING__CONNECTION_BODY_MEMORY_LIMIT": "1MiB", "NETWORKING__BODY_MEMORY_LIMIT": "1MiB",
	}})
	if l.solo != nil && l.solo.Process != nil {
		t.Cleanup(func() {
			if err := l.solo.Stop(); err != nil {
				t.Error(err)
			}
			if t.Failed() {
				t.Logf("log of the single node:\n%s", l.solo.Process.LogTail(60))
			}
		})
	}
	require.NoError(t, err)
	l.base = startPrometheus(t, program, shortened(t), append(slices.Clone(l.three.Nodes), l.solo)...)
	return l
}

// get returns the result of a request to Prometheus.
func (l *laboratory) get(path string, result any) {
	resp, err := http.Get(l.base + path)
	require.NoError(l, err)
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	require.NoError(l, err)
	require.Equal(l, http.StatusOK, resp.StatusCode, "%s: %s", path, raw)
	require.NoError(l, json.Unmarshal(raw, &struct{ Data any }{result}))
}

// firing returns the alerts that fire for the single node, or for the cluster.
func (l *laboratory) firing(solo bool) []string { return l.alerts(solo, "firing") }

// alerts returns those in one of the states.
func (l *laboratory) alerts(solo bool, states ...string) (names []string) {
	var found struct {
		Alerts []struct {
			State  string
			Labels map[string]string
		}
	}
	l.get("/api/v1/alerts", &found)
	for _, a := range found.Alerts {
		of := a.Labels["cluster_name"] == "solo"
		if name := a.Labels["alertname"]; slices.Contains(states, a.State) && of == solo && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// fire waits until alerts that earlier faults caused have stopped firing, then repeats a step until all
// of them fire. A fault that persists is caused by the first step, not before: its alerts would not stop.
func (l *laboratory) fire(solo bool, step func(), names ...string) {
	l.Helper()
	for _, name := range names {
		l.await(func() bool { return !slices.Contains(l.firing(solo), name) }, "%s fires before its fault", name)
		l.fired[name] = true
	}
	begin := time.Now()
	l.await(func() bool {
		step()
		firing := l.firing(solo)
		names = slices.DeleteFunc(names, func(name string) bool {
			if !slices.Contains(firing, name) {
				return false
			}
			l.Logf("%s fired after %s", name, time.Since(begin).Round(100*time.Millisecond))
			return true
		})
		return len(names) == 0
	}, "%v do not fire", names)
}

func (l *laboratory) await(condition func() bool, message string, arguments ...any) {
	l.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for !condition() {
		require.True(l, time.Now().Before(deadline), append([]any{message}, arguments...)...)
		harness.Sleep(l.Context(), 100*time.Millisecond)
	}
}

// scraped waits until Prometheus has read the metrics of the single node again.
func (l *laboratory) scraped() {
	since := time.Now()
	l.await(func() bool {
		var found struct{ Result []struct{ Value [2]any } }
		l.get("/api/v1/query?query="+url.QueryEscape(`timestamp(platform_node_ready{cluster_name="solo"})`), &found)
		if len(found.Result) != 1 {
			return false
		}
		at, err := strconv.ParseFloat(found.Result[0].Value[1].(string), 64)
		require.NoError(l, err)
		return at > float64(since.UnixNano())/1e9
	}, "the single node is not scraped")
}

// call calls a handler of the single node, which may fail.
func (l *laboratory) call(path string) {
	_, err := l.solo.Client.Call(l.Context(), path, nil)
	require.NoError(l, err)
}

// send sends an invocation to the single node.
func (l *laboratory) send(path string) {
	r, err := l.solo.Client.Send(l.Context(), path, nil)
	require.NoError(l, err)
	require.Equal(l, http.StatusAccepted, r.Status, "%s", r.Body)
}

// holdBody sends most of the body of a request, and the rest never, while f runs.
func (l *laboratory) holdBody(f func()) {
	conn, err := net.Dial("tcp", strings.TrimPrefix(l.solo.Client.Base(), "http://"))
	require.NoError(l, err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "POST /Echo/run HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\nContent-Length: %d\r\n\r\n", 1000<<10)
	require.NoError(l, err)
	_, err = conn.Write(make([]byte, 900<<10))
	require.NoError(l, err)
	f()
}

// TestAlertsFire provokes the fault of each alert in servers that a real Prometheus scrapes.
func TestAlertsFire(t *testing.T) {
	l := newLaboratory(t, installed(t, "prometheus"))
	f := &faults{held: make(chan struct{})}
	uri := f.serve(t)
	for _, n := range []*harness.Server{l.solo, l.three.Nodes[0]} {
		require.NoError(t, n.Register(t.Context(), uri, false))
	}
	l.scraped()
	l.scraped()
	for _, solo := range []bool{true, false} { // elections of the start are before the first scrape
		l.await(func() bool {
			return !slices.ContainsFunc(l.firing(solo), func(name string) bool { return name != slowDisk })
		}, "alerts fire without a fault")
	}
	l.faultOfTheDisk()
	l.faultsOfInvocations(f)
	l.faultsOfClients()
	l.faultOfASubscription()
	l.faultsOfTheNode()
	l.faultsOfTheCluster()
	raw, err := os.ReadFile(alerts)
	require.NoError(t, err)
	for _, m := range alertName.FindAllStringSubmatch(string(raw), -1) {
		require.True(t, l.fired[m[1]], m[1])
	}
}

func (l *laboratory) faultsOfInvocations(f *faults) {
	l.fire(true, func() { l.call("Refuse/run") }, "PlatformInvocationsFail")
	l.fire(true, sync.OnceFunc(func() {
		f.failing.Store(true)
		l.send("Flaky/run")
	}), "PlatformAttemptsFail")
	f.failing.Store(false)
	l.fire(true, sync.OnceFunc(func() { l.send("Pausing/run") }), "PlatformInvocationsPaused")
	l.fire(true, sync.OnceFunc(func() { l.send("Silent/run") }), "PlatformSilentEndpoints")
	l.fire(true, sync.OnceFunc(func() {
		for range 120 {
			l.send("Busy/run")
		}
	}), "PlatformInvocationsWait", "PlatformInvocationsWaitLong")
	close(f.held)
}

func (l *laboratory) faultsOfClients() {
	request, err := http.NewRequestWithContext(l.Context(), http.MethodGet, l.solo.Admin()+"/services", nil)
	require.NoError(l, err)
	request.Header.Set("Authorization", "Bearer none")
	l.fire(true, func() {
		for range 50 {
			resp, err := http.DefaultClient.Do(request)
			require.NoError(l, err)
			_ = resp.Body.Close()
		}
	}, "PlatformAuthenticationFailures")
	l.holdBody(func() {
		l.fire(true, func() {
			_, err := l.solo.Client.Call(l.Context(), "Echo/run", make([]byte, 900<<10), "content-type", "application/octet-stream")
			require.NoError(l, err)
		}, "PlatformBodyMemoryExhausted")
	})
}

// create creates something at the admin port of the single node.
func (l *laboratory) create(path, body string) {
	resp, err := http.Post(l.solo.Admin()+path, "application/json", strings.NewReader(body))
	require.NoError(l, err)
	require.NoError(l, resp.Body.Close())
	require.Equal(l, http.StatusCreated, resp.StatusCode, path)
}

func (l *laboratory) faultOfASubscription() {
	l.fire(true, sync.OnceFunc(func() {
		l.create("/kafka-clusters", `{"name": "down", "properties": {"bootstrap.servers": "127.0.0.1:1"}}`)
		l.create("/subscriptions", `{"source": "kafka://down/orders", "sink": "service://Echo/run"}`)
	}), "PlatformSubscriptionStopped")
}

func (l *laboratory) faultsOfTheNode() {
	l.fire(true, sync.OnceFunc(func() {
		l.solo.Client.Close()
		require.NoError(l, l.solo.Process.Terminate(time.Minute))
		require.NoError(l, os.RemoveAll(filepath.Join(l.solo.Data(), l.solo.Name(), "log")))
		require.NoError(l, l.solo.Launch())
	}), "PlatformReplicaQuarantined")
}

var leads = regexp.MustCompile(`(?m)^platform_num_active_partition_leaders\{.*\} (\d+)$`)

// leads returns how many partitions a node leads.
func (l *laboratory) leads(n *harness.Server) int {
	found := leads.FindStringSubmatch(read(l, n, "/metrics"))
	require.NotNil(l, found)
	count, err := strconv.Atoi(found[1])
	require.NoError(l, err)
	return count
}

// faultsOfTheCluster lets leaders hang one after the other, kills one node of three, and then another one.
func (l *laboratory) faultsOfTheCluster() {
	i := 0
	l.fire(false, func() {
		hung := l.three.Nodes[i%3]
		others := []*harness.Server{l.three.Nodes[(i+1)%3], l.three.Nodes[(i+2)%3]}
		i++
		require.NoError(l, hung.Process.Signal(syscall.SIGSTOP))
		l.await(func() bool { return l.leads(others[0])+l.leads(others[1]) == partitions }, "%s is not replaced", hung.Name())
		require.NoError(l, hung.Process.Signal(syscall.SIGCONT))
		require.NoError(l, l.three.AwaitReplicated(l.Context(), time.Minute))
	}, "PlatformElections")
	l.fire(false, sync.OnceFunc(l.three.Nodes[2].Kill), "PlatformNodeDown", "PlatformNodeNotScraped", "PlatformNoLossSurvived", "PlatformReplicasBehind")
	kill := sync.OnceFunc(l.three.Nodes[1].Kill)
	l.fire(false, func() {
		kill()
		ctx, cancel := context.WithTimeout(l.Context(), time.Minute)
		defer cancel()
		r, err := l.three.Nodes[0].Client.Call(ctx, "Refuse/run", nil)
		require.NoError(l, err)
		require.Equal(l, http.StatusServiceUnavailable, r.Status, "%s", r.Body)
	}, "PlatformNodeNotReady", "PlatformPartitionWithoutLeader", "PlatformRequestsFail")
}
