package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"time"

	"platform/internal/version"
)

// Options are the addresses of a server and the settings of its client.
type Options struct {
	AdminURL           string // http, https or unix:<path>
	IngressURL         string
	Token              string // bearer token, may be empty
	ConnectTimeout     time.Duration
	RequestTimeout     time.Duration // of requests that do not wait for the result of an invocation
	ResultTimeout      time.Duration // of Call and Attach; 0: none
	InsecureSkipVerify bool
	RootCAs            *x509.CertPool // nil: those of the system
	Log                *slog.Logger
}

// Client is a client of one server.
type Client struct {
	admin   endpoint
	ingress endpoint
	opts    Options
}

// endpoint is one of the server's two interfaces.
type endpoint struct {
	name string // for messages
	at   string // for messages: the address without a path
	base string // without trailing slash
	http *http.Client
}

// New returns a client; it does not connect yet.
func New(opts Options) *Client {
	return &Client{
		admin:   newEndpoint("admin API", opts.AdminURL, opts),
		ingress: newEndpoint("ingress", opts.IngressURL, opts),
		opts:    opts,
	}
}

func newEndpoint(name, base string, opts Options) endpoint {
	dialer := &net.Dialer{Timeout: opts.ConnectTimeout}
	transport := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         dialer.DialContext,
		TLSHandshakeTimeout: opts.ConnectTimeout,
		TLSClientConfig:     &tls.Config{InsecureSkipVerify: opts.InsecureSkipVerify, RootCAs: opts.RootCAs}, //nolint:gosec // requested by the user
		DisableKeepAlives:   true,                                                                            // one request, then the program ends
		// A server that does not want the body says so before this time has passed.
		ExpectContinueTimeout: time.Second,
	}
	at := strings.TrimRight(base, "/") + "/"
	if path, isUnix := strings.CutPrefix(base, "unix:"); isUnix {
		at = base
		transport.Proxy = nil
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", path)
		}
		base = "http://localhost"
	}
	return endpoint{name: name, at: at, base: strings.TrimRight(base, "/"), http: &http.Client{Transport: transport}}
}

// Response is a successful response.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// request is one HTTP request to an endpoint.
type request struct {
	method string
	path   string // escaped, with the query
	header http.Header
	body   []byte
	reads  bool // read-only, whatever the method
}

// send makes the request and reads the whole response. A status of 400 or more is an
// *APIError, a missing response an *UnreachableError.
func (c *Client) send(ctx context.Context, to endpoint, r request) (*Response, error) {
	address := to.base + r.path
	req, err := http.NewRequestWithContext(ctx, r.method, address, bytes.NewReader(r.body))
	if err != nil {
		return nil, fmt.Errorf("create a request to %s: %w", address, err)
	}
	for name, values := range r.header {
		req.Header[name] = values
	}
	if len(r.body) >= largeBody {
		// A server that refuses a body closes the connection; its response would be lost while the body is sent.
		req.Header.Set("Expect", "100-continue")
	}
	req.Header.Set("User-Agent", "platform-cli/"+version.Version())
	if c.opts.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.opts.Token)
	}
	lost := &UnreachableError{Interface: to.name, Address: to.at, Method: r.method, URL: address, Writes: r.method != http.MethodGet && !r.reads}
	connected := func(httptrace.GotConnInfo) { lost.Sent = true }
	req = req.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: connected}))
	started := time.Now()
	response, err := to.http.Do(req)
	if err != nil {
		lost.Err = unwrapURL(err)
		return nil, lost
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		lost.Err, lost.Partial = fmt.Errorf("read the response: %w", err), body
		return nil, lost
	}
	c.opts.Log.Debug("request", "method", r.method, "url", address, "status", response.StatusCode, "duration", time.Since(started))
	if response.StatusCode >= http.StatusBadRequest {
		return nil, newAPIError(r.method, address, response, body)
	}
	return &Response{Status: response.StatusCode, Header: response.Header, Body: body}, nil
}

// largeBody is the size from which a body is only sent once the server has accepted the header.
const largeBody = 1 << 20

// adminJSON makes an admin request. It sends in and decodes the response into out, unless
// they are nil.
func (c *Client) adminJSON(ctx context.Context, method, path string, in, out any) (*Response, error) {
	return c.adminJSONWithin(ctx, c.opts.RequestTimeout, method, path, in, out)
}

// adminJSONWithin is adminJSON with another timeout.
func (c *Client) adminJSONWithin(ctx context.Context, timeout time.Duration, method, path string, in, out any, header ...string) (*Response, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	r := request{method: method, path: path, header: http.Header{"Accept": {"application/json"}}}
	for i := 0; i+1 < len(header); i += 2 {
		r.header.Set(header[i], header[i+1])
	}
	if in != nil {
		body, err := json.Marshal(in)
		if err != nil {
			return nil, fmt.Errorf("encode request: %w", err)
		}
		r.body = body
		r.header.Set("Content-Type", "application/json")
	}
	response, err := c.send(ctx, c.admin, r)
	if err != nil {
		return nil, err
	}
	if out != nil {
		if err := json.Unmarshal(response.Body, out); err != nil {
			return nil, fmt.Errorf("unexpected response to %s %s; is this the address of the admin API?: %w", method, c.admin.base+path, err)
		}
	}
	return response, nil
}

func unwrapURL(err error) error {
	if wrapped, ok := err.(*url.Error); ok { //nolint:errorlint // exactly what http.Client.Do returns
		return wrapped.Err
	}
	return err
}
