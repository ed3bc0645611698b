package watchdog

import (
	"io"
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// The process still exists when the sockets have been closed, as it does while the kernel waits for one of its threads.
func TestSocketsAreClosedBeforeTheProcessEnds(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer client.Close()
	server, err := l.Accept()
	require.NoError(t, err)
	defer server.Close()

	closeSockets()
	_, err = client.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	_, err = net.Dial("tcp", l.Addr().String())
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}
