package client

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newClient returns a client whose admin requests time out after timeout, but
// not on connections that a busy machine is slow to open.
func newClient(address string, timeout time.Duration) *Client {
	return New(Options{
		AdminURL: address, IngressURL: address, ConnectTimeout: time.Minute, RequestTimeout: timeout,
		Log: slog.New(slog.DiscardHandler),
	})
}

func TestParseTarget(t *testing.T) {
	for text, want := range map[string]Target{
		"Greeter/greet":   {Service: "Greeter", Handler: "greet"},
		"Counter/key/add": {Service: "Counter", Key: "key", Handler: "add", Keyed: true},
		"Counter/a/b/add": {Service: "Counter", Key: "a/b", Handler: "add", Keyed: true},
		"Counter//add":    {Service: "Counter", Handler: "add", Keyed: true},
		"Counter/ä %/add": {Service: "Counter", Key: "ä %", Handler: "add", Keyed: true},
	} {
		got, err := ParseTarget(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "Greeter", "Greeter/", "/greet", "Counter/key/"} {
		_, err := ParseTarget(text)
		require.Error(t, err, text)
	}
	require.Equal(t, "Counter/%C3%A4%20%25/add", Target{Service: "Counter", Key: "ä %", Handler: "add", Keyed: true}.path())
}

func TestSilentServerTimesOutOnAdminRequestsOnly(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/services" {
			<-release
		}
	}))
	defer server.Close()
	defer close(release)
	var c *Client
	var err error
	for timeout := 50 * time.Millisecond; ; timeout *= 4 { // a busy machine may take longer to connect
		c = newClient(server.URL, timeout)
		_, _, err = c.Services(t.Context())
		silent, ok := errors.AsType[*UnreachableError](err)
		require.True(t, ok, "%v", err)
		require.False(t, silent.Refused())
		if silent.Sent {
			break
		}
	}
	require.Equal(t, "no complete response from the admin API at "+server.URL+"/: timed out", err.Error())
	_, err = c.Attach(t.Context(), InvocationRef{ID: "inv_1"})
	require.NoError(t, err)
}

func TestResultTimeoutBoundsCallsAndAttaches(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer server.Close()
	c := New(Options{
		AdminURL: server.URL, IngressURL: server.URL, ConnectTimeout: time.Hour, RequestTimeout: time.Hour, ResultTimeout: 50 * time.Millisecond,
		Log: slog.New(slog.DiscardHandler),
	})
	_, err := c.Attach(t.Context(), InvocationRef{ID: "inv_1"})
	require.ErrorContains(t, err, "timed out")
	_, err = c.Call(t.Context(), Call{Target: Target{Service: "S", Handler: "h"}})
	require.ErrorContains(t, err, "timed out")
}

// TestCallsAndAttachesAreNotBoundedByDefault makes calls that take longer than other requests
// may take.
func TestCallsAndAttachesAreNotBoundedByDefault(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `"done"`) }))
	defer server.Close()
	c := New(Options{AdminURL: server.URL, IngressURL: server.URL, ConnectTimeout: time.Hour, RequestTimeout: time.Nanosecond, Log: slog.New(slog.DiscardHandler)})
	_, err := c.Attach(t.Context(), InvocationRef{ID: "inv_1"})
	require.NoError(t, err)
	_, err = c.Call(t.Context(), Call{Target: Target{Service: "S", Handler: "h"}})
	require.NoError(t, err)
}

func TestRecoveriesHaveALongerTimeoutThanOtherRequests(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"partitions":[{"partition":3}]}`))
	}))
	defer server.Close()
	c := newClient(server.URL, time.Nanosecond)
	_, _, err := c.Services(t.Context())
	require.Error(t, err)
	plans, _, err := c.RecoverPartitions(t.Context(), nil, true)
	require.NoError(t, err)
	require.Equal(t, []PartitionRecovery{{Partition: 3}}, plans)
}

// TestLargeBodiesAreAnnounced requires that a refusal is received although the body is not: a server that
// refuses it closes the connection.
func TestLargeBodiesAreAnnounced(t *testing.T) {
	refuse := func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength < largeBody {
			require.Empty(t, r.Header.Get("Expect"))
			_, _ = io.Copy(io.Discard, r.Body) // otherwise the server closes the connection while it is sent
			return
		}
		if r.Header.Get("Expect") != "100-continue" {
			panic(http.ErrAbortHandler) // the response may be lost while the body is sent
		}
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusRequestEntityTooLarge)
	}
	server := httptest.NewServer(http.HandlerFunc(refuse))
	defer server.Close()
	c := newClient(server.URL, time.Minute)
	_, err := c.send(t.Context(), c.admin, request{method: http.MethodPost, path: "/", body: make([]byte, largeBody-1)})
	require.NoError(t, err)
	_, err = c.send(t.Context(), c.admin, request{method: http.MethodPost, path: "/", body: make([]byte, largeBody)})
	var refused *APIError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, http.StatusRequestEntityTooLarge, refused.Status)
}

func TestCancelledRequestIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := newClient("http://127.0.0.1:1", time.Minute).Attach(ctx, InvocationRef{ID: "inv_1"})
	require.ErrorIs(t, err, context.Canceled)
}

func TestUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "admin.sock")
	listener, err := net.Listen("unix", path)
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"version":"1.2.3"}`)
	}))
	server.Listener = listener
	server.Start()
	defer server.Close()
	version, err := newClient("unix:"+path, time.Minute).Version(t.Context())
	require.NoError(t, err)
	require.Equal(t, "1.2.3", version.Version)

	_, err = newClient("unix:/nowhere", time.Minute).Version(t.Context())
	require.ErrorContains(t, err, "cannot reach the admin API at unix:/nowhere: ")
}
