package httpserver

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestLittleIsBufferedForASlowClient writes to a client that does not read. What the kernel
// buffers counts as taken, so it must be little more than a piece.
func TestLittleIsBufferedForASlowClient(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	written := make(chan int, 1)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- Serve(ctx, ln, Config{
			Log: slog.New(slog.DiscardHandler), MaxConnections: 10, WriteTimeout: 200 * time.Millisecond,
			Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				n, _ := w.Write(make([]byte, 32<<20))
				written <- n
			}),
		})
	}()
	client, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	defer client.Close()
	require.NoError(t, client.(*net.TCPConn).SetReadBuffer(4096))
	_, err = fmt.Fprint(client, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(t, err)
	require.Less(t, <-written, 8*writePiece)
	cancel()
	require.NoError(t, <-served)
}
