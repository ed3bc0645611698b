package load

import (
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
	// tryLimit is how long one request may take. The server answers sooner, if only
	// to say that it has no leader.
	tryLimit = 15 * time.Second
	// retryPause is the time between two tries.
	retryPause = 10 * time.Millisecond
)

// Failure is a request that a node should have answered and did not.
type Failure struct {
	At   time.Time
	Node int
	What string
}

// String describes the failure in a line.
func (f Failure) String() string {
	return fmt.Sprintf("%s node %d: %s", f.At.Format("15:04:05.000"), f.Node+1, f.What)
}

// tally counts what became of requests.
type tally struct {
	mu       sync.Mutex // covers what follows
	ok       int
	excused  int // failed at a node in trouble
	failures []Failure
}

func (t *tally) add(v visit, what string, err error) {
	excused := err != nil && v.excused()
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err == nil:
		t.ok++
	case excused:
		t.excused++
	default:
		t.failures = append(t.failures, Failure{time.Now(), v.node, what + ": " + err.Error()})
	}
}

// client is one user of the cluster.
type client struct {
	nodes *Nodes
	tally *tally
	home  int // index of the only node it uses, -1: it roams
	// patience is how long it repeats a request and waits for what was promised.
	patience time.Duration
}

// request is one HTTP request to a node.
type request func(context.Context, *harness.Client) (harness.Response, error)

// errNotSent says that a request has certainly not reached a node.
var errNotSent = errors.New("not sent")

// once makes a request once. A connection that a node in trouble refuses does not count
// at all, since the client just asks another node.
func (c *client) once(ctx context.Context, what string, do request) (harness.Response, error) {
	v := c.nodes.visit(c.home)
	ctx, cancel := context.WithTimeout(ctx, tryLimit)
	defer cancel()
	defer context.AfterFunc(v.ctx, cancel)()
	answer, err := do(ctx, c.nodes.Clients[v.node])
	if err == nil && answer.Status/100 != 2 {
		err = &statusError{answer.Status, fmt.Sprintf("status %d: %.300s", answer.Status, answer.Body)}
	}
	if unreachable(err) {
		err = fmt.Errorf("%w: %w", errNotSent, err)
		if v.excused() {
			return answer, err
		}
	}
	c.tally.add(v, what, err)
	return answer, err
}

// statusError is an answer that is no success.
type statusError struct {
	status int
	text   string
}

func (e *statusError) Error() string { return e.text }

func unreachable(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENETUNREACH) || errors.Is(err, syscall.EHOSTUNREACH)
}

// outcome is what an error says about the effect of a request.
func outcome(err error) history.Outcome {
	switch {
	case err == nil:
		return history.OK
	case errors.Is(err, errNotSent):
		return history.Failed
	}
	return history.Unknown
}

// insist makes a request that may be repeated until it is answered, at other nodes if
// the client roams, and returns the last error when patience is over.
func (c *client) insist(ctx context.Context, what string, do request) (harness.Response, error) {
	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	for {
		answer, err := c.once(ctx, what, do)
		if err == nil {
			return answer, nil
		}
		if refused(err) || !pause(ctx, retryPause) {
			return answer, fmt.Errorf("%s: given up: %w", what, err)
		}
	}
}

// refused reports whether an answer will not get better.
func refused(err error) bool {
	var s *statusError
	return errors.As(err, &s) && s.status/100 == 4 &&
		s.status != http.StatusNotFound && s.status != http.StatusTooManyRequests
}

// pause waits; false if ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// call is a request for a handler's result. A key makes it repeatable.
func call(path string, body []byte, key string) request {
	return func(ctx context.Context, c *harness.Client) (harness.Response, error) {
		return c.Call(ctx, path, body, idempotent(key)...)
	}
}

// send is a request that does not wait for the result.
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
