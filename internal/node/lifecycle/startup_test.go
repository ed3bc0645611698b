package lifecycle

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/access"
	"platform/internal/cluster"
)

var anyHost = &access.Guard{Hosts: []string{access.AnyOne}}

// TestProvisioningRefusesRepeatedFields has two values of one field, of which only one could take
// effect.
func TestProvisioningRefusesRepeatedFields(t *testing.T) {
	for _, body := range []string{`{"replication":1,"replication":3}`, `{"replication":1,"Replication":3}`} {
		s := NewStartup(StartupConfig{Provisioning: cluster.NewProvisioning(false, 4, 1, 1), Guard: anyHost, Authenticator: &access.Authenticator{}})
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, "http://localhost:9070/cluster/provision", strings.NewReader(body))
		s.handler(true).ServeHTTP(w, r)
		require.Equal(t, http.StatusBadRequest, w.Code)
		require.Contains(t, strings.ToLower(w.Body.String()), "the field 'replication' twice")
	}
}

func TestProvisioningRequiresGossip(t *testing.T) {
	s := NewStartup(StartupConfig{Provisioning: cluster.NewProvisioning(false, 4, 1, 1), Guard: anyHost, Authenticator: &access.Authenticator{}})
	reason := "waiting for room on the disk"
	s.Report(reason)
	w := httptest.NewRecorder()
	s.handler(true).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/cluster/provision", strings.NewReader("{}")))
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Contains(t, w.Body.String(), reason)
	require.False(t, s.cfg.Provisioning.Allowed())
}

// Errors have the format of the ingress, also from a node whose ingress has not started.
func TestCallersOfANodeThatStartsMayRetry(t *testing.T) {
	s := NewStartup(StartupConfig{Node: "n1", Guard: anyHost, Authenticator: &access.Authenticator{}})
	s.Report("waiting for 3 nodes")
	w := httptest.NewRecorder()
	s.handler(false).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/Greeter/greet", strings.NewReader("{}")))
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.JSONEq(t, `{"code":503,"source":"ingress","message":"node n1 is starting: waiting for 3 nodes; the request had no effect and can be retried safely"}`, w.Body.String())
	require.Equal(t, "ingress", w.Header().Get("x-platform-error-source"))
	require.Equal(t, "1", w.Header().Get("retry-after"))

	w = httptest.NewRecorder()
	s.handler(true).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/deployments", nil))
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.JSONEq(t, `{"code":503,"platform_code":null,"message":"node n1 is starting: waiting for 3 nodes"}`, w.Body.String())
}

// A web page must not create the cluster of a node that waits for its operator.
func TestPagesOfOtherSitesCannotProvision(t *testing.T) {
	s := NewStartup(StartupConfig{Provisioning: cluster.NewProvisioning(false, 4, 1, 1), Guard: &access.Guard{Setting: "admin"}, Authenticator: &access.Authenticator{}})
	for name, change := range map[string]func(*http.Request){
		"host":       func(r *http.Request) { r.Host = "evil.example" },
		"origin":     func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") },
		"cross-site": func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
	} {
		r := httptest.NewRequest(http.MethodPost, "http://localhost:9070/cluster/provision", strings.NewReader("{}"))
		change(r)
		w := httptest.NewRecorder()
		s.handler(true).ServeHTTP(w, r)
		require.Equal(t, http.StatusForbidden, w.Code, name)
	}
}

func TestProvisioningRequiresTheAdministrator(t *testing.T) {
	secret := access.NewSecret()
	s := NewStartup(StartupConfig{Guard: anyHost, Authenticator: &access.Authenticator{
		Required: true, Static: []access.Grant{{Principal: access.Principal{Roles: []access.Role{access.Viewer}}, Hash: secret.Hash[:]}},
	}})
	for token, want := range map[string]int{"": 401, "x": 401, secret.Text: 403} {
		r := httptest.NewRequest(http.MethodPost, "http://localhost/cluster/provision", strings.NewReader("{}"))
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		s.handler(true).ServeHTTP(w, r)
		require.Equal(t, want, w.Code)
	}
}

// A request that has arrived when the node becomes ready gets its response, which says that it can be repeated.
func TestRequestsThatArriveWhenANodeBecomesReadyGetAResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		defer client.Close()
		ingress, ready := starting()
		ingress.conns <- slowConn{server, sync.OnceFunc(func() { time.Sleep(50 * time.Millisecond) })}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			time.Sleep(10 * time.Millisecond)
			ready()
		}()
		_, err := io.WriteString(client, "POST /Greeter/greet HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
		require.NoError(t, err)
		resp, err := http.ReadResponse(bufio.NewReader(client), nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)
		require.True(t, resp.Close)
		require.NoError(t, resp.Body.Close())
		<-ended
	})
}

// A client that sends a body slowly does not delay the moment when the node becomes ready.
func TestSlowBodiesDoNotDelayReadiness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		defer client.Close()
		ingress, ready := starting()
		ingress.conns <- server
		_, err := io.WriteString(client, "POST /Greeter/greet HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nabc")
		require.NoError(t, err)
		go func() { _, _ = io.Copy(io.Discard, client) }()
		synctest.Wait()
		begin := time.Now()
		ready()
		require.Less(t, time.Since(begin), 100*time.Millisecond)
	})
}

// starting returns the ingress port of a node that is starting, on which it responds already. It must be called in a synctest
// bubble, in which sleeping takes no time.
func starting() (ingress *port, ready func()) {
	ingress = newPort()
	s := NewStartup(StartupConfig{Guard: anyHost, Authenticator: &access.Authenticator{}, Log: slog.New(slog.DiscardHandler)})
	ready = s.Serve(func(context.Context) (net.Listener, error) { return ingress, nil }, newPort())
	time.Sleep(quietPeriod)
	return ingress, ready
}

// slowConn is a connection from which nothing is read before delay returns.
type slowConn struct {
	net.Conn
	delay func()
}

func (c slowConn) Read(p []byte) (int, error) {
	c.delay()
	return c.Conn.Read(p)
}

// port is a listener whose connections the test makes.
type port struct {
	conns   chan net.Conn
	expired chan struct{}
}

func newPort() *port { return &port{conns: make(chan net.Conn), expired: make(chan struct{})} }

func (p *port) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.expired:
		return nil, os.ErrDeadlineExceeded
	}
}

func (p *port) SetDeadline(t time.Time) error {
	select {
	case <-p.expired:
	default:
		if !t.IsZero() {
			close(p.expired)
		}
	}
	return nil
}

func (*port) Close() error   { return nil }
func (*port) Addr() net.Addr { return &net.TCPAddr{} }
