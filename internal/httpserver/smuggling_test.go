package httpserver

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A reverse proxy may delimit a request differently from the server. What the proxy considers the
// body must never be served as a separate request.
func TestSmuggledRequestsAreNotServed(t *testing.T) {
	var mu sync.Mutex
	var paths []string
	addr, stop := start(t, Config{Log: slog.New(slog.DiscardHandler), DrainTimeout: constant(time.Second), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		mu.Lock()
		paths = append(paths, r.URL.Path)
		mu.Unlock()
		w.WriteHeader(http.StatusNoContent)
	})})
	defer stop()
	const smuggled = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
	post := func(headers, body string) string {
		return "POST /outer HTTP/1.1\r\nHost: a\r\n" + headers + "\r\n" + body
	}
	for name, request := range map[string]string{
		"length and chunks":        post(fmt.Sprintf("Content-Length: %d\r\nTransfer-Encoding: chunked\r\n", 5+len(smuggled)), "0\r\n\r\n"+smuggled),
		"chunks and length":        post(fmt.Sprintf("Transfer-Encoding: chunked\r\nContent-Length: %d\r\n", 5+len(smuggled)), "0\r\n\r\n"+smuggled),
		"chunks alone":             post("Transfer-Encoding: chunked\r\n", "0\r\n\r\n"+smuggled),
		"trailer":                  post("Transfer-Encoding: chunked\r\nTrailer: Content-Length\r\n", "0\r\nContent-Length: 3\r\n\r\n"+smuggled),
		"two lengths":              post(fmt.Sprintf("Content-Length: 0\r\nContent-Length: %d\r\n", len(smuggled)), smuggled),
		"list of lengths":          post(fmt.Sprintf("Content-Length: 0, %d\r\n", len(smuggled)), smuggled),
		"signed length":            post("Content-Length: +0\r\n", smuggled),
		"space before the colon":   post("Transfer-Encoding : chunked\r\n", "0\r\n\r\n"+smuggled),
		"unknown coding":           post("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n"+smuggled),
		"two codings":              post("Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"+smuggled),
		"chunked twice":            post("Transfer-Encoding: chunked, chunked\r\n", "0\r\n\r\n"+smuggled),
		"tab":                      post("Transfer-Encoding:\tchunked\r\nContent-Length: 5\r\n", "0\r\n\r\n"+smuggled),
		"vertical tab":             post("Transfer-Encoding: \vchunked\r\nContent-Length: 5\r\n", "0\r\n\r\n"+smuggled),
		"folded":                   post("Transfer-Encoding:\r\n chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n"+smuggled),
		"bare line feed":           post("X: y\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n"+smuggled),
		"chunk size with overflow": post("Transfer-Encoding: chunked\r\n", "10000000000000000\r\n\r\n"+smuggled),
		"chunk size with sign":     post("Transfer-Encoding: chunked\r\n", "-1\r\n\r\n"+smuggled),
		"old protocol":             strings.Replace(post("Connection: keep-alive\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"+smuggled), "HTTP/1.1", "HTTP/1.0", 1),
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", addr)
			require.NoError(t, err)
			defer conn.Close()
			require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
			mu.Lock()
			paths = nil
			mu.Unlock()
			_, err = io.WriteString(conn, request)
			require.NoError(t, err)
			in := bufio.NewReader(conn)
			_, err = http.ReadResponse(in, nil)
			require.NoError(t, err)
			rest, err := io.ReadAll(in)
			if !errors.Is(err, syscall.ECONNRESET) { // the server closes while input is left
				require.NoError(t, err, "the server leaves the connection open")
			}
			require.NotContains(t, string(rest), "HTTP/1.1 204")
			mu.Lock()
			defer mu.Unlock()
			require.NotContains(t, paths, "/smuggled")
		})
	}
	// Bodies with a length leave the connection open.
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer conn.Close()
	in := bufio.NewReader(conn)
	for range 3 {
		_, err = io.WriteString(conn, post("Content-Length: 1\r\n", "x"))
		require.NoError(t, err)
		answer, err := http.ReadResponse(in, nil)
		require.NoError(t, err)
		require.False(t, answer.Close)
	}
}
