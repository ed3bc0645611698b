package crafted

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
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
	"github.com/stretchr/testify/require"

	"platform/test/harness"
)

const (
	// requests is the number of requests to each listener; CRAFTED sets another one.
	requests = 500
	// hangTime is the time after which a connection whose client has sent everything counts as hanging.
	hangTime = time.Minute
	senders  = 8 // of each listener
	// maxMemory bounds the resident memory of the server, in bytes.
	maxMemory = 1 << 30
	// maxLog bounds what the requests add to the log of the server, in bytes, however many they are,
	// and logRate what each second adds.
	maxLog  = 4 << 10
	logRate = 64
)

func TestMain(m *testing.M) {
	code := m.Run()
	harness.Cleanup()
	os.Exit(code)
}

func fromEnv(name string, fallback int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return fallback
}

// disruptive are the operations that may change what other callers get when they succeed.
var disruptive = regexp.MustCompile(`/cluster/(nodes|partitions|log-levels|config|provision|authority)|/deployments/|/services/\{service\}$|/jobs|/logout|batch_operations|/invocations/\{`)

// operations are the operations of an OpenAPI document, with examples of bodies.
func operations(t *testing.T, s *harness.Server) (methods, paths []string) {
	var document struct{ Paths map[string]map[string]any }
	require.NoError(t, json.Unmarshal(get(t, s.Admin()+"/openapi"), &document))
	for path, operations := range document.Paths {
		for method := range operations {
			if method != "parameters" && (method == "get" || !disruptive.MatchString(path)) {
				methods, paths = append(methods, strings.ToUpper(method)), append(paths, path)
			}
		}
	}
	slices.Sort(paths)
	slices.Sort(methods)
	require.Greater(t, len(paths), 60)
	return methods, paths
}

var adminBodies = []string{
	`{"query":"select * from sys_invocation where id = 'inv_1' limit 3"}`, `{"query":"select count(*) from state s join sys_journal j on 1 group by 1 order by 2","with_stats":true}`,
	`{"uri":"http://127.0.0.1:1/","additional_headers":{"a":"b"},"force":true}`, `{"arn":"arn:aws:lambda:eu-west-1:123456789012:function:f:1"}`, `{"name":"x","roles":["viewer"],"expires_in":"1s"}`,
	`{"rules":[{"pattern":"*/a","concurrency":3,"rate":"10/s"}]}`, `{"source":"kafka://main/t","sink":"service://Counter/add","options":{"group.id":"g"}}`, `{"name":"main","properties":{"bootstrap.servers":"127.0.0.1:1"}}`,
	`{"object_key":"k","new_state":{"a":[1,2,3]},"version":"x"}`, `{"muted":true,"note":"n"}`, `{"id_token":"e30.e30."}`, `{}`, `[]`, `null`, `"text"`, ``,
}

var ingressPaths = []string{
	"/Counter/{key}/add", "/Counter/{key}/add/send", "/platform/call/Counter/{key}/add", "/platform/send/Counter/{key}/add", "/platform/scope/{scope}/call/Counter/{key}/add", "/platform/attach/{id}", "/platform/output/{id}",
	"/restate/invocation/{id}/attach", "/restate/invocation/Counter/{key}/add/{idempotency}/output", "/restate/workflow/Order/{key}/attach", "/platform/awakeables/{id}/resolve", "/restate/awakeables/{id}/reject",
	"/platform/signals/{id}/{name}/resolve", "/platform/lookup", "/platform/health", "/restate/health", "/openapi/Counter", "/health", "/{anything}",
}

var ingressBodies = []string{`1`, `"text"`, `{"a":1}`, ``, `{"target":{"service":"Counter","key":"a","handler":"add"}}`, `{"target":"workflow","workflowName":"Order","workflowKey":"o"}`}

// listener is one that is attacked.
type listener struct {
	name, address string
	requests      func(seed uint64) *generator
}

func listeners(t *testing.T, s *harness.Server) []listener {
	methods, paths := operations(t, s)
	raw, err := os.ReadFile(filepath.Join(s.Data(), s.Name(), "IDENTITY"))
	require.NoError(t, err)
	var id struct{ Incarnation string }
	require.NoError(t, json.Unmarshal(raw, &id))
	sum := sha256.Sum256([]byte(s.Name() + "\x00" + id.Incarnation))
	identity := [16]byte(sum[:16])
	identity[0] = 0xfd
	host := func(url string) string { return strings.TrimPrefix(url, "http://") }
	return []listener{
		{"admin", host(s.Admin()), func(seed uint64) *generator {
			g := newGenerator(seed)
			g.methods, g.paths, g.bodies = methods, paths, adminBodies
			return g
		}},
		{"ingress", host(s.Client.Base()), func(seed uint64) *generator {
			g := newGenerator(seed)
			g.methods, g.paths, g.bodies = []string{"GET", "POST", "PUT", "DELETE", "OPTIONS"}, ingressPaths, ingressBodies
			return g
		}},
		{"node", s.NodeAddress(), func(seed uint64) *generator {
			g := newGenerator(seed)
			g.methods, g.paths, g.bodies = []string{"GET", "POST", "HEAD"}, []string{"/metrics", "/health", "/debug/pprof/", "/debug/pprof/{profile}", "/cluster/provision", "/{anything}"}, []string{"", `{}`, `{"num_partitions":4}`}
			g.node, g.identity = true, identity
			return g
		}},
	}
}

// outcome is how a connection ended.
type outcome int

const (
	answered outcome = iota
	closed
	hanging
	failed // the response is an internal error
)

var internalError = regexp.MustCompile(`HTTP/1\.[01] 500|"message":"internal error`)

// exchange sends a request on a connection of its own and reads until the server closes it.
func exchange(ctx context.Context, address string, request []byte, abort bool) (outcome, []byte, error) {
	var d net.Dialer
	raw, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return hanging, nil, fmt.Errorf("the server accepts no connection: %w", err)
	}
	conn := raw.(*net.TCPConn)
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(hangTime)); err != nil {
		return hanging, nil, err
	}
	_, writeErr := conn.Write(request)
	if abort {
		return closed, nil, conn.SetLinger(0) // resets the connection
	}
	_ = conn.CloseWrite()
	response, err := io.ReadAll(io.LimitReader(conn, 1<<20))
	switch {
	case errors.Is(writeErr, os.ErrDeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return hanging, response, nil
	case internalError.Match(response):
		return failed, response, nil
	case len(response) > 0:
		return answered, response, nil
	case err == nil || errors.Is(err, syscall.ECONNRESET):
		return closed, nil, nil
	}
	return closed, nil, err
}

// attack sends requests to a listener.
type attack struct {
	outcomes [failed + 1]atomic.Int64

	mu       sync.Mutex // covers problems
	problems []string
}

func (a *attack) problem(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.problems) < 5 {
		a.problems = append(a.problems, fmt.Sprintf(format, args...))
	}
}

func (a *attack) run(ctx context.Context, l listener, first, n int) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range senders {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				seed := uint64(first + i)
				g := l.requests(seed)
				request := g.next()
				result, response, err := exchange(ctx, l.address, request, seed%10 == 0)
				if err != nil {
					a.problem("%s, seed %d: %v", l.name, seed, err)
				}
				if a.outcomes[result].Add(1); result == hanging || result == failed {
					a.problem("%s, seed %d: outcome %d\n%.600q\n-> %.300q", l.name, seed, result, request, response)
				}
			}
		})
	}
	wg.Wait()
}

// packets sends packets to the node port.
func packets(t *testing.T, l listener, n int) {
	conn, err := net.Dial("udp", l.address)
	require.NoError(t, err)
	defer conn.Close()
	for seed := range n {
		_, _ = conn.Write(l.requests(uint64(seed)).gossip(true)) // a closed port is found by the checks of the server
	}
}

// callers are clients whose requests must succeed meanwhile.
type callers struct {
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu        sync.Mutex // covers the fields below
	latencies map[string][]time.Duration
	failures  []string
}

func startCallers(ctx context.Context, s *harness.Server) *callers {
	ctx, cancel := context.WithCancel(ctx)
	c := &callers{cancel: cancel, latencies: map[string][]time.Duration{}}
	for name, request := range map[string]func(i int) (string, string, string){
		"call": func(i int) (string, string, string) {
			return "POST", fmt.Sprintf("%s/Counter/caller%d/add", s.Client.Base(), i%50), "1"
		},
		"admin": func(int) (string, string, string) { return "GET", s.Admin() + "/invocations?limit=10", "" },
		"node":  func(int) (string, string, string) { return "GET", "http://" + s.NodeAddress() + "/health", "" },
	} {
		for range 2 {
			c.wg.Go(func() {
				for i := 0; ctx.Err() == nil; i++ {
					method, url, body := request(i)
					begin := time.Now()
					err := c.request(method, url, body)
					c.mu.Lock()
					if c.latencies[name] = append(c.latencies[name], time.Since(begin)); err != nil {
						c.failures = append(c.failures, err.Error())
					}
					c.mu.Unlock()
				}
			})
		}
	}
	return c
}

func (c *callers) request(method, url, body string) error {
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: status %d: %.300s", method, url, resp.StatusCode, text)
	}
	return err
}

// stop ends the callers. None of their requests may have failed.
func (c *callers) stop(t *testing.T) {
	c.cancel()
	c.wg.Wait()
	require.Empty(t, c.failures[:min(len(c.failures), 3)], "%d requests of others failed", len(c.failures))
	for name, all := range c.latencies {
		slices.Sort(all)
		t.Logf("%s: %d requests, p50 %v, p99 %v", name, len(all), all[len(all)/2], all[len(all)*99/100])
	}
}

func counter(t *testing.T, s *harness.Server) {
	object := restate.NewObject("Counter").Handler("add", restate.NewObjectHandler(
		func(ctx restate.ObjectContext, n int) (int, error) {
			sum, err := restate.Get[int](ctx, "sum")
			if err == nil {
				restate.Set(ctx, "sum", sum+n)
			}
			return sum + n, err
		}))
	require.NoError(t, s.Register(t.Context(), harness.EndpointFor(t, object), false))
}

func serverLog(t *testing.T, s *harness.Server) []byte {
	log, err := os.ReadFile(filepath.Join(filepath.Dir(s.Data()), "server.log"))
	require.NoError(t, err)
	return log
}

// metric returns the value of a metric of the process.
func metric(t *testing.T, s *harness.Server, name string) float64 {
	return number(t, get(t, s.Admin()+"/metrics"), name)
}

// peakMemory returns the largest resident memory of the process.
func peakMemory(t *testing.T, s *harness.Server) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.Process.PID()))
	if errors.Is(err, os.ErrNotExist) {
		return 0 // not on this system
	}
	require.NoError(t, err)
	return int64(number(t, text, "VmHWM:")) << 10
}

// number returns the number after a name at the beginning of a line.
func number(t *testing.T, text []byte, name string) float64 {
	match := regexp.MustCompile(`(?m)^` + name + `(?:\{[^}]*\})?\s+([0-9.e+]+)`).FindSubmatch(text)
	require.NotNil(t, match, name)
	n, err := strconv.ParseFloat(string(match[1]), 64)
	require.NoError(t, err)
	return n
}

func get(t *testing.T, url string) []byte {
	resp, err := http.Get(url)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return text
}

// Malformed and random requests to all listeners at the same time end neither the server nor its
// responses to others, and no connection remains open.
func TestServersWithstandCraftedRequests(t *testing.T) {
	s := harness.ServerFor(t, map[string]string{"LOG_DISABLE_ANSI_CODES": "true"})
	counter(t, s)
	n, first := fromEnv("CRAFTED", requests), fromEnv("CRAFTED_FIRST", 1)
	if testing.Short() {
		n = min(n, 200)
	}
	goroutines := metric(t, s, "go_goroutines")
	started, began := len(serverLog(t, s)), time.Now()

	others := startCallers(t.Context(), s)
	var a attack
	var wg sync.WaitGroup
	for _, l := range listeners(t, s) {
		wg.Go(func() { a.run(t.Context(), l, first, n) })
		if l.name == "node" {
			wg.Go(func() { packets(t, l, n/5) })
		}
	}
	wg.Wait()
	others.stop(t)
	t.Logf("%d requests to each listener: %d answered, %d closed", n, a.outcomes[answered].Load(), a.outcomes[closed].Load())
	require.Empty(t, a.problems)
	require.True(t, s.Process.Running())
	require.NoError(t, s.Healthy(t.Context()))
	require.Greater(t, a.outcomes[answered].Load(), int64(n), "most requests reach a handler or are refused by one")

	require.Eventually(t, func() bool { return metric(t, s, "go_goroutines") < goroutines+100 }, 2*time.Minute, 100*time.Millisecond, "goroutines remain: %v before", goroutines)
	log := serverLog(t, s)
	for _, word := range []string{"panic", "fatal error", "internal error", "goroutine 1 ["} {
		if at := bytes.Index(log, []byte(word)); at >= 0 {
			require.Fail(t, "the log has an internal error", "%.3000s", log[max(0, at-200):])
		}
	}
	added := log[started:]
	t.Logf("log: %d bytes and %d lines more", len(added), bytes.Count(added, []byte("\n")))
	// Each kind of refusal is logged at a bounded rate, so a slow run has more lines.
	require.Less(t, len(added), maxLog+int(time.Since(began).Seconds())*logRate, "clients determine the size of the log: %s", added[:min(len(added), 2000)])
	peak := peakMemory(t, s)
	t.Logf("peak of the memory: %d MiB", peak>>20)
	require.Less(t, peak, int64(maxMemory))
}
