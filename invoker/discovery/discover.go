package discovery

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"golang.org/x/net/http/httpguts"

	"platform/internal/egress"
	"platform/internal/errcode"
	"platform/invoker/endpoint"
	"platform/invoker/identity"
	"platform/invoker/protocol"
	"platform/metadata"
)

// Config configures a Discoverer.
type Config struct {
	timeout           time.Duration // of a discovery, including retries
	maxBody           int           // maximum size in bytes of a manifest
	attempts          int           // maximum number of attempts on transient errors
	pause             time.Duration // between attempts
	probeAfter        time.Duration // without a response, after which HTTP/1.1 is probed
	EnableV7          bool
	AdditionalHeaders map[string]string // sent to all endpoints
	Identity          *identity.Signer  // signs the requests; nil for unsigned requests
	Log               *slog.Logger      // slog.Default() when nil
}

// DefaultConfig returns the default settings.
func DefaultConfig() Config {
	return Config{timeout: 10 * time.Second, maxBody: 4 << 20, attempts: 3, pause: 250 * time.Millisecond, probeAfter: time.Second}
}

// Discoverer requests the manifests of endpoints.
type Discoverer struct {
	cfg    Config
	client *endpoint.Client
}

// New returns a discoverer that connects through client.
func New(client *endpoint.Client, cfg Config) *Discoverer {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	return &Discoverer{cfg: cfg, client: client}
}

// Request identifies an endpoint: an HTTP endpoint by URI, or a function by ARN.
type Request struct {
	URI               string            // absolute, http or https
	UseHTTP11         bool              // instead of HTTP/2
	ARN               string            // as returned by NormalizeARN
	AssumeRoleARN     string            // role for invoking the function; may be empty
	AdditionalHeaders map[string]string // sent on this request and, later, on every attempt
}

// Discover requests the manifest of an endpoint and converts it to a deployment. The registry
// assigns its ID, times and revisions.
//
// Errors have code META0003 (unreachable), META0005 (reserved name), META0012 to
// META0015, META0022 (not an address of a service), or are an *InvalidError.
func (d *Discoverer) Discover(ctx context.Context, r Request) (*metadata.Deployment, error) {
	addr, uri, err := addressOf(&r)
	if err != nil {
		return nil, err
	}
	if err := CheckHeaders(r.AdditionalHeaders); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, d.cfg.timeout)
	defer cancel()
	response, err := d.fetch(ctx, addr, r.AdditionalHeaders)
	if err != nil {
		return nil, err
	}
	response.function = addr.Function != nil
	dep, err := d.deployment(response)
	if err != nil {
		return nil, err
	}
	dep.URI, dep.ARN, dep.AssumeRoleARN = uri, r.ARN, r.AssumeRoleARN
	dep.AdditionalHeaders = r.AdditionalHeaders
	return dep, nil
}

// addressOf returns the address of an endpoint and, for HTTP endpoints, the URI to register.
func addressOf(r *Request) (addr *endpoint.Address, uri string, err error) {
	if r.ARN != "" {
		if addr, err = endpoint.ParseFunction(r.ARN); err != nil {
			return nil, "", invalid("field 'arn' is invalid: %v", err)
		}
		addr.Function.AssumeRoleARN = r.AssumeRoleARN
		return addr, "", nil
	}
	if uri, err = NormalizeURI(r.URI); err != nil {
		return nil, "", err
	}
	if addr, err = endpoint.ParseAddress(uri, r.UseHTTP11); err != nil {
		return nil, "", invalid("field 'uri' is invalid: %v", err)
	}
	return addr, uri, nil
}

// fetch sends the request, retrying transient errors.
func (d *Discoverer) fetch(ctx context.Context, addr *endpoint.Address, extra map[string]string) (*manifestResponse, error) {
	for attempt := 1; ; attempt++ {
		a, transient, err := d.once(ctx, addr, extra)
		if err == nil || !transient || attempt >= d.cfg.attempts {
			return a, err
		}
		pause := d.cfg.pause + time.Duration(rand.Int64N(int64(d.cfg.pause)+1))
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, err
		}
	}
}

func (d *Discoverer) once(ctx context.Context, addr *endpoint.Address, extra map[string]string) (_ *manifestResponse, transient bool, _ error) {
	if addr.Scheme == "https" && !addr.HTTP11 {
		negotiated, err := d.client.Negotiate(ctx, addr)
		if err != nil {
			return d.unreachable(ctx, addr, err)
		}
		addr = negotiated
	}
	c := &collector{request: d.request(addr, extra), limit: d.cfg.maxBody, done: make(chan struct{})}
	stream := d.client.Open(c)
	if err := d.wait(ctx, addr, c.done); err != nil {
		stream.Reset()
		return d.unreachable(ctx, addr, err)
	}
	if c.tooLarge {
		stream.Reset()
		return nil, false, errcode.New(errcode.META0013, "the discovery response of %s is larger than %d bytes", addr.Authority, d.cfg.maxBody)
	}
	if c.err != nil && c.head.Status == 0 || c.err != nil && success(c.head.Status) {
		return d.unreachable(ctx, addr, c.err)
	}
	if err := d.checkStatus(addr, &c.head); err != nil {
		return nil, retryable(c.head.Status), err
	}
	return &manifestResponse{head: c.head, body: c.body}, false, nil
}

// wait waits for the end of a discovery request. It fails early if the peer ignores HTTP/2
// and speaks HTTP/1.1.
func (d *Discoverer) wait(ctx context.Context, addr *endpoint.Address, done <-chan struct{}) error {
	probe := time.NewTimer(d.cfg.probeAfter)
	defer probe.Stop()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-probe.C:
	}
	if d.ignoresHTTP2(ctx, addr, done) {
		return endpoint.ErrHTTP1
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// http1Probes is the number of probes in HTTP/1.1 that an endpoint must respond to before it is concluded that it
// ignores HTTP/2.
const http1Probes = 3

// ignoresHTTP2 reports whether an endpoint responds to probes in HTTP/1.1 and still not to the HTTP/2
// connection of a discovery request. Some endpoints speak both and were only slow, for instance because
// they have just started; those accept the HTTP/2 connection about when they respond to a probe. More than one
// is necessary, since on a starved machine a delay may be over before what arrived meanwhile has been read.
func (d *Discoverer) ignoresHTTP2(ctx context.Context, addr *endpoint.Address, done <-chan struct{}) bool {
	for range http1Probes {
		begin := time.Now()
		if !d.client.ProbeHTTP1(ctx, addr) {
			return false
		}
		grace := time.NewTimer(max(time.Since(begin), d.cfg.probeAfter/4))
		select {
		case <-done:
		case <-ctx.Done():
		case <-grace.C:
			continue
		}
		grace.Stop()
		return false
	}
	return !d.client.SpeaksHTTP2(addr)
}

// unreachable returns the error of a discovery request that failed with err, and whether the next one may succeed. An
// endpoint that closes HTTP/2 connections and responds in HTTP/1.1 may also speak both and be restarting.
func (d *Discoverer) unreachable(ctx context.Context, addr *endpoint.Address, err error) (*manifestResponse, bool, error) {
	where := addr.Scheme + "://" + addr.Authority
	if addr.Function != nil {
		where = addr.Function.ARN
	}
	inferred := !dialing(err) && !errors.Is(err, endpoint.ErrHTTP1) && d.client.ProbeHTTP1(ctx, addr)
	switch {
	case errors.Is(err, endpoint.ErrFunctionResponse):
		return nil, false, errcode.New(errcode.META0013, "%s: %w", where, err)
	case inferred, errors.Is(err, endpoint.ErrHTTP1):
		return nil, inferred, errcode.New(errcode.META0014,
			"%s speaks HTTP/1.1 and not HTTP/2 with prior knowledge; register it with use_http_11", where)
	case errors.Is(err, egress.ErrForbidden):
		return nil, false, refused(where, err)
	case ctx.Err() != nil, errors.Is(err, endpoint.ErrSilent), dialing(err) && timedOut(err): // usually about the same time, so one message
		return nil, true, errcode.New(errcode.META0003, "%s did not respond in time: it hangs, does not speak HTTP, or packets to it are dropped", where)
	case plainHTTP(err):
		return nil, false, errcode.New(errcode.META0003, "%s did not respond with TLS; if it has none, register http://%s", where, addr.Authority)
	case addr.Scheme == "https" && addr.Function == nil && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)):
		return nil, true, errcode.New(errcode.META0003, "%s closed the connection: %w; if it has no TLS, register http://%s", where, err, addr.Authority)
	case addr.HTTP11 && addr.Scheme == "http" && !dialing(err):
		return nil, true, errcode.New(errcode.META0003, "%s did not respond in HTTP/1.1: %w; if it speaks HTTP/2 only, register it without use_http_11", where, err)
	}
	if unresolved, ok := errors.AsType[*net.DNSError](err); ok { // its text names the resolver
		d.cfg.Log.Warn("discovery failed", "endpoint", where, "err", err)
		if unresolved.IsNotFound {
			return nil, true, errcode.New(errcode.META0003, "%s cannot be reached: the server finds no address for its host name", where)
		}
		return nil, true, errcode.New(errcode.META0003, "%s cannot be reached: its host name cannot be resolved at the moment. The log of the server has the cause", where)
	}
	if dialing(err) { // how a connection fails would reveal which ports are open
		d.cfg.Log.Warn("discovery failed", "endpoint", where, "err", err)
		if _, port, _ := net.SplitHostPort(addr.Authority); port == "" && addr.Function == nil {
			where += " (the address has no port, so " + map[string]string{"http": "80", "https": "443"}[addr.Scheme] + " is used)"
		}
		if addr.Local() {
			return nil, true, errcode.New(errcode.META0003, "%s cannot be reached. It is an address of the machine or container in which the server runs: is the endpoint running there? The log of the server has the cause", where)
		}
		return nil, true, errcode.New(errcode.META0003, "%s cannot be reached: is the endpoint running, and does it listen at this address of the server's network? The log of the server has the cause", where)
	}
	return nil, true, errcode.New(errcode.META0003, "%s cannot be reached: %w", where, err)
}

// refused explains that the server may not connect to an address.
func refused(where string, err error) error {
	why := err.Error()
	if refusal, ok := errors.AsType[*egress.Refusal](err); ok {
		if why = refusal.What + " is " + refusal.Reason; refusal.Own {
			return &errcode.Error{Code: errcode.META0022, Message: where + " is a port of this server itself, where no service listens", Err: err}
		}
	}
	return &errcode.Error{Code: errcode.META0022, Message: "connections to " + where + " are not permitted: " + why, Err: err}
}

// plainHTTP reports whether the endpoint responded to a TLS handshake with something else.
func plainHTTP(err error) bool {
	_, ok := errors.AsType[tls.RecordHeaderError](err)
	return ok
}

// dialing reports whether err occurred while connecting.
func dialing(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// timedOut reports whether a connection attempt was given up. Failed name lookups do not count.
func timedOut(err error) bool {
	if _, lookup := errors.AsType[*net.DNSError](err); lookup {
		return false
	}
	failure, ok := errors.AsType[net.Error](err)
	return ok && failure.Timeout()
}

func success(status int) bool { return status >= 200 && status < 300 }

// checkStatus returns an error for a status of failure. It does not contain the status, which would
// reveal to users who register addresses what listens where; the log has it.
func (d *Discoverer) checkStatus(addr *endpoint.Address, h *endpoint.Head) error {
	if success(h.Status) {
		return nil
	}
	path := addr.Path("/discover")
	if addr.Function != nil {
		return errcode.New(errcode.META0003, "%s responded to the discovery with status %d", addr.Authority, h.Status)
	}
	d.cfg.Log.Warn("discovery failed", "endpoint", addr.Authority, "path", path, "status", h.Status)
	for _, name := range []string{"X-Platform-Error-Source", "X-Restate-Error-Source"} {
		if h.Header.Get(name) == "ingress" {
			return errcode.New(errcode.META0022, "%s responds as the ingress of a server, which receives calls; it is not the address of a service", addr.Authority)
		}
	}
	return errcode.New(errcode.META0003,
		"%s did not accept discovery at %s: is the endpoint mounted under another path, or behind a redirect, which is not followed, or does it require other headers? The log of the server has the status of the response", addr.Authority, path)
}

func retryable(status int) bool {
	switch status {
	case 408, 429, 500, 502, 503, 504:
		return true
	}
	return false
}

func (d *Discoverer) request(addr *endpoint.Address, extra map[string]string) *endpoint.Request {
	h := http.Header{"accept": {acceptAll}, "user-agent": nil}
	if s := d.cfg.Identity; s != nil {
		h[identity.SchemeHeader] = []string{identity.Scheme}
		h[identity.TokenHeader] = []string{s.Token("/discover", "")}
	}
	for _, headers := range []map[string]string{d.cfg.AdditionalHeaders, extra} {
		for name, value := range headers {
			h[strings.ToLower(name)] = []string{value}
		}
	}
	return &endpoint.Request{Address: addr, Method: http.MethodGet, Path: addr.Path("/discover"), Header: h}
}

// CheckHeaders rejects headers that cannot be sent, before the deployment is registered.
func CheckHeaders(headers map[string]string) error {
	for name, value := range headers {
		if !httpguts.ValidHeaderFieldName(name) {
			return invalid("additional header %q has a malformed name", name)
		}
		if !httpguts.ValidHeaderFieldValue(value) {
			return invalid("additional header %q has a malformed value", name)
		}
		switch strings.ToLower(name) {
		case "connection", "host", "transfer-encoding", "upgrade", "te", "keep-alive", "proxy-connection", "content-length", "trailer", "expect":
			return invalid("additional header %q belongs to the connection and cannot be set", name)
		}
	}
	return nil
}

// manifestResponse is a successful response.
type manifestResponse struct {
	head     endpoint.Head
	body     []byte
	function bool // it came from one
}

// collector receives a whole response.
type collector struct {
	request *endpoint.Request
	limit   int
	done    chan struct{} // closed when the fields below are final

	head     endpoint.Head
	body     []byte
	tooLarge bool
	err      error
}

// Begin returns the request.
func (c *collector) Begin() *endpoint.Request { return c.request }

// Response keeps the head.
func (c *collector) Response(h endpoint.Head) { c.head = h }

// Data keeps the body up to the limit.
func (c *collector) Data(p []byte) {
	if c.tooLarge {
		return
	}
	if len(c.body)+len(p) > c.limit {
		c.tooLarge = true
		close(c.done)
		return
	}
	c.body = append(c.body, p...)
}

// End completes the response.
func (c *collector) End(err error) {
	if !c.tooLarge {
		c.err = err
		close(c.done)
	}
}

// InvalidError describes what is wrong with a request or a manifest where the catalogue
// has no code for it.
type InvalidError struct{ Reason string }

// Error is the reason.
func (e *InvalidError) Error() string { return e.Reason }

// HTTPStatus is the status to respond with.
func (e *InvalidError) HTTPStatus() int { return http.StatusBadRequest }

func invalid(format string, args ...any) *InvalidError {
	return &InvalidError{fmt.Sprintf(format, args...)}
}

// versions that a deployment may speak to be registered: those that some setting of
// this server makes usable.
func (d *Discoverer) versions() protocol.Range { return protocol.ServerRange(d.cfg.EnableV7) }
