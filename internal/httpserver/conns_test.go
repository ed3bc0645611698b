package httpserver

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/budget"
)

func TestOneAddressHasALimitOfConnections(t *testing.T) {
	addr, stop := start(t, Config{Handler: http.NotFoundHandler(), AddressConnections: 2})
	defer stop()
	dial := func(from string) (net.Conn, *http.Response) {
		c, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).Dial("tcp", addr)
		require.NoError(t, err)
		_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err)
		return c, resp
	}
	first, resp := dial("127.0.0.1")
	require.Equal(t, http.StatusNotFound, resp.StatusCode)
	second, resp := dial("127.0.0.1")
	defer second.Close()
	require.Equal(t, http.StatusNotFound, resp.StatusCode)

	third, resp := dial("127.0.0.1")
	defer third.Close()
	require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)
	require.Equal(t, "1", resp.Header.Get("Retry-After"))
	body, _ := io.ReadAll(resp.Body)
	require.Contains(t, string(body), `"platform_code":"RT0026"`)

	other, resp := dial("127.0.0.2")
	defer other.Close()
	require.Equal(t, http.StatusNotFound, resp.StatusCode, "other addresses are not concerned")

	first.Close()
	require.Eventually(t, func() bool {
		again, resp := dial("127.0.0.1")
		defer again.Close()
		return resp.StatusCode == http.StatusNotFound
	}, time.Minute, 10*time.Millisecond, "a closed connection makes room")
}

// Clients treat a response that they have not asked for as a broken connection, and lose one that is
// followed by a reset.
func TestTheResponseOfARefusedConnectionFollowsItsRequest(t *testing.T) {
	addr, stop := start(t, Config{Handler: http.NotFoundHandler(), AddressConnections: 1})
	defer stop()
	dial := func() net.Conn {
		c, err := net.Dial("tcp", addr)
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	first := dial()
	_, err := io.WriteString(first, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(t, err)
	_, err = http.ReadResponse(bufio.NewReader(first), nil)
	require.NoError(t, err)

	refused := dial()
	require.NoError(t, refused.SetReadDeadline(time.Now().Add(refusalTimeout/10)))
	n, err := refused.Read(make([]byte, 1))
	require.Zero(t, n, "a response without a request")
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)

	require.NoError(t, refused.SetDeadline(time.Now().Add(time.Minute)))
	body := strings.Repeat("x", maxRefusedInput/2)
	_, err = io.WriteString(refused, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"+body)
	require.NoError(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(refused), nil)
	require.NoError(t, err)
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Contains(t, string(text), "RT0026")

	silent := make([]net.Conn, maxRefusing)
	for i := range silent {
		silent[i] = dial()
	}
	beyond := dial()
	_ = beyond.SetReadDeadline(time.Now().Add(time.Minute))
	resp, err = http.ReadResponse(bufio.NewReader(beyond), nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)
}

// A host with a network of IPv6 addresses has no more connections than one with a single address.
func TestConnectionsAreLimitedPerNetworkInIPv6(t *testing.T) {
	for addr, want := range map[string]string{
		"192.0.2.7:1":              "192.0.2.7",
		"[::ffff:192.0.2.7]:1":     "192.0.2.7",
		"[2001:db8:1:2:3:4:5:6]:1": "2001:db8:1:2::",
		"[2001:db8:1:2::9]:1":      "2001:db8:1:2::",
		"[2001:db8:1:3::9]:1":      "2001:db8:1:3::",
		"[fe80::1%eth0]:1":         "fe80::1",
		"[::1]:1":                  "::1",
	} {
		require.Equal(t, want, networkOf(remoteAddr(remoteConn{addr: net.TCPAddrFromAddrPort(netip.MustParseAddrPort(addr))})).String(), addr)
	}
}

// remoteConn is a connection from an address.
type remoteConn struct {
	net.Conn
	addr net.Addr
}

func (c remoteConn) RemoteAddr() net.Addr { return c.addr }

func TestATricklingBodyEnds(t *testing.T) {
	ended := make(chan error, 1)
	addr, stop := start(t, Config{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := NewBody(w, r, 200*time.Millisecond)
		defer body.Close()
		_, err := io.Copy(io.Discard, body)
		ended <- err
	})})
	defer stop()
	c, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer c.Close()
	_, _ = io.WriteString(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n")
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(time.Minute)
	for {
		select {
		case err := <-ended:
			timeout, ok := err.(net.Error) //nolint:errorlint // of the connection itself
			require.True(t, ok && timeout.Timeout(), "%v", err)
			return
		case <-tick.C:
			_, _ = io.WriteString(c, "x")
		case <-limit:
			t.Fatal("the body is still read")
		}
	}
}

// While the budget is full, a client must send each 64 KiB after the first within fullTimeout.
func TestASlowBodyEndsWhileTheBudgetIsFull(t *testing.T) {
	full := make(chan struct{})
	ended := make(chan error, 1)
	addr, stop := start(t, Config{Budget: budget.New(1, 1), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		budget.From(r.Context()).Charge(2)
		defer budget.From(r.Context()).Release(2)
		close(full)
		body := NewBody(w, r, time.Hour)
		defer body.Close()
		_, err := io.Copy(io.Discard, body)
		ended <- err
	})})
	defer stop()
	c, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer c.Close()
	_, _ = io.WriteString(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n")
	<-full
	_, err = c.Write(make([]byte, writePiece))
	require.NoError(t, err)
	select {
	case err := <-ended:
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	case <-time.After(time.Minute):
		t.Fatal("the body is still read")
	}
}
