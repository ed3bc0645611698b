package httpserver

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The other requests of a connection continue.
func TestLargeHeadersOverHTTP2EndOnlyTheirRequest(t *testing.T) {
	entered, finish := make(chan struct{}), make(chan struct{})
	addr, stop := start(t, Config{DrainTimeout: constant(time.Second), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			close(entered)
			<-finish
		}
		_, _ = io.WriteString(w, r.Proto)
	})})
	defer stop()
	var dials atomic.Int32
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{Protocols: &protocols, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		dials.Add(1)
		return new(net.Dialer).DialContext(ctx, network, addr)
	}}}
	defer client.CloseIdleConnections()
	get := func(path string, header string) (int, string) {
		r, err := http.NewRequest(http.MethodGet, "http://"+addr+path, nil)
		require.NoError(t, err)
		r.Header.Set("X-Large", header)
		response, err := client.Do(r)
		if err != nil {
			return 0, err.Error()
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return response.StatusCode, string(body)
	}
	type result struct {
		status int
		body   string
	}
	slow := make(chan result)
	go func() {
		status, body := get("/slow", "")
		slow <- result{status, body}
	}()
	<-entered
	for _, size := range []int{maxHeader + headerSlack, 100_000, 120_000} {
		status, body := get("/", strings.Repeat("c", size))
		require.Equal(t, http.StatusRequestHeaderFieldsTooLarge, status, body)
		require.Equal(t, `{"message":"the request line and the headers have more than 65536 bytes","platform_code":null}`, body)
	}
	status, body := get("/", strings.Repeat("c", 60_000))
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "HTTP/2.0", body)
	close(finish)
	require.Equal(t, result{http.StatusOK, "HTTP/2.0"}, <-slow)
	require.EqualValues(t, 1, dials.Load())
}
