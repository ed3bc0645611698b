package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// Target is a handler, with the key of its object or workflow if it has one.
type Target struct {
	Service, Key, Handler string
	Keyed                 bool
}

// ParseTarget parses Service/handler or Service/key/handler. The key may contain
// slashes.
func ParseTarget(text string) (Target, error) {
	service, rest, found := strings.Cut(text, "/")
	if !found || service == "" || rest == "" || strings.HasSuffix(rest, "/") {
		return Target{}, errors.New("expected Service/handler or Service/key/handler")
	}
	if at := strings.LastIndexByte(rest, '/'); at >= 0 {
		return Target{Service: service, Key: rest[:at], Handler: rest[at+1:], Keyed: true}, nil
	}
	return Target{Service: service, Handler: rest}, nil
}

// String returns the format that ParseTarget parses.
func (t Target) String() string {
	if t.Keyed {
		return t.Service + "/" + t.Key + "/" + t.Handler
	}
	return t.Service + "/" + t.Handler
}

func (t Target) path() string {
	path := url.PathEscape(t.Service) + "/"
	if t.Keyed {
		path += url.PathEscape(t.Key) + "/"
	}
	return path + url.PathEscape(t.Handler)
}

// Call is a request to invoke a handler.
type Call struct {
	Target Target
	Header http.Header
	Body   []byte
	Delay  string // sends only
	Scope  string // empty: none
}

// path returns the path of the route for a verb, "call" or "send", and the scope.
func (c Call) path(verb string) string {
	prefix := "/platform/"
	if c.Scope != "" {
		prefix += "scope/" + url.PathEscape(c.Scope) + "/"
	}
	return prefix + verb + "/" + c.Target.path()
}

// Call invokes a handler and waits for its result, up to the result timeout.
func (c *Client) Call(ctx context.Context, call Call) (*Response, error) {
	ctx, cancel := c.awaitResult(ctx)
	defer cancel()
	return c.send(ctx, c.ingress, request{method: http.MethodPost, path: call.path("call"), header: call.Header, body: call.Body})
}

// awaitResult applies the result timeout.
func (c *Client) awaitResult(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.opts.ResultTimeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, c.opts.ResultTimeout)
}

// Send invokes a handler without waiting for it.
func (c *Client) Send(ctx context.Context, call Call) (*Response, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.RequestTimeout)
	defer cancel()
	path := call.path("send")
	if call.Delay != "" {
		path += "?delay=" + url.QueryEscape(call.Delay)
	}
	return c.send(ctx, c.ingress, request{method: http.MethodPost, path: path, header: call.Header, body: call.Body})
}

// InvocationRef identifies an invocation: by its id, or by what its id is derived from.
type InvocationRef struct {
	ID string

	// Without an ID: a call with an idempotency key, or without one the run of the
	// workflow of that name and key.
	Target         Target
	IdempotencyKey string
	Scope          string // empty: none
}

func (r InvocationRef) body() ([]byte, error) {
	text := map[string]string{"target": "invocation", "invocationId": r.ID}
	switch {
	case r.ID != "":
	case r.IdempotencyKey != "":
		text = map[string]string{"target": "idempotentInvocation", "service": r.Target.Service, "handler": r.Target.Handler, "idempotencyKey": r.IdempotencyKey}
		if r.Target.Keyed {
			text["key"] = r.Target.Key
		}
	default:
		text = map[string]string{"target": "workflow", "workflowName": r.Target.Service, "workflowKey": r.Target.Key}
	}
	if r.Scope != "" {
		text["scope"] = r.Scope
	}
	return json.Marshal(text)
}

// Attach waits for the result of an invocation, up to the result timeout.
func (c *Client) Attach(ctx context.Context, ref InvocationRef) (*Response, error) {
	ctx, cancel := c.awaitResult(ctx)
	defer cancel()
	return c.ofInvocation(ctx, "attach", ref)
}

// Output returns the result of an invocation that has completed.
func (c *Client) Output(ctx context.Context, ref InvocationRef) (*Response, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.RequestTimeout)
	defer cancel()
	return c.ofInvocation(ctx, "output", ref)
}

func (c *Client) ofInvocation(ctx context.Context, verb string, ref InvocationRef) (*Response, error) {
	if ref.ID != "" {
		return c.send(ctx, c.ingress, request{method: http.MethodGet, path: "/platform/" + verb + "/" + url.PathEscape(ref.ID)})
	}
	body, err := ref.body()
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	header := http.Header{"Content-Type": {"application/json"}}
	return c.send(ctx, c.ingress, request{method: http.MethodPost, path: "/platform/" + verb, header: header, body: body, reads: true})
}

// CompleteAwakeable resolves an awakeable with a value, or rejects it with a reason.
func (c *Client) CompleteAwakeable(ctx context.Context, id string, reject bool, body []byte) error {
	return c.complete(ctx, "/platform/awakeables/"+url.PathEscape(id), reject, body)
}

// Signal sends a named signal with a value to an invocation, or with reject a failure.
func (c *Client) Signal(ctx context.Context, id, name string, reject bool, body []byte) error {
	return c.complete(ctx, "/platform/invocation/"+url.PathEscape(id)+"/signal/"+url.PathEscape(name), reject, body)
}

func (c *Client) complete(ctx context.Context, path string, reject bool, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, c.opts.RequestTimeout)
	defer cancel()
	verb := "/resolve"
	if reject {
		verb = "/reject"
	}
	_, err := c.send(ctx, c.ingress, request{method: http.MethodPost, path: path + verb, body: body})
	return err
}
