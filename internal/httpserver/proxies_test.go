package httpserver

import (
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"

	"platform/internal/tokenbucket"
)

func TestTheClientIsTheLastAddressThatIsNoProxy(t *testing.T) {
	trusted := proxies{netip.MustParsePrefix("192.0.2.0/28"), netip.MustParsePrefix("2001:db8:1::/48"), netip.MustParsePrefix("127.0.0.1/32")}
	const proxy = "192.0.2.1"
	for _, c := range []struct {
		proxy string
		lines []string
		want  string
	}{
		{proxy, nil, proxy},
		{proxy, []string{""}, proxy},
		{proxy, []string{"198.51.100.7"}, "198.51.100.7"},
		{proxy, []string{"198.51.100.7:4711"}, "198.51.100.7"},
		{proxy, []string{"2001:db8:2::7"}, "2001:db8:2::7"},
		{proxy, []string{"[2001:db8:2::7]"}, "2001:db8:2::7"},
		{proxy, []string{"[2001:db8:2::7]:4711"}, "2001:db8:2::7"},
		{proxy, []string{"::ffff:198.51.100.7"}, "198.51.100.7"},
		{proxy, []string{"203.0.113.9, 198.51.100.7"}, "198.51.100.7"},              // the first one is an invention of the client
		{proxy, []string{"198.51.100.7,192.0.2.2 , 2001:db8:1::3"}, "198.51.100.7"}, // two more proxies
		{proxy, []string{"203.0.113.9", "198.51.100.7", "192.0.2.2"}, "198.51.100.7"},
		{proxy, []string{"192.0.2.3, 192.0.2.2"}, "192.0.2.3"}, // a proxy that is itself a client
		{proxy, []string{"198.51.100.7, unknown, 192.0.2.2"}, "192.0.2.2"},
		{proxy, []string{"_hidden"}, proxy},
		{proxy, []string{"127.0.0.1"}, proxy}, // not this machine
		{proxy, []string{"::1, 192.0.2.2"}, "192.0.2.2"},
		{"127.0.0.1", []string{"127.0.0.5"}, "127.0.0.5"},
		{"127.0.0.1", []string{"127.0.0.1, 192.0.2.2"}, "192.0.2.2"}, // not this machine
		{proxy, []string{"198.51.100.7" + strings.Repeat(", 192.0.2.2", maxProxies)}, "192.0.2.2"},
	} {
		header := http.Header{}
		for _, line := range c.lines {
			header.Add(forwardedFor, line)
		}
		require.Equal(t, c.want, trusted.client(netip.MustParseAddr(c.proxy), header).String(), "%s %q", c.proxy, c.lines)
	}
}

// Connections of proxies have no bound of their own, and each client is known by its address.
func TestRequestsFromAProxyAreThoseOfItsClients(t *testing.T) {
	addr, stop := start(t, Config{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.RemoteAddr) }), DrainTimeout: constant(time.Second),
		AddressConnections: 1, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")},
	})
	defer stop()
	get := func(from string) (int, string) {
		client := &http.Client{Transport: &http.Transport{DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).DialContext}}
		t.Cleanup(client.CloseIdleConnections)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr, nil)
		require.NoError(t, err)
		r.Header.Set(forwardedFor, "198.51.100.7")
		resp, err := client.Do(r)
		require.NoError(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(body)
	}
	for range 3 {
		status, address := get("127.0.0.2")
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, "198.51.100.7:0", address)
	}
	status, address := get("127.0.0.3")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, address, "127.0.0.3:", "the header is one that the client has invented")
	status, _ = get("127.0.0.3")
	require.Equal(t, http.StatusServiceUnavailable, status)
}

// A client that cancels too many requests is refused, and the others on its connection are not.
func TestCancelsThroughAProxyCountForItsClients(t *testing.T) {
	defer func(before tokenbucket.Rate) { addressCancels = before }(addressCancels)
	addressCancels = tokenbucket.Rate{Count: 1, Period: time.Hour, Capacity: 20} // however slowly they are sent
	handler, entered := untilCancelled()
	served := make(chan string, 10)
	addr, stop := start(t, Config{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/served" {
				served <- r.RemoteAddr
			}
			handler.ServeHTTP(w, r)
		}), DrainTimeout: constant(time.Second),
		AddressConnections: 1, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")},
	})
	defer stop()
	c := dialRaw(t, "127.0.0.2", addr, nil)
	c.from = "198.51.100.7"
	for cancelled, refused := 0, false; !refused; cancelled++ {
		require.LessOrEqual(t, cancelled, 10*addressCancels.Capacity) // those that took longer than youngRequest do not count
		stream, err := c.open("/")
		require.NoError(t, err, "the connection is also that of other clients")
		select {
		case <-entered:
			require.NoError(t, c.framer.WriteRSTStream(stream, http2.ErrCodeCancel))
		case <-c.responded:
			require.GreaterOrEqual(t, cancelled, addressCancels.Capacity)
			refused = true
		}
	}
	refused := c.from
	t.Run("the connection of a refused chunked request ends", func(t *testing.T) {
		conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.0.2")}}).Dial("tcp", addr)
		require.NoError(t, err)
		defer conn.Close()
		require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
		_, err = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: "+refused+"\r\nTransfer-Encoding: chunked\r\nContent-Length: 43\r\n\r\n0\r\n\r\n"+
			"GET /smuggled HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 198.51.100.8\r\n\r\n")
		require.NoError(t, err)
		responses, err := io.ReadAll(conn)
		require.NoError(t, err)
		require.Equal(t, 1, strings.Count(string(responses), "HTTP/1.1 "), "%s", responses)
		require.Contains(t, string(responses), "HTTP/1.1 503 ")
	})
	c.from = "198.51.100.8"
	_, err := c.open("/served")
	require.NoError(t, err)
	require.Equal(t, "198.51.100.8:0", <-served)
}
