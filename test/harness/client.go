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
}

// NewClient returns a client of the ingress at base, whose paths start with
// prefix. It keeps as many idle connections as it ever had in use.
func NewClient(base, prefix string) *Client {
	return &Client{base: base, prefix: prefix, http: &http.Client{
		Transport: &http.Transport{MaxIdleConnsPerHost: 1 << 10, DisableCompression: true},
	}}
}

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Base returns the address of the ingress.
func (c *Client) Base() string { return c.base }

// Admin returns the base address of the admin API, "" if it is not known.
func (c *Client) Admin() string { return c.admin }

// Answer is one complete HTTP answer.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
	prefix string
}

// ID returns the invocation id that the ingress put into the headers.
func (a Answer) ID() string { return a.Header.Get("x-" + a.prefix + "-id") }

// Source says whether the ingress or the invocation made an error.
func (a Answer) Source() string { return a.Header.Get("x-" + a.prefix + "-error-source") }

// Sent is the body of the answer to a send.
type Sent struct {
	InvocationID  string `json:"invocationId"`
	Status        string `json:"status"`
	ExecutionTime string `json:"executionTime"`
}

// Path joins service, an optional key and handler; each is escaped.
func Path(parts ...string) string {
	escaped := make([]string, 0, len(parts))
	for _, p := range parts {
		if p != "" {
			escaped = append(escaped, url.PathEscape(p))
		}
	}
	return strings.Join(escaped, "/")
}

// Call invokes the handler at path and waits for its result. A nil body sends
// none; header is a list of names and values.
func (c *Client) Call(ctx context.Context, path string, body []byte, header ...string) (Answer, error) {
	return c.do(ctx, http.MethodPost, c.base+"/"+c.prefix+"/call/"+path, body, header...)
}

// Send invokes the handler at path one-way; path may carry a delay query.
func (c *Client) Send(ctx context.Context, path string, body []byte, header ...string) (Answer, error) {
	return c.do(ctx, http.MethodPost, c.base+"/"+c.prefix+"/send/"+path, body, header...)
}

// Attach waits for the result of an invocation.
func (c *Client) Attach(ctx context.Context, id string) (Answer, error) {
	return c.do(ctx, http.MethodGet, c.base+"/"+c.prefix+"/attach/"+id, nil)
}

// Output asks for the result of an invocation without waiting.
func (c *Client) Output(ctx context.Context, id string) (Answer, error) {
	return c.do(ctx, http.MethodGet, c.base+"/"+c.prefix+"/output/"+id, nil)
}

// Get asks for any path of the ingress.
func (c *Client) Get(ctx context.Context, path string) (Answer, error) {
	return c.do(ctx, http.MethodGet, c.base+"/"+path, nil)
}

// Post sends to any path of the ingress.
func (c *Client) Post(ctx context.Context, path string, body []byte, header ...string) (Answer, error) {
	return c.do(ctx, http.MethodPost, c.base+"/"+path, body, header...)
}

// Query asks the admin API with SQL.
func (c *Client) Query(ctx context.Context, sql string) (Answer, error) {
	body, err := json.Marshal(map[string]string{"query": sql})
	if err != nil {
		return Answer{}, err
	}
	return c.do(ctx, http.MethodPost, c.admin+"/query", body, "accept", "application/json")
}

// StrongQuery is Query with strong consistency.
func (c *Client) StrongQuery(ctx context.Context, sql string) (Answer, error) {
	body, err := json.Marshal(map[string]string{"query": sql, "consistency": "strong"})
	if err != nil {
		return Answer{}, err
	}
	return c.do(ctx, http.MethodPost, c.admin+"/query", body, "accept", "application/json")
}

// State asks the admin API for the state of an object.
func (c *Client) State(ctx context.Context, service, key string) (Answer, error) {
	return c.do(ctx, http.MethodGet, c.admin+"/services/"+url.PathEscape(service)+"/state?object_key="+url.QueryEscape(key), nil)
}

func (c *Client) do(ctx context.Context, method, url string, body []byte, header ...string) (Answer, error) {
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, url, reader)
	if err != nil {
		return Answer{}, err
	}
	if body != nil {
		req.Header.Set("content-type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return Answer{}, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return Answer{}, fmt.Errorf("read answer of %s: %w", url, err)
	}
	return Answer{Status: resp.StatusCode, Header: resp.Header, Body: raw, prefix: c.prefix}, nil
}

// Decode reads a JSON answer with status 200 or 202 into out.
func (a Answer) Decode(out any) error {
	if a.Status/100 != 2 {
		return fmt.Errorf("status %d: %s", a.Status, a.Body)
	}
	if err := json.Unmarshal(a.Body, out); err != nil {
		return fmt.Errorf("answer %.200q: %w", a.Body, err)
	}
	return nil
}
