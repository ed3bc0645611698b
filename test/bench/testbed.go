package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"platform/test/harness"
)

// testbed is a server with an empty data directory and the registered endpoint.
type testbed struct {
	server  *harness.Server
	service *harness.Service
	host    string // of the ingress
	prefix  string
	counts  string // address of the endpoint's counts
	dir     string
	tls     *tls.Config // of calls; nil: without TLS
	token   string      // of calls; "" for none

	collector *http.Server // of spans; nil for none
	spans     atomic.Int64 // requests with spans that it got
}

// collect starts the collector of spans, which only counts requests, and adds it to the options of the
// server. It is in this process, whose CPU time does not count.
func (b *testbed) collect(opts *harness.ServerOptions) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	b.collector = &http.Server{ReadHeaderTimeout: requestTimeout, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err == nil {
			b.spans.Add(1)
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	})}
	go func() { _ = b.collector.Serve(ln) }()
	opts.Env = maps.Clone(opts.Env)
	if opts.Env == nil {
		opts.Env = map[string]string{}
	}
	opts.Env["TRACING_ENDPOINT"] = "otlp+http://" + ln.Addr().String()
	return nil
}

// dial connects to the port that the requests of a step go to.
func (b *testbed) dial(ctx context.Context, s step) (*conn, error) {
	if s.admin != "" {
		c, err := dial(ctx, strings.TrimPrefix(b.server.Admin(), "http://"), s.contentType())
		if err == nil {
			c.method = s.admin
		}
		return c, err
	}
	c, err := dial(ctx, b.host, s.contentType())
	if err != nil || b.tls == nil {
		return c, err
	}
	c.token = b.token
	if err := c.secure(ctx, b.tls); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// issue writes a certificate of the ingress and adds it to the options of the server.
func (b *testbed) issue(opts *harness.ServerOptions) error {
	authority, err := harness.NewCertificates()
	if err != nil {
		return err
	}
	cert, key, err := authority.Issue()
	if err != nil {
		return err
	}
	opts.Env = maps.Clone(opts.Env)
	for setting, content := range map[string][]byte{"INGRESS__TLS__CERT_FILE": cert, "INGRESS__TLS__KEY_FILE": key} {
		opts.Env[setting] = filepath.Join(b.dir, setting)
		if err := os.WriteFile(opts.Env[setting], content, 0o600); err != nil {
			return err
		}
	}
	opts.IngressCA = authority.Pool()
	b.tls = &tls.Config{RootCAs: opts.IngressCA, ServerName: "127.0.0.1", NextProtos: []string{"http/1.1"}}
	return nil
}

// authorize creates a token for the calls.
func (b *testbed) authorize(ctx context.Context) error {
	answer, err := b.change(ctx, http.MethodPost, "/tokens", `{"name":"bench","roles":["invoker"]}`)
	if err != nil {
		return fmt.Errorf("create a token: %w", err)
	}
	var created struct{ Token string }
	if err := json.Unmarshal(answer, &created); err != nil {
		return fmt.Errorf("create a token: %w", err)
	}
	b.token = created.Token
	b.server.Client.Authorize(b.token)
	return nil
}

// change sends a request to the admin API and returns the body of the response. A status other than
// success is an error.
func (b *testbed) change(ctx context.Context, method, path, body string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, b.server.Admin()+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("content-type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err == nil && resp.StatusCode/100 != 2 {
		err = fmt.Errorf("status %d, %s", resp.StatusCode, answer)
	}
	return answer, err
}

// startTestbed starts both processes, with data and logs below parent and env for the
// server, and waits until a call has succeeded.
func startTestbed(ctx context.Context, target harness.Target, endpoint, parent string, env map[string]string) (*testbed, error) {
	dir, err := os.MkdirTemp(parent, "bench-"+target.Name+"-")
	if err != nil {
		return nil, err
	}
	b := &testbed{prefix: target.Prefix, dir: dir}
	if err := b.start(ctx, target, endpoint, env); err != nil {
		return nil, errors.Join(err, b.stop())
	}
	return b, nil
}

func (b *testbed) start(ctx context.Context, target harness.Target, endpoint string, env map[string]string) error {
	ports, err := harness.FreePorts(1)
	if err != nil {
		return err
	}
	b.counts = fmt.Sprintf("http://127.0.0.1:%d/", ports[0])
	b.service, err = harness.StartService(ctx, harness.ServiceOptions{
		Name: "service", Command: []string{endpoint}, Dir: b.dir,
		Env: map[string]string{"COUNTS_PORT": fmt.Sprint(ports[0])},
	})
	if err != nil {
		return err
	}
	opts := harness.ServerOptions{Dir: b.dir, Env: env}
	if target.Secure {
		if err := b.issue(&opts); err != nil {
			return err
		}
	}
	if target.Traced {
		if err := b.collect(&opts); err != nil {
			return err
		}
	}
	b.server, err = harness.StartServer(ctx, target, opts)
	if err != nil {
		return err
	}
	_, b.host, _ = strings.Cut(b.server.Client.Base(), "://")
	if err := b.server.Register(ctx, b.service.URI(), false); err != nil {
		return err
	}
	if target.Secure {
		if err := b.authorize(ctx); err != nil {
			return err
		}
	}
	return b.awaitFirstCall(ctx)
}

// awaitFirstCall retries a call until it succeeds, since a server may accept a
// registration before all its partitions have a leader.
func (b *testbed) awaitFirstCall(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	for {
		resp, err := b.server.Client.Call(ctx, "Bench/steps", []byte("0")) // counts nothing
		if err == nil && resp.Status == http.StatusOK {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("first call did not succeed: %w (status %d, %.200q)", errors.Join(ctx.Err(), err), resp.Status, resp.Body)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// limit sets the concurrency limit of a scope; partitions apply it soon
// after.
func (b *testbed) limit(ctx context.Context, scope string, concurrency int) error {
	rules := fmt.Sprintf(`[{"pattern":%q,"limits":{"concurrency":%d}}]`, scope, concurrency)
	if _, err := b.change(ctx, http.MethodPut, "/limits/rules", rules); err != nil {
		return fmt.Errorf("set a concurrency limit: %w", err)
	}
	return nil
}

// profile writes a CPU profile of the server, from now on, to a file.
func (b *testbed) profile(ctx context.Context, file string, duration time.Duration) error {
	url := fmt.Sprintf("%s/debug/pprof/profile?seconds=%d", b.server.Admin(), max(1, int(duration/time.Second)))
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("profile the server: %w", err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d, %.200s", resp.StatusCode, raw)
	}
	if err == nil {
		err = os.WriteFile(file, raw, 0o644)
	}
	if err != nil {
		return fmt.Errorf("profile the server: %w", err)
	}
	return nil
}

// stop kills both processes, if they were started, and removes their data: how long a
// server takes to stop is not measured.
func (b *testbed) stop() error {
	if b.server != nil && b.server.Process != nil {
		b.server.Client.Close()
		b.server.Kill()
	}
	if b.service != nil && b.service.Process != nil {
		b.service.Kill()
	}
	if b.collector != nil {
		_ = b.collector.Close()
	}
	return os.RemoveAll(b.dir)
}

// processUsage is the usage of both processes at one time.
type processUsage struct{ server, service usage }

func (b *testbed) usage() (processUsage, error) {
	server, err := usageOf(b.server.Process.PID())
	if err != nil {
		return processUsage{}, err
	}
	service, err := usageOf(b.service.Process.PID())
	return processUsage{server, service}, err
}

// executionCounts are the executions that the endpoint counted since its start.
type executionCounts struct {
	Done   map[string]int64 `json:"done"`   // executions by name
	Latest time.Time        `json:"latest"` // time of the latest execution
	Late   []time.Duration  `json:"late"`   // delay of each wake-up, if requested
	Gaps   []time.Duration  `json:"gaps"`   // time between holds of a slot, if requested
}

// executionCounts reads the endpoint's counts, including the delays if late is true.
func (b *testbed) executionCounts(ctx context.Context, late bool) (executionCounts, error) {
	url := b.counts
	if late {
		url += "?late=1"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return executionCounts{}, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return executionCounts{}, fmt.Errorf("request counts: %w", err)
	}
	defer resp.Body.Close()
	var t executionCounts
	if err := json.NewDecoder(resp.Body).Decode(&t); err != nil {
		return executionCounts{}, fmt.Errorf("read counts: %w", err)
	}
	return t, nil
}
