package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
)

// Target is a handler, with the key of its object or workflow where it has one.
type Target struct {
	Service, Key, Handler string
	Keyed                 bool
}

// ParseTarget reads Service/handler or Service/key/handler. The key may contain
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

func (t Target) path() string {
	path := url.PathEscape(t.Service) + "/"
	if t.Keyed {
		path += url.PathEscape(t.Key) + "/"
	}
	return path + url.PathEscape(t.Handler)
}

// Call is what a handler is invoked with.
type Call struct {
	Target Target
	Header http.Header
	Body   []byte
	Delay  string // sends only
	Scope  string // empty: none
}

// path is that of the route for calls or sends ("call", "send"), which has the scope in it.
func (c Call) path(verb string) string {
	prefix := "/platform/"
	if c.Scope != "" {
		prefix += "scope/" + url.PathEscape(c.Scope) + "/"
	}
	return prefix + verb + "/" + c.Target.path()
}

// Call invokes a handler and waits for its result, however long that takes.
func (c *Client) Call(ctx context.Context, call Call) (*Response, error) {
	return c.send(ctx, c.ingress, request{method: http.MethodPost, path: call.path("call"), header: call.Header, body: call.Body})
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

// Attach waits for the result of an invocation.
func (c *Client) Attach(ctx context.Context, id string) (*Response, error) {
	return c.send(ctx, c.ingress, request{method: http.MethodGet, path: "/platform/attach/" + url.PathEscape(id)})
}

// Output returns the result of an invocation if it has one already.
func (c *Client) Output(ctx context.Context, id string) (*Response, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.RequestTimeout)
	defer cancel()
	return c.send(ctx, c.ingress, request{method: http.MethodGet, path: "/platform/output/" + url.PathEscape(id)})
}
