package discovery

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"platform/internal/egress"
	"platform/internal/errcode"
	"platform/internal/target"
	"platform/invoker/endpoint"
	"platform/metadata"
	"platform/test/harness/ports"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const v4 = "application/vnd.restate.endpointmanifest.v4+json"

func newDiscoverer(t *testing.T, cfg Config) *Discoverer {
	client := endpoint.NewClient(endpoint.DefaultConfig())
	t.Cleanup(client.Close)
	return New(client, cfg)
}

func quick() Config {
	cfg := DefaultConfig()
	cfg.pause = time.Millisecond
	return cfg
}

func serve(t *testing.T, handler http.HandlerFunc, change func(*httptest.Server)) *httptest.Server {
	s := httptest.NewUnstartedServer(handler)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	if change != nil {
		change(s)
	}
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func answering(contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("X-Restate-Server", "sdk/1.2")
		fmt.Fprint(w, body)
	}
}

func manifestOf(services string) string {
	return `{"protocolMode":"BIDI_STREAM","minProtocolVersion":5,"maxProtocolVersion":7,"unknown":1,"services":[` + services + `]}`
}

func TestDiscoveryRequest(t *testing.T) {
	var seen http.Request
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		seen = *r
		answering(v4, manifestOf(""))(w, r)
	}, nil)
	d := newDiscoverer(t, quick())
	dep, err := d.Discover(t.Context(), Request{
		URI: strings.Replace(s.URL, "http", "HTTP", 1) + "/base/?q=1", AdditionalHeaders: map[string]string{"X-Token": "secret"},
	})
	require.NoError(t, err)
	require.Equal(t, "/base/discover?q=1", seen.RequestURI)
	require.Equal(t, "GET", seen.Method)
	require.Equal(t, 2, seen.ProtoMajor)
	require.Equal(t, acceptAll, seen.Header.Get("Accept"))
	require.Equal(t, "secret", seen.Header.Get("X-Token"))
	require.Equal(t, s.URL+"/base/?q=1", dep.URI)
	require.Equal(t, "sdk/1.2", dep.SDKVersion)
	require.True(t, dep.Bidirectional)
	require.EqualValues(t, 5, dep.MinProtocol)
	require.EqualValues(t, 7, dep.MaxProtocol)
}

func TestManifestConversion(t *testing.T) {
	body := manifestOf(`
	{"name":"Zoo","ty":"WORKFLOW","handlers":[
	  {"name":"run","ty":"WORKFLOW","workflowCompletionRetention":1000},{"name":"peek","ty":"SHARED"},{"name":"old"}]},
	{"name":"Obj","ty":"VIRTUAL_OBJECT","documentation":"doc","metadata":{"a":"b"},"ingressPrivate":true,"enableLazyState":true,
	 "inactivityTimeout":1,"abortTimeout":2,"journalRetention":3,"idempotencyRetention":4,
	 "retryPolicyInitialInterval":5,"retryPolicyMaxInterval":6,"retryPolicyMaxAttempts":0,"retryPolicyExponentiationFactor":1.5,"retryPolicyOnMaxAttempts":"KILL",
	 "handlers":[{"name":"set"},{"name":"get","ty":"SHARED","input":{},"output":{"contentType":"text/plain","setContentTypeIfEmpty":true}}]},
	{"name":"Svc","ty":"SERVICE","handlers":[{"name":"h","input":{"required":true,"contentType":"application/json","jsonSchema":{"type":"object","properties":{"$ref":{"$ref":"#/$defs/x"}}}}}]}`)
	s := serve(t, answering(v4+"; charset=utf-8", body), nil)
	dep, err := newDiscoverer(t, quick()).Discover(t.Context(), Request{URI: s.URL})
	require.NoError(t, err)
	require.Equal(t, []string{"Obj", "Svc", "Zoo"}, []string{dep.Services[0].Name, dep.Services[1].Name, dep.Services[2].Name})

	obj := dep.Services[0]
	require.Equal(t, metadata.VirtualObject, obj.Type)
	require.Equal(t, "doc", obj.Documentation)
	require.Equal(t, map[string]string{"a": "b"}, obj.Metadata)
	o := metadata.Effective(nil, obj, new(metadata.StandardDefaults()))
	require.Equal(t, metadata.EffectiveOptions{
		InactivityTimeout: time.Millisecond, AbortTimeout: 2 * time.Millisecond, JournalRetention: 3 * time.Millisecond,
		IdempotencyRetention: 4 * time.Millisecond, WorkflowRetention: 24 * time.Hour, EnableLazyState: true, Public: false,
		Retry: metadata.RetryPolicy{InitialInterval: 5 * time.Millisecond, MaxInterval: 6 * time.Millisecond, Factor: 1.5, MaxAttempts: 1, OnMaxAttempts: metadata.Kill},
	}, o)
	require.Equal(t, target.ObjectShared, obj.Handlers[0].Type)
	require.Equal(t, metadata.InputRules{}, obj.Handlers[0].Input)
	require.Equal(t, metadata.OutputRules{ContentType: "text/plain", SetContentTypeIfEmpty: true}, obj.Handlers[0].Output)
	require.Equal(t, target.ObjectExclusive, obj.Handlers[1].Type)
	require.True(t, obj.Handlers[1].Input.Any)
	require.Equal(t, "application/json", obj.Handlers[1].Output.ContentType)

	input := dep.Services[1].Handlers[0].Input
	require.True(t, input.Required)
	require.Equal(t, "application/json", input.ContentType)
	require.NotEmpty(t, input.JSONSchema)

	zoo := dep.Services[2]
	kinds := map[string]target.Type{}
	for _, h := range zoo.Handlers {
		kinds[h.Name] = h.Type
	}
	require.Equal(t, map[string]target.Type{"run": target.WorkflowRun, "peek": target.WorkflowShared, "old": target.WorkflowShared}, kinds)
	require.Equal(t, time.Second, *zoo.Handlers[2].Options.WorkflowRetention)
}

func TestInvalidManifests(t *testing.T) {
	service := func(rest string) string { return manifestOf(`{"name":"S","ty":"SERVICE",` + rest + `}`) }
	handler := func(rest string) string { return service(`"handlers":[{"name":"h",` + rest + `}]`) }
	for name, c := range map[string]struct {
		contentType, body string
		code              errcode.Code
		message           string
	}{
		"content type":       {"text/html", "<html>", errcode.META0013, "text/html"},
		"version 5 manifest": {strings.Replace(v4, "v4", "v5", 1), manifestOf(""), errcode.META0013, "content type"},
		"no mode":            {v4, `{"minProtocolVersion":5,"maxProtocolVersion":5,"services":[]}`, errcode.META0013, "protocolMode"},
		"unknown mode":       {v4, `{"protocolMode":"X","minProtocolVersion":5,"maxProtocolVersion":5}`, errcode.META0013, "protocolMode"},
		"no versions":        {v4, `{"protocolMode":"BIDI_STREAM"}`, errcode.META0013, "0 to 0"},
		"min over max":       {v4, `{"protocolMode":"BIDI_STREAM","minProtocolVersion":6,"maxProtocolVersion":5}`, errcode.META0013, "6 to 5"},
		"huge version":       {v4, `{"protocolMode":"BIDI_STREAM","minProtocolVersion":6,"maxProtocolVersion":2147483648}`, errcode.META0013, "2147483648"},
		"too old":            {v4, `{"protocolMode":"BIDI_STREAM","minProtocolVersion":1,"maxProtocolVersion":4}`, errcode.META0012, "1 to 4"},
		"too new":            {v4, `{"protocolMode":"BIDI_STREAM","minProtocolVersion":7,"maxProtocolVersion":9}`, errcode.META0012, "7 to 9"},
		"not JSON":           {v4, "{\n\n?", "", "line 3"},
		"wrong shape":        {v4, `{"protocolMode":7}`, "", "protocolMode"},
		"negative time":      {v4, service(`"abortTimeout":-1,"handlers":[]`), "", "cannot be"},
		"reserved name":      {v4, manifestOf(`{"name":"RestateX","ty":"SERVICE"}`), errcode.META0005, "RestateX"},
		"malformed name":     {v4, manifestOf(`{"name":"a/b","ty":"SERVICE"}`), "", "a/b"},
		"unknown type":       {v4, manifestOf(`{"name":"S","ty":"X"}`), "", "type"},
		"two of a name":      {v4, manifestOf(`{"name":"S","ty":"SERVICE"},{"name":"S","ty":"SERVICE"}`), errcode.META0013, "twice"},
		"two handlers":       {v4, service(`"handlers":[{"name":"h"},{"name":"h"}]`), errcode.META0013, "twice"},
		"handler name":       {v4, service(`"handlers":[{"name":"a.b"}]`), "", "a.b"},
		"handler type":       {v4, handler(`"ty":"EXCLUSIVE"`), "", "EXCLUSIVE"},
		"retention":          {v4, handler(`"workflowCompletionRetention":1`), "", "workflowCompletionRetention"},
		"public in private":  {v4, service(`"ingressPrivate":true,"handlers":[{"name":"h","ingressPrivate":false}]`), "", "private"},
		"input type":         {v4, handler(`"input":{"contentType":"*/json"}`), "", "*/json"},
		"output type":        {v4, handler(`"output":{"contentType":"json"}`), "", "json"},
		"external reference": {v4, handler(`"input":{"jsonSchema":{"items":{"$ref":"http://x/y"}}}`), "", "inside the schema"},
		"no schema":          {v4, handler(`"input":{"jsonSchema":7}`), "", "object or a boolean"},
		"unknown JSON type":  {v4, handler(`"output":{"jsonSchema":{"anyOf":[{"type":"int"}]}}`), "", "int"},
		"attempts":           {v4, service(`"retryPolicyMaxAttempts":-1`), "", "negative"},
		"then":               {v4, service(`"retryPolicyOnMaxAttempts":"X"`), "", "PAUSE or KILL"},
		"too large":          {v4, strings.Repeat(" ", 4<<20+1), errcode.META0013, "larger than"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, answering(c.contentType, c.body), nil)
			_, err := newDiscoverer(t, quick()).Discover(t.Context(), Request{URI: s.URL})
			require.ErrorContains(t, err, c.message)
			code, _ := errcode.Of(err)
			require.Equal(t, c.code, code, "%v", err)
			if code == "" {
				_, ok := errors.AsType[*InvalidError](err)
				require.True(t, ok)
			}
			require.NotContains(t, err.Error(), "<html>", "what was answered is not quoted")
		})
	}
}

func TestStatuses(t *testing.T) {
	for status, attempts := range map[int]int32{404: 1, 302: 1, 401: 1, 500: 3, 502: 3, 503: 3, 429: 3} {
		var asked atomic.Int32
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			w.Header().Set("Location", "http://127.0.0.1:1/")
			w.WriteHeader(status)
			fmt.Fprint(w, "<secret>")
		}, nil)
		_, err := newDiscoverer(t, quick()).Discover(t.Context(), Request{URI: s.URL})
		code, _ := errcode.Of(err)
		require.Equal(t, errcode.META0003, code)
		require.ErrorContains(t, err, "did not accept discovery")
		require.NotContains(t, err.Error(), fmt.Sprintf("status %d", status), "the status would tell what listens there")
		require.NotContains(t, err.Error(), "secret")
		require.Equal(t, attempts, asked.Load(), status)
	}
}

func TestLocalAddressesAreThoseOfTheServer(t *testing.T) {
	_, port, err := net.SplitHostPort(ports.Address(t))
	require.NoError(t, err)
	for _, host := range []string{"127.0.0.1", "localhost"} {
		_, err := newDiscoverer(t, quick()).Discover(t.Context(), Request{URI: "http://" + net.JoinHostPort(host, port)})
		code, _ := errcode.Of(err)
		require.Equal(t, errcode.META0003, code)
		require.ErrorContains(t, err, "the machine or container in which the server runs")
	}
}

func TestTransientErrorsAreRetried(t *testing.T) {
	var asked atomic.Int32
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		answering(v4, manifestOf(""))(w, r)
	}, nil)
	_, err := newDiscoverer(t, quick()).Discover(t.Context(), Request{URI: s.URL})
	require.NoError(t, err)
}

func TestTransports(t *testing.T) {
	t.Run("HTTP/1.1 where HTTP/2 was expected", func(t *testing.T) {
		s := httptest.NewServer(answering(v4, manifestOf("")))
		defer s.Close()
		d := newDiscoverer(t, quick())
		_, err := d.Discover(t.Context(), Request{URI: s.URL})
		code, _ := errcode.Of(err)
		require.Equal(t, errcode.META0014, code, "%v", err)
		dep, err := d.Discover(t.Context(), Request{URI: s.URL, UseHTTP11: true})
		require.NoError(t, err)
		require.True(t, dep.HTTP11)
		require.False(t, dep.Bidirectional)
	})
	t.Run("HTTP/2 where HTTP/1.1 was expected", func(t *testing.T) {
		s := httptest.NewUnstartedServer(answering(v4, manifestOf("")))
		s.Config.Protocols = new(http.Protocols)
		s.Config.Protocols.SetUnencryptedHTTP2(true)
		s.Start()
		defer s.Close()
		_, err := newDiscoverer(t, quick()).Discover(t.Context(), Request{URI: s.URL, UseHTTP11: true})
		code, _ := errcode.Of(err)
		require.Equal(t, errcode.META0003, code, "%v", err)
		require.ErrorContains(t, err, "without use_http_11")
	})
	for name, http2 := range map[string]bool{"TLS with HTTP/2": true, "TLS with HTTP/1.1": false} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewUnstartedServer(answering(v4, manifestOf("")))
			s.EnableHTTP2 = http2
			s.StartTLS()
			defer s.Close()
			cfg := endpoint.DefaultConfig()
			cfg.TLS = s.Client().Transport.(*http.Transport).TLSClientConfig
			client := endpoint.NewClient(cfg)
			defer client.Close()
			dep, err := New(client, quick()).Discover(t.Context(), Request{URI: s.URL})
			require.NoError(t, err)
			require.Equal(t, !http2, dep.HTTP11)
			require.Equal(t, http2, dep.Bidirectional)

			strict := endpoint.NewClient(endpoint.DefaultConfig())
			defer strict.Close()
			_, err = New(strict, quick()).Discover(t.Context(), Request{URI: s.URL})
			require.ErrorContains(t, err, "certificate")
		})
	}
}

// Servers that do not know HTTP/2 treat its preface in different ways.
func TestServersThatDropHTTP2AreDetectedImmediately(t *testing.T) {
	for name, drop := range map[string]func(net.Conn){
		"closes on the preface": func(c net.Conn) { c.Close() },
		"resets the connection": func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0); c.Close() },
		"answers with a page":   func(c net.Conn) { fmt.Fprint(c, "<!DOCTYPE html><p>Invalid HTTP version (2.0)"); c.Close() },
		"stays silent":          func(net.Conn) {},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			var conns sync.WaitGroup
			t.Cleanup(conns.Wait)
			t.Cleanup(func() { l.Close() })
			conns.Go(func() {
				for c, err := l.Accept(); err == nil; c, err = l.Accept() {
					conns.Go(func() { serveHTTP1(c, drop) })
				}
			})
			begin := time.Now()
			cfg := DefaultConfig()
			cfg.timeout = time.Minute
			_, err = newDiscoverer(t, cfg).Discover(t.Context(), Request{URI: "http://" + l.Addr().String()})
			code, _ := errcode.Of(err)
			require.Equal(t, errcode.META0014, code, "%v", err)
			require.Less(t, time.Since(begin), cfg.timeout/2)
		})
	}
}

// An endpoint that speaks both versions of HTTP, but begins to respond only after a while, is not taken for one
// that ignores HTTP/2.
func TestSlowEndpointsWithBothVersionsAreDiscovered(t *testing.T) {
	started := make(chan struct{})
	var probes atomic.Int32
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 1 && probes.Add(1) == http1Probes-1 {
			close(started)
		}
		answering(v4, manifestOf(""))(w, r)
	}, func(s *httptest.Server) {
		s.Config.Protocols.SetHTTP1(true)
		s.Listener = &heldListener{Listener: s.Listener, until: started}
	})
	dep, err := newDiscoverer(t, quick()).Discover(t.Context(), Request{URI: s.URL})
	require.NoError(t, err)
	require.False(t, dep.HTTP11)
	require.True(t, dep.Bidirectional)
}

// An endpoint that speaks both versions of HTTP and closes a connection, perhaps because it is restarting, is not taken for
// one that closes all HTTP/2 connections.
func TestEndpointsWithBothVersionsMayCloseAConnection(t *testing.T) {
	s := serve(t, answering(v4, manifestOf("")), func(s *httptest.Server) {
		s.Config.Protocols.SetHTTP1(true)
		s.Listener = &closingListener{Listener: s.Listener}
	})
	dep, err := newDiscoverer(t, quick()).Discover(t.Context(), Request{URI: s.URL})
	require.NoError(t, err)
	require.False(t, dep.HTTP11)
}

// closingListener is a listener that closes its first connection.
type closingListener struct {
	net.Listener
	closed bool
}

func (l *closingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil && !l.closed {
		l.closed = true
		c.Close()
	}
	return c, err
}

// heldListener is a listener whose first connection has nothing to read until a channel is closed.
type heldListener struct {
	net.Listener
	until <-chan struct{}
	held  bool
}

func (l *heldListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil && !l.held {
		l.held = true
		c = &heldConn{Conn: c, until: l.until}
	}
	return c, err
}

type heldConn struct {
	net.Conn
	until <-chan struct{}
}

func (c *heldConn) Read(p []byte) (int, error) {
	<-c.until
	return c.Conn.Read(p)
}

// serveHTTP1 responds to requests in HTTP/1 with 404, and treats the preface of HTTP/2 with drop.
func serveHTTP1(c net.Conn, drop func(net.Conn)) {
	defer c.Close()
	in := bufio.NewReader(c)
	line, err := in.ReadString('\n')
	if err != nil {
		return
	}
	if strings.HasPrefix(line, "PRI ") {
		drop(c)
	} else {
		fmt.Fprint(c, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
	}
	_, _ = io.Copy(io.Discard, in) // until the client closes
}

func TestConnectionRefused(t *testing.T) {
	_, err := newDiscoverer(t, quick()).Discover(t.Context(), Request{URI: "http://" + ports.Address(t)})
	code, _ := errcode.Of(err)
	require.Equal(t, errcode.META0003, code)
}

func TestUnreachableAddressesWithoutAPortSayWhichOneIsUsed(t *testing.T) {
	d := newDiscoverer(t, quick())
	for uri, named := range map[string]bool{"http://localhost": true, "http://10.0.0.1/api": true, "http://localhost:9080": false} {
		addr, err := endpoint.ParseAddress(uri, false)
		require.NoError(t, err)
		_, _, err = d.unreachable(t.Context(), addr, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED})
		require.ErrorContains(t, err, "cannot be reached")
		require.Equal(t, named, strings.Contains(err.Error(), "has no port, so 80 is used"), "%v", err)
	}
}

// The text of the resolver names its address and those of search domains.
func TestUnknownHostsDoNotRevealTheResolver(t *testing.T) {
	_, err := newDiscoverer(t, quick()).Discover(t.Context(), Request{URI: "http://nobody.invalid"})
	code, _ := errcode.Of(err)
	require.Equal(t, errcode.META0003, code)
	require.ErrorContains(t, err, "http://nobody.invalid")
	require.NotContains(t, err.Error(), "lookup")
	_, named := errors.AsType[*net.DNSError](err)
	require.False(t, named)
}

// TestEndpointsWithoutTLSAreNamed has an HTTP/1.1 server, and one for HTTP/2, which closes the connection.
func TestEndpointsWithoutTLSAreNamed(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(net.Conn)
		want   string
	}{
		"HTTP/1.1": {func(c net.Conn) {
			fmt.Fprint(c, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
			_, _ = io.Copy(io.Discard, c) // until the client closes
		}, "https://ADDRESS did not respond with TLS; if it has none, register http://ADDRESS"},
		"HTTP/2": {func(c net.Conn) { _, _ = c.Read(make([]byte, 24)) }, "; if it has no TLS, register http://ADDRESS"},
	} {
		t.Run(name, func(t *testing.T) {
			address := accepting(t, c.answer)
			_, err := newDiscoverer(t, quick()).Discover(t.Context(), Request{URI: "https://" + address})
			require.ErrorContains(t, err, strings.ReplaceAll(c.want, "ADDRESS", address))
			code, _ := errcode.Of(err)
			require.Equal(t, errcode.META0003, code)
		})
	}
}

// accepting returns the address of a server that closes each connection after answer.
func accepting(t *testing.T, answer func(net.Conn)) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var serving sync.WaitGroup
	t.Cleanup(serving.Wait)
	t.Cleanup(func() { l.Close() })
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer c.Close()
				answer(c)
			})
		}
	})
	return l.Addr().String()
}

func TestTimeout(t *testing.T) {
	release := make(chan struct{})
	s := serve(t, func(http.ResponseWriter, *http.Request) { <-release }, nil)
	defer close(release)
	cfg := quick()
	cfg.timeout = 50 * time.Millisecond
	_, err := newDiscoverer(t, cfg).Discover(context.Background(), Request{URI: s.URL})
	require.ErrorContains(t, err, "did not respond in time")
}

func TestADroppedConnectionHasTheMessageOfASilentEndpoint(t *testing.T) {
	d := newDiscoverer(t, quick())
	addr, err := endpoint.ParseAddress("http://127.0.0.1:1/", false)
	require.NoError(t, err)
	for _, cause := range []error{os.ErrDeadlineExceeded, &net.DNSError{IsTimeout: true}} {
		_, transient, err := d.unreachable(t.Context(), addr, &net.OpError{Op: "dial", Err: cause})
		require.True(t, transient)
		_, lookup := errors.AsType[*net.DNSError](cause)
		require.Equal(t, !lookup, strings.Contains(err.Error(), "did not respond in time"), err)
	}
}

// Whether the time of the discovery or of the connection is over first must not decide the message.
func TestASilentEndpointHasOneMessage(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close() // the kernel accepts connections
	for name, limit := range map[string]struct{ discovery, connect time.Duration }{
		"of the discovery":     {50 * time.Millisecond, time.Minute},
		"of the connection":    {time.Minute, 50 * time.Millisecond},
		"of both, at a moment": {50 * time.Millisecond, 50 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			of := endpoint.DefaultConfig()
			of.ConnectTimeout = limit.connect
			client := endpoint.NewClient(of)
			defer client.Close()
			cfg := quick()
			cfg.timeout = limit.discovery
			_, err := New(client, cfg).Discover(t.Context(), Request{URI: "http://" + l.Addr().String()})
			require.ErrorContains(t, err, "http://"+l.Addr().String()+" did not respond in time: it hangs, does not speak HTTP, or packets to it are dropped")
		})
	}
}

func TestForbiddenAddressesAreRejected(t *testing.T) {
	for _, uri := range []string{"http://169.254.169.254/", "http://[fe80::1]/", "http://0.0.0.0:1/", "http://[::]/", "http://[::ffff:169.254.169.254]/", "http://224.0.0.1/"} {
		_, err := newDiscoverer(t, quick()).Discover(t.Context(), Request{URI: uri})
		code, _ := errcode.Of(err)
		require.Equal(t, errcode.META0022, code, uri)
		require.ErrorContains(t, err, "are not permitted: ", uri)
		require.NotContains(t, err.Error(), "dial tcp", uri)
	}
	cfg := endpoint.DefaultConfig()
	deny, err := egress.ParseRules([]string{"127.0.0.0/8"})
	require.NoError(t, err)
	cfg.Egress = &egress.Policy{Deny: deny}
	client := endpoint.NewClient(cfg)
	defer client.Close()
	s := serve(t, answering(v4, manifestOf("")), nil)
	_, err = New(client, quick()).Discover(t.Context(), Request{URI: strings.Replace(s.URL, "127.0.0.1", "localhost", 1)})
	require.ErrorIs(t, err, egress.ErrForbidden)
}

// The ingress of a server, which many confuse with the endpoint of a service, is recognized by its header.
func TestAnIngressIsNotAnEndpoint(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Platform-Error-Source", "ingress")
		w.WriteHeader(http.StatusBadRequest)
	}, nil)
	_, err := newDiscoverer(t, quick()).Discover(t.Context(), Request{URI: s.URL})
	code, _ := errcode.Of(err)
	require.Equal(t, errcode.META0022, code)
	require.ErrorContains(t, err, "as the ingress of a server")
}

func TestAddresses(t *testing.T) {
	for raw, want := range map[string]string{
		"http://Host:9080": "http://host:9080/", "HTTPS://h:443/a/": "https://h/a/", "http://h:80//": "http://h/",
		"http://h/a%2Fb?x=1#f": "http://h/a%2Fb/?x=1", "http://[::1]:9080/": "http://[::1]:9080/",
	} {
		got, err := NormalizeURI(raw)
		require.NoError(t, err, raw)
		require.Equal(t, want, got)
	}
	for _, raw := range []string{"", "h:9080", "localhost", "/x", "ftp://h/", "http://", "http://u:p@h/", "http://h:x/", "http:h"} {
		_, err := newDiscoverer(t, quick()).Discover(t.Context(), Request{URI: raw})
		_, ok := errors.AsType[*InvalidError](err)
		require.True(t, ok, "%s: %v", raw, err)
	}
	for name, value := range map[string]string{"a b": "x", "host": "x", "ok": "a\nb"} {
		_, err := newDiscoverer(t, quick()).Discover(t.Context(), Request{URI: "http://h/", AdditionalHeaders: map[string]string{name: value}})
		require.ErrorContains(t, err, "additional header")
	}
}
