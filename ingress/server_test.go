package ingress

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/cluster/routing"
	"platform/partition/machine"
)

// start serves on a free port until the test ends; stop may be called before.
func start(t *testing.T, s *Server) (addr string, stop func()) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, ln) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		require.NoError(t, <-done)
	}
	t.Cleanup(stop)
	return ln.Addr().String(), stop
}

// raw writes to a connection and reads everything until it is closed.
func raw(t *testing.T, addr, text string) string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	_, err = io.WriteString(conn, text)
	require.NoError(t, err)
	answer, _ := io.ReadAll(conn)
	return string(answer)
}

func TestBothVersionsOnOnePort(t *testing.T) {
	addr, _ := start(t, testServer(t, Config{}, &fakeInvocations{}))
	for version, major := range map[string]int{"http1": 1, "http2": 2} {
		client := clientOf(version)
		for _, size := range []int{0, 5, 3000, 700_000} {
			body := bytes.Repeat([]byte("x"), size)
			for _, reader := range []io.Reader{bytes.NewReader(body), struct{ io.Reader }{bytes.NewReader(body)}} {
				resp, err := client.Post("http://"+addr+"/Greeter/greet", "text/plain", reader)
				require.NoError(t, err)
				got, err := io.ReadAll(resp.Body)
				require.NoError(t, err)
				require.NoError(t, resp.Body.Close())
				require.Equal(t, major, resp.ProtoMajor)
				require.Equal(t, 200, resp.StatusCode)
				require.True(t, bytes.Equal(body, got))
				require.NotEmpty(t, resp.Header.Get("x-restate-id"))
			}
		}
		resp, err := client.Get("http://" + addr + "/Nobody/greet")
		require.NoError(t, err)
		got, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, 404, resp.StatusCode)
		require.Contains(t, string(got), `"source":"ingress"`)
		client.CloseIdleConnections()
	}
}

func TestUntypedResultHasNoContentType(t *testing.T) {
	addr, _ := start(t, testServer(t, Config{}, &fakeInvocations{}))
	answer := raw(t, addr, "POST /Greeter/untyped HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\nConnection: close\r\n\r\n<html>")
	require.True(t, strings.HasPrefix(answer, "HTTP/1.1 200 OK\r\n"), answer)
	require.NotContains(t, strings.ToLower(answer), "\r\ncontent-type:")
	require.Contains(t, answer, "\r\nX-Platform-Id: inv_1")
	require.True(t, strings.HasSuffix(answer, "\r\n\r\n<html>"), answer)
}

// counter is a body that counts how much of it was not read.
type counter struct{ left int64 }

func (c *counter) Read(p []byte) (int, error) {
	if c.left == 0 {
		return 0, io.EOF
	}
	n := min(int64(len(p)), c.left)
	c.left -= n
	return int(n), nil
}

// If a stream is reset while the client is still sending, the client may lose the response.
func TestHTTP2ClientsMayFinishABodyThatWasRejected(t *testing.T) {
	const limit = 8 << 20
	addr, _ := start(t, testServer(t, Config{RequestSizeLimit: limit}, &fakeInvocations{}))
	client := clientOf("http2")
	for path, status := range map[string]int{"/Greeter/greet": 413, "/Nobody/greet": 404} {
		body := &counter{left: limit}
		if status == 413 {
			body.left += 4 << 20
		}
		resp, err := client.Post("http://"+addr+path, "text/plain", io.NopCloser(body))
		require.NoError(t, err)
		got, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, status, resp.StatusCode)
		require.Contains(t, string(got), `"source":"ingress"`)
		require.Zero(t, body.left, path)
	}
	client.CloseIdleConnections()
}

func TestTooLargeBodyIsRejectedWhileItArrives(t *testing.T) {
	f := &fakeInvocations{}
	addr, _ := start(t, testServer(t, Config{RequestSizeLimit: 100_000}, f))
	chunk := fmt.Sprintf("%x\r\n%s\r\n", 60_000, strings.Repeat("x", 60_000))
	for name, text := range map[string]string{
		"announced":   "POST /Greeter/greet HTTP/1.1\r\nHost: x\r\nContent-Length: 100001\r\n\r\n",
		"in chunks":   "POST /Greeter/greet HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk + chunk,
		"by the room": "POST /platform/lookup HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n",
	} {
		answer := raw(t, addr, text)
		require.True(t, strings.HasPrefix(answer, "HTTP/1.1 413 "), "%s: %s", name, answer)
		require.Contains(t, answer, `{"code":413,"message":"the request body is larger than 100000 bytes (ingress.request-size-limit)","source":"ingress"}`, name)
		require.Contains(t, answer, "Connection: close", name)
	}
	client := clientOf("http2")
	defer client.CloseIdleConnections()
	resp, err := client.Post("http://"+addr+"/Greeter/greet", "text/plain", io.LimitReader(endless{}, 10<<20))
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, 413, resp.StatusCode)
	require.Empty(t, f.ids)
}

type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

func TestMalformedHTTP(t *testing.T) {
	f := &fakeInvocations{}
	addr, _ := start(t, testServer(t, Config{}, f))
	const head = "POST /Greeter/greet HTTP/1.1\r\nHost: x\r\n"
	for name, tc := range map[string]struct{ text, status string }{
		"garbage":                     {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", "400"},
		"no host":                     {"GET /Greeter/greet HTTP/1.1\r\n\r\n", "400"},
		"bad escape":                  {"GET /Counter/%zz/add HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
		"two lengths":                 {head + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx", "400"},
		"negative length":             {head + "Content-Length: -1\r\n\r\n", "400"},
		"unknown transfer coding":     {head + "Transfer-Encoding: cow\r\n\r\n", "501"},
		"space in a header name":      {head + "X y: 1\r\n\r\n", "400"},
		"control character in header": {head + "X-Y: \x00\r\n\r\n", "400"},
		"bad chunk":                   {head + "Transfer-Encoding: chunked\r\n\r\nzz\r\nx\r\n", "400"},
		"too many headers":            {head + "X-Y: " + strings.Repeat("y", 80_000) + "\r\n\r\n", "431"},
		"unknown version":             {"GET / HTTP/9.9\r\nHost: x\r\n\r\n", "505"},
		"relative path":               {"GET Greeter/greet HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
		"connect":                     {"CONNECT example.com:80 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "405"},
		"trace":                       {"TRACE /Greeter/greet HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "405"},
		"all paths":                   {"OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "200"},
		"non-ASCII path as bytes":     {"GET /Nobody/\xff HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "404"},
		"non-ASCII key as bytes":      {"GET /Counter/\xff/add HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "400"},
		"non-ASCII query as bytes":    {"GET /Greeter/greet?\xff HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "400"},
	} {
		t.Run(name, func(t *testing.T) {
			answer := raw(t, addr, tc.text)
			require.Regexp(t, `^HTTP/1.[01] `+tc.status+" ", answer)
		})
	}
	require.Empty(t, f.ids)
	require.Contains(t, raw(t, addr, head+"Connection: close\r\n\r\n"), "200 OK", "others are still served")
	require.Contains(t, raw(t, addr, "GET http://x/Greeter/greet?a=1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"), "200 OK")
	require.Equal(t, []string{"/Greeter/greet?a=1"}, headersOf(f.invokes[1])["x-restate-ingress-path"])
}

func TestBodyThatStalls(t *testing.T) {
	f := &fakeInvocations{}
	addr, _ := start(t, testServer(t, Config{bodyTimeout: 20 * time.Millisecond}, f))
	for _, length := range []string{"Content-Length: 5", "Content-Length: 500000", "Transfer-Encoding: chunked"} {
		answer := raw(t, addr, "POST /Greeter/greet HTTP/1.1\r\nHost: x\r\n"+length+"\r\n\r\n")
		require.True(t, strings.HasPrefix(answer, "HTTP/1.1 408 "), "%s: %s", length, answer)
		require.Contains(t, answer, `"source":"ingress"`)
	}
	answer := raw(t, addr, "POST /Nobody/greet HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n")
	require.True(t, strings.HasPrefix(answer, "HTTP/1.1 404 "), answer)
	require.Empty(t, f.ids)
	client := clientOf("http2")
	defer client.CloseIdleConnections()
	body, w := io.Pipe()
	defer w.Close()
	resp, err := client.Post("http://"+addr+"/Greeter/greet", "text/plain", body)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, 408, resp.StatusCode)
}

// A client that disconnects only stops waiting; its invocation continues.
func TestDisconnectOnlyEndsTheWait(t *testing.T) {
	for _, version := range []string{"http1", "http2"} {
		waiting, gone := make(chan struct{}), make(chan error, 1)
		f := &fakeInvocations{call: func(ctx context.Context, _ *machine.Invoke) (routing.Response, error) {
			close(waiting)
			<-ctx.Done()
			gone <- ctx.Err()
			return routing.Response{}, ctx.Err()
		}}
		addr, stop := start(t, testServer(t, Config{}, f))
		client := clientOf(version)
		ctx, cancel := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/Greeter/greet", strings.NewReader("x"))
		require.NoError(t, err)
		failed := make(chan error, 1)
		go func() {
			_, err := client.Do(req)
			failed <- err
		}()
		<-waiting
		cancel()
		require.ErrorIs(t, <-failed, context.Canceled)
		require.ErrorIs(t, <-gone, context.Canceled)
		client.CloseIdleConnections()
		stop()
	}
}

func TestDrainLetsRequestsFinish(t *testing.T) {
	for _, version := range []string{"http1", "http2"} {
		waiting, leave := make(chan struct{}), make(chan struct{})
		f := &fakeInvocations{call: func(_ context.Context, inv *machine.Invoke) (routing.Response, error) {
			close(waiting)
			<-leave
			return routing.Response{}, nil
		}}
		s := testServer(t, Config{}, f)
		addr, stop := start(t, s)
		client := clientOf(version)
		status := make(chan int, 1)
		go func() {
			resp, err := client.Post("http://"+addr+"/Greeter/greet", "", http.NoBody)
			if err != nil {
				status <- 0
				return
			}
			_ = resp.Body.Close()
			status <- resp.StatusCode
		}()
		<-waiting
		stopped := make(chan struct{})
		go func() { defer close(stopped); stop() }()
		require.Eventually(t, s.draining.Load, time.Minute, time.Millisecond)
		require.Eventually(t, func() bool {
			conn, err := net.Dial("tcp", addr)
			if err == nil {
				conn.Close()
			}
			return err != nil
		}, time.Minute, time.Millisecond, "no new connections")
		close(leave)
		require.Equal(t, 200, <-status)
		<-stopped
		client.CloseIdleConnections()
	}
}

func TestDrainRespondsToWaitingCallers(t *testing.T) {
	waiting := make(chan struct{}, 2)
	f := &fakeInvocations{call: func(ctx context.Context, _ *machine.Invoke) (routing.Response, error) {
		waiting <- struct{}{}
		<-ctx.Done()
		return routing.Response{}, ctx.Err()
	}}
	addr, stop := start(t, testServer(t, Config{DrainTimeout: func() time.Duration { return 10 * time.Millisecond }}, f))
	type answer struct {
		status int
		body   string
	}
	answers := make(chan answer, 2)
	for _, version := range []string{"http1", "http2"} {
		client := clientOf(version)
		defer client.CloseIdleConnections()
		go func() {
			resp, err := client.Post("http://"+addr+"/Greeter/greet", "", http.NoBody)
			if err != nil {
				answers <- answer{body: err.Error()}
				return
			}
			body, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			answers <- answer{resp.StatusCode, string(body)}
		}()
	}
	<-waiting
	<-waiting
	stop()
	for range 2 {
		got := <-answers
		require.Equal(t, 503, got.status, got.body)
		require.Contains(t, got.body, "the server is shutting down")
		require.Contains(t, got.body, "get the result from /platform/attach/inv_1")
	}
}

func TestServeReportsABrokenListener(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, ln.Close())
	require.ErrorIs(t, testServer(t, Config{}, nil).Serve(t.Context(), ln), net.ErrClosed)
}

func TestPanicDuringTheResponseClosesTheConnection(t *testing.T) {
	s := testServer(t, Config{}, &fakeInvocations{})
	s.add(s.router, kindOther, nil, "/platform/broken", brokenHandler)
	addr, _ := start(t, s)
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "GET /platform/broken HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err == nil {
		_, err = io.ReadAll(resp.Body)
		_ = resp.Body.Close()
	}
	require.Error(t, err, "a cut answer does not look whole")
}

func TestErrorsBeforeTheRouterHaveTheFormatOfTheIngress(t *testing.T) {
	addr, _ := start(t, testServer(t, Config{}, &fakeInvocations{}))
	answer := raw(t, addr, "GET /Counter/50%/add HTTP/1.1\r\nHost: a\r\n\r\n")
	require.Contains(t, answer, "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\n")
	require.Contains(t, answer, `{"code":400,"message":"the request is not valid HTTP/1.1: its request line or a header is malformed; % in the path`)
	require.Contains(t, answer, `","source":"ingress"}`)
	require.Contains(t, answer, "\r\nX-Platform-Error-Source: ingress\r\n")
}
