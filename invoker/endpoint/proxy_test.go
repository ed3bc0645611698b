package endpoint

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"

	"platform/internal/egress"
)

// proxy forwards every request to one address, whatever the name, and records the requests.
type proxy struct {
	*httptest.Server
	target string

	mu    sync.Mutex // guards asked
	asked []string
}

func newProxy(t *testing.T, secure bool, target string) *proxy {
	p := &proxy{target: target}
	p.Server = httptest.NewUnstartedServer(p)
	if secure {
		p.StartTLS()
	} else {
		p.Start()
	}
	t.Cleanup(p.Close)
	return p
}

func (p *proxy) requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.asked = append(p.asked, r.Method+" "+r.RequestURI+" "+r.Header.Get("Proxy-Authorization"))
	p.mu.Unlock()
	if strings.HasPrefix(r.Host, "forbidden.") {
		http.Error(w, "no", http.StatusForbidden)
		return
	}
	if r.Method != http.MethodConnect {
		out, _ := http.NewRequest(r.Method, "http://"+p.target+r.URL.RequestURI(), r.Body)
		resp, err := http.DefaultTransport.RoundTrip(out)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(w, resp.Body)
		return
	}
	there, err := net.Dial("tcp", p.target)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer there.Close()
	here, in, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer here.Close()
	_, _ = io.WriteString(here, "HTTP/1.1 200 Connection established\r\n\r\n")
	go func() {
		_, _ = io.Copy(there, in)
		there.Close()
	}()
	_, _ = io.Copy(here, there)
}

func named(t *testing.T, a *Address, host string) *Address {
	_, port, err := net.SplitHostPort(a.host)
	require.NoError(t, err)
	out, err := ParseAddress(a.Scheme+"://"+host+":"+port, a.HTTP11)
	require.NoError(t, err)
	return out
}

func through(t *testing.T, p *proxy, except ...string) func(*Config) {
	u, err := url.Parse(p.URL)
	require.NoError(t, err)
	u.User = url.UserPassword("me", "secret")
	return func(cfg *Config) {
		cfg.Proxy, cfg.NoProxy = u, except
		if p.TLS != nil {
			cfg.TLS = p.Client().Transport.(*http.Transport).TLSClientConfig
		}
	}
}

const credentials = " Basic bWU6c2VjcmV0"

func post(t *testing.T, c *Client, a *Address) error {
	t.Helper()
	l := listen(a)
	s := c.Open(l)
	s.Write([]byte("hello"))
	s.CloseWrite()
	err := <-l.ends
	if err == nil {
		require.Equal(t, "hello", l.got.String())
	}
	return err
}

func TestHTTP2WithoutTLSIsTunneled(t *testing.T) {
	a := serve(t, true, echoBody)
	for _, secure := range []bool{false, true} {
		p := newProxy(t, secure, a.host)
		c := newClient(t, through(t, p))
		name := named(t, a, "service.test")
		require.NoError(t, post(t, c, name))
		require.NoError(t, post(t, c, name))
		require.Equal(t, []string{"CONNECT " + name.host + credentials}, p.requests())
	}
}

func TestBytesReadAheadBelongToTheTunnel(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var work sync.WaitGroup
	defer work.Wait()
	defer l.Close()
	work.Go(func() { // the proxy and the peer behind it
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		in := bufio.NewReader(conn)
		if _, err := http.ReadRequest(in); err != nil {
			return
		}
		first := bytes.NewBufferString("HTTP/1.1 200 OK\r\n\r\n")
		_ = http2.NewFramer(first, nil).WriteSettings()
		_, _ = conn.Write(first.Bytes())
		_, _ = io.ReadFull(in, make([]byte, len(http2.ClientPreface)))
		p := &peer{t: t, conn: conn, framer: http2.NewFramer(conn, in)}
		if stream, got, ok := p.request(); ok {
			p.answer(stream, got)
		}
		p.drain()
	})
	a, err := ParseAddress("http://service.test", false)
	require.NoError(t, err)
	cfg := DefaultConfig()
	cfg.Proxy = &url.URL{Scheme: "http", Host: l.Addr().String()}
	c := NewClient(cfg)
	defer c.Close()
	require.NoError(t, post(t, c, a))
}

func TestHTTP1GoesThroughTheProxy(t *testing.T) {
	a := serve(t, false, echoBody)
	p := newProxy(t, false, a.host)
	name := named(t, a, "service.test")
	require.NoError(t, post(t, newClient(t, through(t, p)), name))
	require.Equal(t, []string{"POST http://" + name.host + "/x" + credentials}, p.requests())
}

func TestTLSGoesThroughTheProxy(t *testing.T) {
	for _, h2 := range []bool{true, false} {
		s := httptest.NewUnstartedServer(http.HandlerFunc(echoBody))
		s.EnableHTTP2 = h2
		s.StartTLS()
		defer s.Close()
		p := newProxy(t, false, s.Listener.Addr().String())
		change := through(t, p)
		c := newClient(t, func(cfg *Config) {
			change(cfg)
			cfg.TLS = s.Client().Transport.(*http.Transport).TLSClientConfig
		})
		a, err := ParseAddress("https://example.com", false)
		require.NoError(t, err)
		a, err = c.Negotiate(t.Context(), a)
		require.NoError(t, err)
		require.Equal(t, !h2, a.HTTP11)
		require.NoError(t, post(t, c, a))
		require.Equal(t, []string{"CONNECT example.com:443" + credentials, "CONNECT example.com:443" + credentials}, p.requests())
	}
}

func TestNoProxy(t *testing.T) {
	a := serve(t, true, echoBody)
	p := newProxy(t, false, "127.0.0.1:1")
	require.NoError(t, post(t, newClient(t, through(t, p)), a), "this machine")
	for host, except := range map[string]string{"service.test": "service.test", "a.service.test": ".test", "10.1.2.3": "10.0.0.0/8", "any": "*"} {
		require.Error(t, post(t, newClient(t, func(cfg *Config) {
			through(t, p, "other.test", except)(cfg)
			cfg.ConnectTimeout = time.Millisecond // no listener
		}), named(t, a, host)))
	}
	require.Empty(t, p.requests())
}

func TestProxiesThatRefuse(t *testing.T) {
	a := serve(t, true, echoBody)
	p := newProxy(t, false, a.host)
	err := post(t, newClient(t, through(t, p)), named(t, a, "forbidden.test"))
	require.ErrorContains(t, err, "does not connect to forbidden.test")
	require.ErrorContains(t, err, "403 Forbidden")
	require.NotContains(t, err.Error(), "secret")

	err = post(t, newClient(t, func(cfg *Config) { cfg.Proxy = &url.URL{Scheme: "http", Host: "127.0.0.1:1"} }), named(t, a, "service.test"))
	require.ErrorContains(t, err, "proxy 127.0.0.1:1: dial tcp")
}

func TestASilentProxy(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	a := serve(t, true, echoBody)
	err = post(t, newClient(t, func(cfg *Config) {
		cfg.Proxy, cfg.ConnectTimeout = &url.URL{Scheme: "http", Host: l.Addr().String()}, 50*time.Millisecond
	}), named(t, a, "service.test"))
	require.ErrorIs(t, err, errConnectTimeout)
}

func TestTheGuardChecksAddressesBehindAProxy(t *testing.T) {
	a := serve(t, true, echoBody)
	p := newProxy(t, false, a.host)
	for _, http11 := range []bool{false, true} {
		target, err := ParseAddress("http://169.254.169.254/", http11)
		require.NoError(t, err)
		require.ErrorIs(t, post(t, newClient(t, through(t, p)), target), egress.ErrForbidden)
	}
	for _, spelling := range []string{"0xa9fea9fe", "2852039166", "0251.0376.0251.0376", "169.254.43518", "metadata.google.internal", "METADATA.google.internal."} {
		require.ErrorIs(t, post(t, newClient(t, through(t, p)), named(t, a, spelling)), egress.ErrForbidden, spelling)
	}
	require.Empty(t, p.requests())
	// The proxy itself is the operator's choice.
	rules, err := egress.ParseRules([]string{"127.0.0.0/8"})
	require.NoError(t, err)
	deny := func(cfg *Config) {
		through(t, p)(cfg)
		cfg.Egress = &egress.Policy{Deny: rules}
	}
	require.NoError(t, post(t, newClient(t, deny), named(t, a, "service.test")))
}
