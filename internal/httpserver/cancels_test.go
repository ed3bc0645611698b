package httpserver

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// rawClient writes HTTP/2 frames.
type rawClient struct {
	t      *testing.T
	conn   net.Conn
	framer *http2.Framer
	stream uint32
	from   string             // X-Forwarded-For
	goAway chan http2.ErrCode // closed at the end of the connection

	responded chan struct{} // has an element if there was a response
}

// withCertificate is a configuration of TLS with HTTP/2.
func withCertificate() *tls.Config {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	return &tls.Config{Certificates: server.TLS.Certificates, NextProtos: []string{"h2"}} //nolint:gosec // the default version
}

func dialRaw(t *testing.T, from, addr string, config *tls.Config) *rawClient {
	t.Helper()
	conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).Dial("tcp", addr)
	require.NoError(t, err)
	require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	if config != nil {
		conn = tls.Client(conn, config)
	}
	t.Cleanup(func() { conn.Close() })
	c := &rawClient{t: t, conn: conn, framer: http2.NewFramer(conn, conn), stream: 1, goAway: make(chan http2.ErrCode, 2), responded: make(chan struct{}, 1)}
	_, _ = io.WriteString(conn, http2.ClientPreface) // the server may have closed the connection
	_ = c.framer.WriteSettings()
	go func() {
		defer close(c.goAway)
		for {
			frame, err := c.framer.ReadFrame()
			if err != nil {
				return
			}
			switch f := frame.(type) {
			case *http2.GoAwayFrame:
				c.goAway <- f.ErrCode
			case *http2.HeadersFrame:
				select {
				case c.responded <- struct{}{}:
				default:
				}
			}
		}
	}()
	return c
}

// open sends a request without a body.
func (c *rawClient) open(path string) (stream uint32, err error) {
	c.t.Helper()
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	for _, f := range []hpack.HeaderField{{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "http"}, {Name: ":authority", Value: "a"}, {Name: ":path", Value: path}, {Name: "x-forwarded-for", Value: c.from}} {
		require.NoError(c.t, enc.WriteField(f))
	}
	stream = c.stream
	c.stream += 2
	return stream, c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: true})
}

// cancel sends requests and cancels each one while it is served, until the connection ends. It returns
// how many.
func (c *rawClient) cancel(most int, entered <-chan struct{}) (n int) {
	for ; n < most; n++ {
		stream, err := c.open("/")
		if err != nil {
			return n
		}
		select {
		case <-entered:
		case _, open := <-c.goAway:
			if !open {
				return n
			}
		}
		if c.framer.WriteRSTStream(stream, http2.ErrCodeCancel) != nil {
			return n
		}
	}
	return n
}

// untilCancelled reports each request, and serves it until it is cancelled.
func untilCancelled() (http.Handler, chan struct{}) {
	entered := make(chan struct{})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			return
		}
		select {
		case entered <- struct{}{}:
			<-r.Context().Done()
		case <-r.Context().Done():
		}
	}), entered
}

func TestConnectionsThatCancelManyRequestsAreClosed(t *testing.T) {
	for name, config := range map[string]*tls.Config{"plain": nil, "TLS": withCertificate()} {
		t.Run(name, func(t *testing.T) {
			handler, entered := untilCancelled()
			addr, stop := start(t, Config{Handler: handler, TLS: config, DrainTimeout: constant(time.Second)})
			defer stop()
			var trust *tls.Config
			if config != nil {
				trust = &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}} //nolint:gosec // the certificate is the test's
			}
			c := dialRaw(t, "127.0.0.1", addr, trust)
			most := 5 * connectionCancels.Capacity
			n := c.cancel(most, entered)
			require.Less(t, n, most, "the connection is still open")
			require.GreaterOrEqual(t, n, connectionCancels.Capacity-1)
			code, ok := <-c.goAway
			if ok { // else cancel has read it
				require.Equal(t, http2.ErrCodeEnhanceYourCalm, code)
			}
		})
	}
}

// An address that has cancelled too many requests is refused. Others are not, and neither are the
// connections that it has.
func TestConnectingAgainDoesNotAllowMoreCancels(t *testing.T) {
	handler, entered := untilCancelled()
	addr, stop := start(t, Config{Handler: handler, DrainTimeout: constant(time.Second), AddressConnections: 100})
	defer stop()
	established := dialRaw(t, "127.0.0.2", addr, nil)
	for cancelled, connections := 0, 0; ; connections++ {
		require.Less(t, connections, 20, "%d requests were cancelled", cancelled)
		c := dialRaw(t, "127.0.0.2", addr, nil)
		n := c.cancel(2*connectionCancels.Capacity, entered)
		if cancelled += n; n == 0 {
			require.GreaterOrEqual(t, cancelled, addressCancels.Capacity/2)
			break
		}
	}
	_, err := established.open("/other")
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.0.3")}}).DialContext}}
	defer client.CloseIdleConnections()
	resp, err := client.Get("http://" + addr + "/other")
	require.NoError(t, err)
	resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
}

func TestCompletedRequestsCompensateCancels(t *testing.T) {
	now := time.Unix(1000, 0)
	l := &boundedListener{limit: 10, sources: map[netip.Addr]*source{}}
	addr := netip.MustParseAddr("192.0.2.1")
	require.Empty(t, l.enter(addr, now))
	c := &conn{addr: addr, listener: l, cancels: newCancelBound(connectionCancels)}
	for range 20 * addressCancels.Capacity {
		for range completedPerCancel {
			l.addCompleted(c)
		}
		require.False(t, l.addCancel(c, now))
	}
	require.Empty(t, l.enter(addr, now))
	// 200 per second are within the bound of the address; a connection has 100.
	d := &conn{addr: addr, listener: l, cancels: newCancelBound(connectionCancels)}
	for range 100_000 {
		now = now.Add(time.Second / 100)
		require.False(t, l.addCancel(c, now))
		require.False(t, l.addCancel(d, now))
	}
}

// What addresses have cancelled is remembered after their last connection has ended, of a bounded number.
func TestCancelsAreRememberedForAWhile(t *testing.T) {
	now := time.Unix(1000, 0)
	l := &boundedListener{limit: 10, sources: map[netip.Addr]*source{}}
	addr := netip.MustParseAddr("10.0.0.0")
	for i := range 3 * idleSources {
		addr = addr.Next()
		require.Empty(t, l.enter(addr, now))
		c := &conn{addr: addr, listener: l, cancels: newCancelBound(connectionCancels)}
		l.addCancel(c, now)
		for n := 1; i == 0 && n < addressCancels.Capacity; n++ {
			l.addCancel(c, now)
		}
		l.leave(addr, 0, now)
	}
	require.Len(t, l.sources, idleSources)
	first := netip.MustParseAddr("10.0.0.1")
	require.Contains(t, l.enter(first, now), "has cancelled more than 5000 requests")
	require.Empty(t, l.enter(first, now.Add(time.Second)))
	l.leave(first, 0, now.Add(time.Minute))
	require.NotContains(t, l.sources, first)
	l.enter(addr.Next(), now.Add(time.Minute))
	l.leave(addr.Next(), 0, now.Add(time.Minute))
	require.Len(t, l.sources, idleSources-1)
	require.Equal(t, idleSources-1, l.idle)
}

func TestClosedConnectionsOfHTTP1CountAsCancels(t *testing.T) {
	handler, entered := untilCancelled()
	addr, stop := start(t, Config{Handler: handler, DrainTimeout: constant(time.Second), AddressConnections: 100})
	defer stop()
	for n := 0; ; n++ {
		require.Less(t, n, 3*addressCancels.Capacity, "the address is not refused")
		c, err := net.Dial("tcp", addr)
		require.NoError(t, err)
		require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
		_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		refused := make(chan string, 1)
		go func() {
			b, _ := io.ReadAll(io.LimitReader(c, 12))
			refused <- string(b)
		}()
		select {
		case <-entered:
			c.Close()
			<-refused
			continue
		case answer := <-refused:
			require.True(t, strings.HasPrefix(answer, "HTTP/1.1 503") || answer == "", answer)
			require.GreaterOrEqual(t, n, addressCancels.Capacity/2)
			c.Close()
			return
		}
	}
}

// A connection may be closed before the cancels of its requests are counted. They count nevertheless.
func TestCancelsCountAfterTheConnectionWasClosed(t *testing.T) {
	now := time.Unix(1000, 0)
	l := &boundedListener{limit: 10, sources: map[netip.Addr]*source{}}
	addr := netip.MustParseAddr("192.0.2.1")
	const requests = 100
	for n := 0; ; n += requests {
		require.LessOrEqual(t, n, addressCancels.Capacity, "the address is not refused")
		if l.enter(addr, now) != "" {
			break
		}
		c := &conn{addr: addr, listener: l, cancels: newCancelBound(connectionCancels)}
		l.leave(addr, 0, now)
		for range requests {
			l.addCancel(c, now)
		}
	}
	require.Equal(t, 1, l.idle)
	require.Len(t, l.sources, 1)
}

// A proxy whose clients drop all their requests at the same time is refused for a bounded time.
func TestRefusalsEnd(t *testing.T) {
	now := time.Unix(1000, 0)
	l := &boundedListener{limit: 1000, sources: map[netip.Addr]*source{}}
	addr := netip.MustParseAddr("192.0.2.1")
	dropAll := func() (closed int) {
		for range l.limit {
			require.Empty(t, l.enter(addr, now))
		}
		for range l.limit {
			c := &conn{addr: addr, listener: l, cancels: newCancelBound(connectionCancels)}
			ended := false
			for range 100 { // also those that are cancelled by the end of the connection
				ended = l.addCancel(c, now) || ended
			}
			if ended {
				closed++
			}
			l.leave(addr, 0, now)
		}
		return closed
	}
	require.Greater(t, dropAll(), l.limit*9/10)
	require.NotEmpty(t, l.enter(addr, now))
	now = now.Add(maxRefusal)
	// Until the address has recovered further, its connections may cancel little.
	require.Greater(t, dropAll(), l.limit/2)
	now = now.Add(maxRefusal)
	require.Empty(t, l.enter(addr, now))
}

// A node that does not respond for seconds must not refuse a proxy afterwards, whose clients have cancelled their requests.
func TestAProxyMayCancelItsRequestsAfterManyCompletedOnes(t *testing.T) {
	now := time.Now()
	l := &boundedListener{limit: 10, sources: map[netip.Addr]*source{}}
	addr := netip.MustParseAddr("192.0.2.1")
	var conns []*conn
	for range 4 {
		require.Empty(t, l.enter(addr, now))
		conns = append(conns, &conn{addr: addr, listener: l, cancels: newCancelBound(connectionCancels)})
	}
	const rate = 500 // of each connection
	for range 60 * rate {
		for _, c := range conns {
			l.addCompleted(c)
		}
	}
	for range 5 * rate {
		for _, c := range conns {
			require.False(t, l.addCancel(c, now))
		}
	}
	require.Empty(t, l.enter(addr, now))
	for range addressCancels.Capacity * (1 + savedCapacities) {
		l.addCancel(conns[0], now)
	}
	require.NotEmpty(t, l.enter(addr, now), "what is saved is bounded")
}

// Requests that complete count if each one has a connection of its own.
func TestShortConnectionsCompensateCancels(t *testing.T) {
	now := time.Now()
	l := &boundedListener{limit: 10, sources: map[netip.Addr]*source{}}
	addr := netip.MustParseAddr("192.0.2.1")
	require.Empty(t, l.enter(addr, now)) // another connection
	for range 2 * addressCancels.Capacity {
		for range completedPerCancel {
			require.Empty(t, l.enter(addr, now))
			c := l.newConn(nil, addr)
			l.addCompleted(c)
			c.closed()
		}
		require.Empty(t, l.enter(addr, now))
		c := l.newConn(nil, addr)
		l.addCancel(c, now)
		c.closed()
	}
}

// During an overload the timeouts of a fifth of the clients behind a proxy may be shorter than the responses take.
func TestAddressesMayCancelAFifthOfTheirRequests(t *testing.T) {
	now := time.Unix(1000, 0)
	l := &boundedListener{limit: 100, sources: map[netip.Addr]*source{}}
	addr := netip.MustParseAddr("192.0.2.1")
	conns := make([]*conn, 50)
	for i := range conns {
		require.Empty(t, l.enter(addr, now))
		conns[i] = l.newConn(nil, addr)
	}
	const perSecond, seconds = 5000, 60
	for i := range perSecond * seconds {
		now = now.Add(time.Second / perSecond)
		if c := conns[i%len(conns)]; i/len(conns)%5 != 0 {
			l.addCompleted(c)
		} else {
			require.False(t, l.addCancel(c, now), "after %d requests", i)
		}
	}
	require.Empty(t, l.enter(addr, now))
}
