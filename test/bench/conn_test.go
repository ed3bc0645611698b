package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// dialHandler connects to an HTTP server with the given handler.
func dialHandler(t *testing.T, ctx context.Context, handler http.HandlerFunc) *conn {
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	c, err := dial(ctx, strings.TrimPrefix(server.URL, "http://"), "application/json")
	require.NoError(t, err)
	t.Cleanup(c.close)
	return c
}

func TestConnMakesManyRequests(t *testing.T) {
	c := dialHandler(t, t.Context(), func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		switch r.URL.Path {
		case "/chunks":
			for part := range strings.SplitSeq(string(body), ",") {
				_, _ = io.WriteString(w, part)
				w.(http.Flusher).Flush()
			}
		case "/status":
			w.WriteHeader(http.StatusAccepted)
			_, _ = w.Write(body)
		case "/empty":
			if r.Header.Get("content-type") != "" {
				t.Error("a request without a body has a content type")
			}
		}
	})
	for range 3 {
		status, resp, err := c.post("/chunks", []byte("one,two,"+strings.Repeat("x", 20_000)))
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, "onetwo"+strings.Repeat("x", 20_000), string(resp))

		status, resp, err = c.post("/status", []byte(`"hello"`))
		require.NoError(t, err)
		require.Equal(t, http.StatusAccepted, status)
		require.Equal(t, `"hello"`, string(resp))

		status, resp, err = c.post("/empty", nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, status)
		require.Empty(t, resp)
	}
}

func TestConnBreaksWhenItsContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	arrived := make(chan struct{})
	c := dialHandler(t, ctx, func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done() // canceled by the closed connection
	})
	failed := make(chan error, 1)
	go func() {
		_, _, err := c.post("/", nil)
		failed <- err
	}()
	<-arrived
	cancel()
	require.Error(t, <-failed)
}

func TestConnRejectsInvalidResponses(t *testing.T) {
	for raw, reason := range map[string]string{
		"SSH-2.0-server\r\n": "not an HTTP/1.1 response",
		"HTTP/1.1 abc\r\n":   "status line",
		"HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n":              "content-length",
		"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n":                 "closes the connection",
		"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n": "size of a chunk",
		"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nabc":              "EOF",
	} {
		c := dialHandler(t, t.Context(), func(w http.ResponseWriter, _ *http.Request) {
			hijacked, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer hijacked.Close()
			_, _ = io.WriteString(hijacked, raw)
		})
		_, _, err := c.post("/", nil)
		require.ErrorContains(t, err, reason, "%q", raw)
	}
}
