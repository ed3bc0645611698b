package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"platform/test/harness"
)

// bed is a server on fresh data with the endpoint registered.
type bed struct {
	server  *harness.Server
	service *harness.Service
	host    string // of the ingress
	prefix  string
	counts  string // address of the endpoint's counts
	dir     string
}

// startBed starts both processes, with data and logs below parent, and returns
// once a call has been answered.
func startBed(ctx context.Context, target harness.Target, endpoint, parent string) (*bed, error) {
	dir, err := os.MkdirTemp(parent, "bench-"+target.Name+"-")
	if err != nil {
		return nil, err
	}
	b := &bed{prefix: target.Prefix, dir: dir}
	if err := b.start(ctx, target, endpoint); err != nil {
		return nil, errors.Join(err, b.stop())
	}
	return b, nil
}

func (b *bed) start(ctx context.Context, target harness.Target, endpoint string) error {
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
	b.server, err = harness.StartServer(ctx, target, harness.ServerOptions{Dir: b.dir})
	if err != nil {
		return err
	}
	b.host = strings.TrimPrefix(b.server.Client.Base(), "http://")
	if err := b.server.Register(ctx, b.service.URI(), false); err != nil {
		return err
	}
	return b.firstAnswer(ctx)
}

// firstAnswer calls until the answer is right: a server may accept a registration
// before all its partitions have found a leader.
func (b *bed) firstAnswer(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	for {
		answer, err := b.server.Client.Call(ctx, "Bench/steps", []byte("0")) // counts nothing
		if err == nil && answer.Status == http.StatusOK {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no answer to the first call: %w (status %d, %.200q)", errors.Join(ctx.Err(), err), answer.Status, answer.Body)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// stop ends both processes, if they were started, and removes their data.
func (b *bed) stop() error {
	var err error
	if b.server != nil && b.server.Process != nil {
		err = b.server.Stop()
	}
	if b.service != nil && b.service.Process != nil {
		b.service.Kill()
	}
	return errors.Join(err, os.RemoveAll(b.dir))
}

// both is the usage of both processes at one time.
type both struct{ server, service usage }

func (b *bed) usage() (both, error) {
	server, err := usageOf(b.server.Process.PID())
	if err != nil {
		return both{}, err
	}
	service, err := usageOf(b.service.Process.PID())
	return both{server, service}, err
}

// tally is what the endpoint counted since it was started.
type tally struct {
	Done   map[string]int64 `json:"done"`   // executions by name
	Latest time.Time        `json:"latest"` // when one was counted
	Late   []time.Duration  `json:"late"`   // of each sleep, if asked for
}

// tally asks the endpoint for its counts, with the latenesses if late is true.
func (b *bed) tally(ctx context.Context, late bool) (tally, error) {
	url := b.counts
	if late {
		url += "?late=1"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return tally{}, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return tally{}, fmt.Errorf("ask for counts: %w", err)
	}
	defer resp.Body.Close()
	var t tally
	if err := json.NewDecoder(resp.Body).Decode(&t); err != nil {
		return tally{}, fmt.Errorf("read counts: %w", err)
	}
	return t, nil
}
