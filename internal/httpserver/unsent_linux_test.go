package httpserver

import (
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestLittleIsBufferedForASlowClient writes to a client that does not read. What the kernel
// buffers counts as taken, so it must be little more than a piece.
func TestLittleIsBufferedForASlowClient(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := &perAddress{Listener: tcp, writeTimeout: 200 * time.Millisecond, open: map[netip.Addr]int{}}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer client.Close()
	require.NoError(t, client.(*net.TCPConn).SetReadBuffer(4096))
	c, err := l.Accept()
	require.NoError(t, err)
	defer c.Close()
	n, err := c.Write(make([]byte, 32<<20))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.Less(t, n, 8*writePiece)
}
