package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"syscall"
	"time"

	"platform/test/harness"
	"platform/test/history"
)

const (
	// requestTimeout limits one request. The server responds sooner, if only with an error
	// because there is no leader.
	requestTimeout = 15 * time.Second
	// retryInterval is the time between two attempts.
	retryInterval = 10 * time.Millisecond
)

// Failure is a failed request to a healthy node.
type Failure struct {
	At   time.Time
	Node int
	What string
}

// String formats the failure on one line.
func (f Failure) String() string {
	return fmt.Sprintf("%s node %d: %s", f.At.Format("15:04:05.000"), f.Node+1, f.What)
}

// requestCounts counts requests by result.
type requestCounts struct {
	mu        sync.Mutex // covers the fields below
	ok        int
	tolerated int // failed at a faulty node
	failures  []Failure
}

func (t *requestCounts) add(at target, what string, err error) {
	tolerated := err != nil && at.mayFail()
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err == nil:
		t.ok++
	case tolerated:
		t.tolerated++
	default:
		t.failures = append(t.failures, Failure{time.Now(), at.node, what + ": " + err.Error()})
	}
}

func (t *requestCounts) succeeded() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ok
}

// client is one user of the cluster.
type client struct {
	nodes  *Nodes
	counts *requestCounts
	node   int // index of the only node it uses, or anyNode
	// retryTimeout limits the retries of a request and the wait for its effects.
	retryTimeout   time.Duration
	requestTimeout time.Duration // limits one request; 0: the default
}

// request is one HTTP request to a node.
type request func(context.Context, *harness.Client) (harness.Response, error)

// errNotSent means that a request has not reached a node.
var errNotSent = errors.New("not sent")

// try makes one attempt. A connection refused by a faulty node is not counted, since the
// client uses another node.
func (c *client) try(ctx context.Context, what string, do request) (harness.Response, error) {
	t := c.nodes.pick(c.node)
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(c.requestTimeout, requestTimeout))
	defer cancel()
	defer context.AfterFunc(t.ctx, cancel)()
	resp, err := do(ctx, c.nodes.Clients[t.node])
	if err == nil && resp.Status/100 != 2 {
		err = &statusError{resp.Status, fmt.Sprintf("status %d: %.300s", resp.Status, resp.Body)}
	}
	if unreachable(err) {
		err = fmt.Errorf("%w: %w", errNotSent, err)
		if t.mayFail() {
			return resp, err
		}
	}
	c.counts.add(t, what, err)
	return resp, err
}

// statusError is a response other than 2xx.
type statusError struct {
	status int
	text   string
}

func (e *statusError) Error() string { return e.text }

func unreachable(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENETUNREACH) || errors.Is(err, syscall.EHOSTUNREACH)
}

// outcome returns what an error implies about the effect of a request.
func outcome(err error) history.Outcome {
	switch {
	case err == nil:
		return history.OK
	case errors.Is(err, errNotSent):
		return history.Failed
	}
	return history.Unknown
}

// retry makes a request that is safe to repeat until it succeeds, at other nodes if the
// client is load-balanced. After retryTimeout it returns the last error.
func (c *client) retry(ctx context.Context, what string, do request) (harness.Response, error) {
	ctx, cancel := context.WithTimeout(ctx, c.retryTimeout)
	defer cancel()
	for {
		resp, err := c.try(ctx, what, do)
		if err == nil {
			return resp, nil
		}
		if permanent(err) || !harness.Sleep(ctx, retryInterval) {
			return resp, fmt.Errorf("%s: retries exhausted: %w", what, err)
		}
	}
}

// permanent reports whether a retry cannot succeed.
func permanent(err error) bool {
	var s *statusError
	return errors.As(err, &s) && s.status/100 == 4 &&
		s.status != http.StatusNotFound && s.status != http.StatusTooManyRequests
}

// call is a request for a handler's result. An idempotency key makes it safe to retry.
func call(path string, body []byte, key string) request {
	return func(ctx context.Context, c *harness.Client) (harness.Response, error) {
		return c.Call(ctx, path, body, idempotent(key)...)
	}
}

// send is a one-way request.
func send(path string, body []byte, key string) request {
	return func(ctx context.Context, c *harness.Client) (harness.Response, error) {
		return c.Send(ctx, path, body, idempotent(key)...)
	}
}

// attach waits for the result of an invocation.
func attach(id string) request {
	return func(ctx context.Context, c *harness.Client) (harness.Response, error) { return c.Attach(ctx, id) }
}

func idempotent(key string) []string {
	if key == "" {
		return nil
	}
	return []string{"idempotency-key", key}
}
