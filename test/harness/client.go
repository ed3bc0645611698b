package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// Client calls handlers through the ingress of one server.
type Client struct {
	base   string
	admin  string // "" if not known
	prefix string
	http   *http.Client
	token  string // sent with each request; "" for none
}

// NewClient returns a client of the ingress at base, whose paths start with
// prefix. It keeps idle connections open for reuse.
func NewClient(base, prefix string) *Client {
	return &Client{base: base, prefix: prefix, http: &http.Client{
		Transport: &http.Transport{MaxIdleConnsPerHost: 1 << 10, DisableCompression: true},
	}}
}

// Authorize sends a token with each request from now on.
func (c *Client) Authorize(token string) { c.token = token }

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Base returns the address of the ingress.
func (c *Client) Base() string { return c.base }

// Admin returns the base address of the admin API, "" if it is not known.
func (c *Client) Admin() string { return c.admin }

// Response is an HTTP response with its body read.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
	prefix string
}

// ID returns the invocation id in the response headers.
func (r Response) ID() string { return r.Header.Get("x-" + r.prefix + "-id") }

// Source returns the origin of an error response: "ingress" or "invocation".
func (r Response) Source() string { return r.Header.Get("x-" + r.prefix + "-error-source") }

// Sent is the response body of a send.
type Sent struct {
	InvocationID  string `json:"invocationId"`
	Status        string `json:"status"`
	ExecutionTime string `json:"executionTime"`
}

// Path joins service, optional key and handler, each escaped; empty parts are skipped.
func Path(parts ...string) string {
	escaped := make([]string, 0, len(parts))
	for _, p := range parts {
		if p != "" {
			escaped = append(escaped, url.PathEscape(p))
		}
	}
	return strings.Join(escaped, "/")
}

// Call invokes the handler at path and waits for its result. With a nil body the
// request has none; header is a list of names and values.
func (c *Client) Call(ctx context.Context, path string, body []byte, header ...string) (Response, error) {
	return c.do(ctx, http.MethodPost, c.base+"/"+c.prefix+"/call/"+path, body, header...)
}

// Send invokes the handler at path one-way; path may have a delay query parameter.
func (c *Client) Send(ctx context.Context, path string, body []byte, header ...string) (Response, error) {
	return c.do(ctx, http.MethodPost, c.base+"/"+c.prefix+"/send/"+path, body, header...)
}

// Attach waits for the result of an invocation.
func (c *Client) Attach(ctx context.Context, id string) (Response, error) {
	return c.do(ctx, http.MethodGet, c.base+"/"+c.prefix+"/attach/"+id, nil)
}

// Output returns the result of an invocation without waiting for it.
func (c *Client) Output(ctx context.Context, id string) (Response, error) {
	return c.do(ctx, http.MethodGet, c.base+"/"+c.prefix+"/output/"+id, nil)
}

// Get makes a GET request for any path of the ingress.
func (c *Client) Get(ctx context.Context, path string) (Response, error) {
	return c.do(ctx, http.MethodGet, c.base+"/"+path, nil)
}

// Post makes a POST request to any path of the ingress.
func (c *Client) Post(ctx context.Context, path string, body []byte, header ...string) (Response, error) {
	return c.do(ctx, http.MethodPost, c.base+"/"+path, body, header...)
}

// Query runs a SQL query through the admin API.
func (c *Client) Query(ctx context.Context, sql string) (Response, error) {
	return c.query(ctx, map[string]string{"query": sql})
}

// StrongQuery is Query with strong consistency.
func (c *Client) StrongQuery(ctx context.Context, sql string) (Response, error) {
	return c.query(ctx, map[string]string{"query": sql, "consistency": "strong"})
}

func (c *Client) query(ctx context.Context, request map[string]string) (Response, error) {
	body, err := json.Marshal(request)
	if err != nil {
		return Response{}, err
	}
	return c.do(ctx, http.MethodPost, c.admin+"/query", body, "accept", "application/json")
}

// State returns the state of an object from the admin API.
func (c *Client) State(ctx context.Context, service, key string) (Response, error) {
	return c.do(ctx, http.MethodGet, c.admin+"/services/"+url.PathEscape(service)+"/state?object_key="+url.QueryEscape(key), nil)
}

// SetState replaces the state of an object through the admin API.
func (c *Client) SetState(ctx context.Context, service, key string, state map[string][]byte) (Response, error) {
	body, err := json.Marshal(map[string]any{"object_key": key, "new_state": state})
	if err != nil {
		return Response{}, err
	}
	return c.do(ctx, http.MethodPost, c.admin+"/services/"+url.PathEscape(service)+"/state", body)
}

func (c *Client) do(ctx context.Context, method, url string, body []byte, header ...string) (Response, error) {
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, url, reader)
	if err != nil {
		return Response{}, err
	}
	if body != nil {
		req.Header.Set("content-type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	if c.token != "" {
		req.Header.Set("authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return Response{}, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return Response{}, fmt.Errorf("read response of %s: %w", url, err)
	}
	return Response{Status: resp.StatusCode, Header: resp.Header, Body: raw, prefix: c.prefix}, nil
}

// Decode decodes the JSON body of a 2xx response into out; any other status is an
// error.
func (r Response) Decode(out any) error {
	if r.Status/100 != 2 {
		return fmt.Errorf("status %d: %s", r.Status, r.Body)
	}
	if err := json.Unmarshal(r.Body, out); err != nil {
		return fmt.Errorf("decode response %.200q: %w", r.Body, err)
	}
	return nil
}
