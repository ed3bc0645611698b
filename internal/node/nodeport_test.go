package node

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Clients without a certificate can connect to the node port. They must not use up the files that the process may open.
func TestConnectionsToTheNodePortAreLimited(t *testing.T) {
	c := newTestCluster(t, 1)
	c.healthy(1, 0)
	address := fmt.Sprintf("127.0.0.1:%d", c.nodes[0].cfg.BindPort)
	request := func(from string) int {
		conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).Dial("tcp", address)
		require.NoError(t, err)
		t.Cleanup(func() { conn.Close() })
		require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
		_, _ = io.WriteString(conn, "GET /none HTTP/1.1\r\nHost: x\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		return resp.StatusCode
	}
	limit := connections.Fit(slog.New(slog.DiscardHandler)).Node
	for _, from := range []string{"127.0.0.2", "127.0.0.3"} {
		for range limit / 2 {
			require.Equal(t, http.StatusNotFound, request(from))
		}
		require.Equal(t, http.StatusServiceUnavailable, request(from))
	}
	require.Equal(t, http.StatusServiceUnavailable, request("127.0.0.4"), "in total")
}
